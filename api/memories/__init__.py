"""One memory: read, edit, delete, history, feedback; and batches of edits."""
