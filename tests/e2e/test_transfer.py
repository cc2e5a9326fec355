"""`memlane export` and `memlane import` against a real stack."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import orjson
from typer.testing import CliRunner

from deploy.cli.app import app
from tests.support.stack import Client, Stack


async def memlane(stack: Stack, key_file: Path, *arguments: str) -> str:
    """The output of the command, which runs in a thread, because it blocks."""
    options = ("--url", stack.url, "--key-file", str(key_file))
    result = await asyncio.to_thread(CliRunner().invoke, app, [*options, *arguments])
    assert result.exit_code == 0, result.output
    return result.output


def rows(file: Path) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in file.read_bytes().splitlines()]


async def test_a_user_moves_to_another_project(
    stack: Stack, client: Client, tmp_path: Path
) -> None:
    for text in ("I live in Turku.", "I moved to Vaasa, and my sister Ana lives in Oulu."):
        event_id = await client.add("mover", text)
        await client.http.get(f"/v1/event/{event_id}/", params={"wait": 60})
    here, there = stack.data_dir / "api_key", tmp_path / "key"
    before, after = tmp_path / "before.jsonl", tmp_path / "after.jsonl"
    ping = (await client.http.get("/v1/ping/")).json()
    path = f"/api/v1/orgs/organizations/{ping['org_id']}/projects/"
    project_id = (await client.http.post(path, json={"name": "target"})).json()["project_id"]
    body = {"name": "target", "project_id": project_id}
    there.write_text((await client.http.post("/v1/keys/", json=body)).json()["key"])

    await memlane(stack, here, "export", str(before), "--user", "mover")
    counted = await memlane(stack, there, "import", str(before), "--new-ids", "--dry-run", "--json")
    lines = rows(before)[-1]["lines"]
    assert orjson.loads(counted)["new"] == lines
    for added in (lines["memory"], 0):
        shown = await memlane(stack, there, "import", str(before), "--new-ids")
        assert f"Memories added: {added}" in shown
    await memlane(stack, there, "export", str(after))
    assert rows(after)[-1]["lines"] == lines
    texts = [
        [row["text"] for row in rows(file) if row["type"] == "memory"] for file in (before, after)
    ]
    assert sorted(texts[0]) == sorted(texts[1])
    changed = before.read_text().splitlines()[:-1]
    before.write_text("\n".join(changed))
    options = ("--url", stack.url, "--key-file", str(there), "import", str(before))
    cut = await asyncio.to_thread(CliRunner().invoke, app, list(options))
    assert "incomplete" in str(cut.exception)
