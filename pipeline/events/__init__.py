"""Events: list, cancel, replay and undo."""
