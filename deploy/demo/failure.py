"""What ends the demo early, said in words its reader can act on."""

from __future__ import annotations


class DemoError(Exception):
    """The demo cannot go on; the message is all the reader sees."""
