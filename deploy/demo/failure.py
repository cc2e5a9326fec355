"""The error that ends the demo early; its text says what to do."""

from __future__ import annotations


class DemoError(Exception):
    """The demo cannot continue; the reader sees only its message."""
