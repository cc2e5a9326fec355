"""memlane verify: compare the rows of a project with their seals."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from deploy.cli.connection import ApiConnection
from deploy.cli.context import AsJson, options, print_json
from deploy.stack.failure import StackError

Heads = Annotated[
    Path | None,
    typer.Option(
        "--heads",
        help="File with recorded heads: lines of the log, or bodies of the webhook seal_head.",
        exists=True,
        dir_okay=False,
    ),
]
OFF = "Tamper evidence is off: nothing of this project is sealed."


def verify(context: typer.Context, heads: Heads = None, as_json: AsJson = False) -> None:
    """Name the rows of the key's project that were changed in the database.

    Exit code 1 if there are any, 2 if the project has no tamper evidence.
    """
    with options(context).connect() as api:
        answer = verified(api)
        if heads is not None:
            answer["faults"] += list(missing_heads(api, heads))
            answer["ok"] = answer["ok"] and not answer["faults"]
    if as_json:
        print_json(answer)
    else:
        counts = f"{answer['sealed']} rows sealed, {answer['waiting']} not yet."
        print(counts if answer["enabled"] else OFF)
        for fault in answer["faults"]:
            ids = [fault[name] for name in ("id", "number") if fault[name] is not None]
            print(f"{fault['problem']}:", fault["kind"], *ids)
    if answer["faults"]:
        raise typer.Exit(1)
    raise typer.Exit(0 if answer["enabled"] else 2)


def verified(api: ApiConnection) -> dict[str, Any]:
    """The pages of a verification as one answer."""
    answer = api.get("/v1/verify/")
    cursor = answer.pop("next")
    while cursor:
        page = api.get("/v1/verify/", cursor=cursor)
        answer["sealed"] += page["sealed"]
        answer["waiting"] += page["waiting"]
        answer["faults"] += page["faults"]
        answer["ok"] = answer["ok"] and page["ok"]
        cursor = page["next"]
    return answer


def missing_heads(api: ApiConnection, path: Path) -> Iterator[dict[str, Any]]:
    """Faults for the recorded heads of a file that the server does not have, or has otherwise.

    Errors: StackError if the file has no head of the key's project.
    """
    stored: dict[int, str] = {}
    page = api.get("/v1/verify/heads/", after=0)
    while page["results"]:
        stored |= {row["number"]: row["root"] for row in page["results"] if row["valid"]}
        page = api.get("/v1/verify/heads/", after=page["results"][-1]["number"])
    recorded = [
        head for head in recorded_heads(path) if head.get("project_id") == page["project_id"]
    ]
    if not recorded:
        raise StackError(f"{path} has no recorded head of the key's project.")
    for head in recorded:
        if stored.get(head["number"]) != head["root"]:
            yield {
                "problem": "head",
                "kind": "recorded",
                "id": head["project_id"],
                "number": head["number"],
                "lane_id": None,
            }


def recorded_heads(path: Path) -> Iterator[Mapping[str, Any]]:
    """The recorded heads of a file; other lines are skipped."""
    for line in path.read_text("utf-8", errors="replace").splitlines():
        try:
            value = json.loads(line)
        except ValueError:
            continue
        head = value.get("seal_head", value) if isinstance(value, dict) else {}
        if isinstance(head, dict) and {"project_id", "number", "root"} <= head.keys():
            yield head
