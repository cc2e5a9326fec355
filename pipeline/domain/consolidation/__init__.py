"""Rules of consolidation: the memories shown to a decision, and the changes that it may make."""
