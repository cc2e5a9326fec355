"""Kill -9 of a chat backend with an outbox, the API, the workers and the database, and the count.

`python -m tests.support.outbox_run --turns 5000` prints the figures of a long run.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import httpx
from memlane_client.outbox.journal import Journal

from tests.support.outbox_writer import USERS
from tests.support.stack import ROOT, Stack, wait_until

VICTIMS = ("client", "client", "api", "worker-1", "postgres")
PAGE = 200


@dataclass(frozen=True, slots=True)
class OutboxReport:
    """Figures of a run. `unnoted`: on disk, but the client died before `add` returned."""

    turns: int
    accepted: int
    lost: int
    doubled: int
    reordered: int
    unnoted: int
    kills: Mapping[str, int]

    @property
    def sound(self) -> bool:
        return self.lost == self.doubled == self.reordered == 0


class Writer:
    """The process of the chat backend; it is started again after each kill."""

    def __init__(self, stack: Stack, folder: Path, turns: int) -> None:
        self.stack, self.folder, self.turns, self.life = stack, folder, turns, 0
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.life += 1
        arguments = (self.stack.url, self.stack.key, self.folder, self.life, self.turns)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.outbox_writer", *map(str, arguments)],
            cwd=ROOT,
            env=self.stack.environment | {"PYTHONPATH": str(ROOT / "clients/python")},
        )

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()
        self.start()

    def noted(self) -> list[str]:
        notes = self.folder / "notes"
        return notes.read_text().splitlines() if notes.exists() else []


async def run(stack: Stack, folder: Path, *, turns: int, kills: int, seed: int) -> OutboxReport:
    """Kill a victim after each n-th turn, wait until all turns are accepted, and count."""
    dice, writer = random.Random(seed), Writer(stack, folder, turns)
    victims = [dice.choice(VICTIMS) for _ in range(max(kills - len(VICTIMS), 0))]
    victims = [*VICTIMS, *victims][:kills]
    dice.shuffle(victims)
    writer.start()
    for number, victim in enumerate(victims, start=1):
        await reached(writer, turns * number // (kills + 1))
        if victim == "client":
            writer.kill()
        else:
            with suppress(FileNotFoundError, ProcessLookupError):  # it is being restarted
                stack.kill(victim)
    process = writer.process
    assert process is not None
    assert await asyncio.to_thread(process.wait, 600) == 0
    assert Journal(folder / "outbox").pending() == []
    accepted = {
        user: await accepted_turns(stack, user) for user in map("user-{}".format, range(USERS))
    }
    return counted(writer.noted(), accepted, Counter(victims))


async def reached(writer: Writer, turns: int) -> None:
    """Wait until the backend has noted this number of turns."""

    async def enough() -> bool:
        return len(writer.noted()) >= turns

    await wait_until(enough, within_s=300, what=f"{turns} turns", every_s=0.005)


async def accepted_turns(stack: Stack, user_id: str) -> list[str]:
    """Texts of the user's events in the order of their acceptance."""
    texts: list[str] = []
    async with stack.client() as client:
        page = 1
        while True:
            rows = await events(client.http, {"user_id": user_id, "page": page, "page_size": PAGE})
            texts += [row["payload"]["messages"][0]["content"] for row in rows]
            if len(rows) < PAGE:
                return texts[::-1]
            page += 1


async def events(http: httpx.AsyncClient, query: Mapping[str, str | int]) -> list[dict]:  # type: ignore[type-arg]
    """A page of events. A database that was killed may be restarting."""
    while True:
        answer = await http.get("/v1/events/", params=dict(query))
        if answer.is_success:
            return list(answer.json()["results"])
        assert answer.status_code == httpx.codes.SERVICE_UNAVAILABLE, answer.text


def counted(
    noted: list[str], accepted: Mapping[str, list[str]], kills: Mapping[str, int]
) -> OutboxReport:
    """Compare the turns that `add` returned for with those that the server has accepted."""
    every = [text for texts in accepted.values() for text in texts]
    return OutboxReport(
        turns=len(noted),
        accepted=len(every),
        lost=len(set(noted) - set(every)),
        doubled=len(every) - len(set(every)),
        reordered=sum(texts != sorted(texts) for texts in accepted.values()),
        unnoted=len(set(every) - set(noted)),
        kills=dict(kills),
    )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--turns", type=int, default=5_000)
    options.add_argument("--kills", type=int, default=40)
    options.add_argument("--seed", type=int, default=31)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as name, Stack(Path(name) / "data") as stack:
        report = asyncio.run(  # noqa: TID251
            run(stack, Path(name), turns=given.turns, kills=given.kills, seed=given.seed)
        )
    print(json.dumps(asdict(report)))
    sys.exit(not report.sound)


if __name__ == "__main__":
    main()
