"""Open conflicts between memories, and their resolution."""
