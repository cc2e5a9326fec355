"""memlane verify: pages as one answer, recorded heads, and exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from deploy.cli.connection import ApiConnection
from deploy.cli.verify import missing_heads, recorded_heads, verified
from deploy.stack.failure import StackError

PROJECT = "5464aa03-d842-4fa0-9524-be70e3328819"


def served(answer: Callable[[httpx.Request], Any]) -> ApiConnection:
    def handle(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json=answer(request))

    return ApiConnection("http://api", "key", transport=httpx.MockTransport(handle))


def page(*, sealed: int = 0, faults: list[Any] | None = None, following: str | None = None) -> Any:
    return {
        "ok": not faults,
        "enabled": True,
        "sealed": sealed,
        "waiting": 1,
        "faults": faults or [],
        "next": following,
    }


def test_pages_are_one_answer() -> None:
    fault = {"problem": "edited", "kind": "event", "id": "x", "number": 1, "lane_id": "y"}
    pages = {
        None: page(sealed=2, following="a"),
        "a": page(sealed=3, faults=[fault], following="b"),
        "b": page(),
    }
    with served(lambda request: pages[request.url.params.get("cursor")]) as api:
        answer = verified(api)
    assert (answer["sealed"], answer["waiting"], answer["ok"]) == (5, 3, False)
    assert answer["faults"] == [fault]


def heads(request: httpx.Request) -> Any:
    """Three heads; the signature of the last one is not valid."""
    rows: list[dict[str, Any]] = [
        {"number": n, "root": f"root {n}", "valid": n < 3} for n in (1, 2, 3)
    ]
    after = int(request.url.params["after"])
    return {"project_id": PROJECT, "results": [row for row in rows if row["number"] > after][:2]}


def line(number: int, root: str, project_id: str = PROJECT) -> dict[str, Any]:
    return {"project_id": project_id, "number": number, "root": root, "event": "seal_head"}


@pytest.mark.parametrize(
    ("recorded", "missing"),
    [
        ([line(1, "root 1"), {"seal_head": line(2, "root 2")}], []),
        ([line(1, "root 1"), line(2, "another root")], [2]),
        ([line(2, "root 2"), line(9, "root 9")], [9]),
        ([line(3, "root 3")], [3]),
        ([line(1, "root 1"), line(1, "of another", "another project")], []),
    ],
)
def test_a_recorded_head_that_the_server_does_not_have_is_a_fault(
    tmp_path: Path, recorded: list[Any], missing: list[int]
) -> None:
    path = tmp_path / "heads.jsonl"
    path.write_text("\n".join(["no JSON", "3", "{}", *map(json.dumps, recorded)]))
    with served(heads) as api:
        faults = list(missing_heads(api, path))
    assert [(fault["problem"], fault["number"]) for fault in faults] == [
        ("head", number) for number in missing
    ]


def test_a_file_without_a_head_of_the_project_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "heads.jsonl"
    path.write_text(json.dumps(line(1, "root 1", "another project")))
    assert len(list(recorded_heads(path))) == 1
    with served(heads) as api, pytest.raises(StackError, match="no recorded head"):
        list(missing_heads(api, path))
