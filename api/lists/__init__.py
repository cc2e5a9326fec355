"""Lists of memories, with filters and pages."""
