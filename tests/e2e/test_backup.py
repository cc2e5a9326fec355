"""`memlane backup`, wipe, `memlane restore`: a real stack answers as before."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.support.stack import ROOT, Client, Stack

USERS = ("maya", "ana")


async def memlane(stack: Stack, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command with the stack's settings."""
    return await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", "deploy.cli", *arguments],
        cwd=ROOT,
        env=stack.environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


async def answers(client: Client) -> dict[str, Any]:
    """Lists, histories, searches and the verification, as a client sees them."""
    seen: dict[str, Any] = {}
    for user in USERS:
        rows = await client.memories(user)
        seen[f"{user} list"] = sorted(rows, key=lambda row: row["id"])
        for row in rows:
            history = await client.http.get(f"/v1/memories/{row['id']}/history/")
            seen[row["id"]] = history.json()
        hits = (await client.search(user, "Where do they live, and with whom?"))["results"]
        seen[f"{user} search"] = [(hit["id"], round(hit["score"], 4)) for hit in hits]
    verified = (await client.http.get("/v1/verify/")).json()
    seen["verify"] = {name: verified[name] for name in ("enabled", "ok", "faults")}
    return seen


async def test_a_restored_stack_answers_as_before(tmp_path: Path) -> None:
    settings = {"MEMLANE_SEAL_KEY": "k" * 32}
    stack, backup = Stack(tmp_path / "data", settings), tmp_path / "backup"
    key = ""
    async with stack, stack.client() as client:
        ping = (await client.http.get("/v1/ping/")).json()
        project = f"/api/v1/orgs/organizations/{ping['org_id']}/projects/{ping['project_id']}/"
        switched = await client.http.patch(project, json={"tamper_evidence": True})
        assert switched.status_code == 200, switched.text
        for user, texts in zip(
            USERS, (("I live in Turku.", "I moved to Vaasa."), ("I have a cat.",)), strict=True
        ):
            for text in texts:
                assert (await client.ended(await client.add(user, text)))["status"] == "SUCCEEDED"
        before = await answers(client)
        key = stack.key
        done = await memlane(stack, "backup", str(backup), "--verify")
        assert done.returncode == 0, done.stdout + done.stderr
        assert "all rows are there" in done.stdout
        refused = await memlane(stack, "restore", str(backup))
        assert (refused.returncode, "The local stack runs" in refused.stderr) == (1, True)
    wiped = await asyncio.to_thread(stack.command, "reset", "--yes")
    assert wiped.returncode == 0, wiped.stdout + wiped.stderr

    done = await memlane(stack, "restore", str(backup))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "equal to the backup" in done.stdout
    assert "3 events accepted, 3 succeeded" in done.stdout
    assert "another admin key" in done.stdout
    new = (stack.data_dir / "api_key").read_text()
    assert new != key
    (stack.data_dir / "api_key").write_text(key)
    async with stack, stack.client() as client:
        assert await answers(client) == before
        assert (await client.ended(await client.add("maya", "I like tea.")))["results"]
