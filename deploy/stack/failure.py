"""The error that stops the stack; its text says what to do."""

from __future__ import annotations


class StackError(Exception):
    """The stack cannot start. `process`: the process whose log has details, if any."""

    def __init__(self, message: str, *, process: str | None = None) -> None:
        super().__init__(message)
        self.process = process
