"""Log lines of libraries, which may quote texts of users."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = """
import asyncio, logging, structlog
from pipeline import telemetry

telemetry.configure_logs("debug", process="api")
structlog.get_logger().debug("own_line")
{}
"""
QUERY = 'logging.getLogger("neo4j.io").debug("C: RUN %s", {"name": "Zanzibar"})'
# Nothing reads the result of the task: asyncio logs its exception when it is deleted.
UNREAD = """
async def fail():
    raise ValueError("Zanzibar")

async def main():
    task = asyncio.ensure_future(fail())
    await asyncio.wait([task])

loop = asyncio.new_event_loop()
loop.run_until_complete(main())
"""
CALLBACK = """
def fail(text):
    raise ValueError(text)

loop = asyncio.new_event_loop()
loop.call_soon(fail, "Zanzibar")
loop.run_until_complete(asyncio.sleep(0, loop))
"""


@pytest.mark.parametrize(
    ("logging_code", "event"),
    [(QUERY, None), (UNREAD, "Task exception was never"), (CALLBACK, "Exception in callback")],
)
def test_lines_of_libraries_have_no_text_of_users_at_any_level(
    logging_code: str, event: str | None
) -> None:
    """asyncio's lines name the task and the callback with its arguments."""
    script = SCRIPT.format(logging_code)
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert "own_line" in ended.stderr
    assert "Zanzibar" not in ended.stderr
    if event is not None:
        assert event in ended.stderr
        assert "ValueError" in ended.stderr
