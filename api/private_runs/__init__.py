"""Private sessions: declare one, and read its state."""
