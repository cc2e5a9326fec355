"""Events: status, receipt, stream, cancel, replay and undo."""
