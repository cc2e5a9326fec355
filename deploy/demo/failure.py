"""The error that ends the demo early; its text says what to do."""

from __future__ import annotations


class DemoError(Exception):
    """The demo cannot go on; the message is all the reader sees."""
