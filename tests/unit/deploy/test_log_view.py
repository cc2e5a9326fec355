"""Logs for people: all processes merged by time, or every line about one event."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from deploy.stack.layout import PROJECT_ROOT, Layout
from deploy.stack.log_view import merged

EVENT = "0a4f2f34-5b4b-4d5f-8a55-7f1f5c9f2b01"


def lay_out(root: Path) -> Layout:
    layout = Layout(root)
    layout.create()
    rows = {
        "api": [("10:00:01", "add_accepted", [EVENT]), ("10:00:05", "other", [])],
        "worker-1": [("10:00:03", "stage_finished", [EVENT, "x"])],
        "postgres": [],
    }
    for name, lines in rows.items():
        text = "LOG: not JSON " + EVENT + "\n"
        for clock, event, ids in lines:
            row = {"event": event, "process": name, "level": "info", "event_ids": ids}
            text += json.dumps(row | {"timestamp": f"2026-11-23T{clock}.000000Z"}) + "\n"
        layout.log_file(name).write_text(text)
    return layout


def test_the_lines_of_an_event_are_merged_by_time(tmp_path: Path) -> None:
    first, second = merged(lay_out(tmp_path), [], lines=1, event_id=EVENT)
    assert first.startswith("10:00:01.000 INFO    api       add_accepted event_ids=")
    assert second.startswith("10:00:03.000 INFO    worker-1  stage_finished")


def test_the_last_lines_of_named_processes_are_shown(tmp_path: Path) -> None:
    layout = lay_out(tmp_path)
    assert [line.split()[3] for line in merged(layout, [], lines=2)] == ["stage_finished", "other"]
    assert [line.split()[3] for line in merged(layout, ["worker-1"], lines=9)] == ["stage_finished"]


def test_a_reader_that_closes_early_ends_the_command_without_a_traceback(tmp_path: Path) -> None:
    code = "import sys\nfrom deploy.stack.exits import exit_code\n"
    code += "sys.exit(exit_code(lambda: print('line\\n' * 100_000) or 0))"
    shell = f'{sys.executable} -c "$CODE" | head -n 1'
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {shell}"],
        cwd=PROJECT_ROOT,
        env={"CODE": code, "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "line\n", "")
