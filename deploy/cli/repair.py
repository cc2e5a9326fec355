"""memlane repair: do what `memlane doctor` found and what needs no decision."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated

import typer

from deploy.cli.context import local
from deploy.cli.recovery import database_url
from deploy.stack.failure import StackError
from pipeline.backup.store import BackupStore
from pipeline.health.repairs import LedgerRepairs
from pipeline.health.store import LedgerHealth
from pipeline.ledger.engine import UNLIMITED, connect
from pipeline.migrate import newest_schema

OLDER = (
    "The schema is not that of this release. Start Memlane, or run `python -m pipeline.migrate`."
)
NOTHING = "Nothing to repair."


@dataclass(frozen=True, slots=True)
class Repair:
    """One repair: its text, and the call that does it."""

    text: str
    run: Callable[[], Awaitable[object]]


def repair(
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the repairs and change nothing.")
    ] = False,
) -> None:
    """Queue stuck lanes again, build invalid and missing indexes, correct counts.

    Each repair is safe while Memlane goes on, and can be repeated.
    """
    url = database_url(*local())
    for line in asyncio.run(run(url, dry_run=dry_run)):  # noqa: TID251  a separate process
        print(line)


async def run(url: str, *, dry_run: bool) -> list[str]:
    """Do all repairs, or list them. Errors: StackError if the schema is another release's."""
    engine = connect(url, pool_size=2, name="memlane repair", limits=UNLIMITED)
    try:
        if await BackupStore(engine).schema() != newest_schema():
            raise StackError(OLDER)
        lines = []
        async for step in repairs(LedgerHealth(engine), LedgerRepairs(engine)):
            if not dry_run:
                await step.run()
            lines.append(f"{'would ' if dry_run else ''}{step.text}")
    finally:
        await engine.dispose()
    return lines or [NOTHING]


async def repairs(health: LedgerHealth, ledger: LedgerRepairs) -> AsyncIterator[Repair]:
    """The repairs that the ledger needs. Indexes come first: the others read by them."""
    faults = await health.indexes()
    for name in faults.left_over:
        yield Repair(f"drop index {name}", partial(ledger.drop_index, name))
    for name in faults.invalid:
        yield Repair(f"rebuild index {name}", partial(ledger.rebuild_index, name))
    for name in faults.missing:
        yield Repair(f"create index {name}", partial(ledger.create_index, name))
    lanes = await health.lanes()
    if lanes.stranded:
        yield Repair(
            f"queue {lanes.stranded:,} idle lanes with events", ledger.queue_stranded_lanes
        )
    if lanes.overdue:
        yield Repair(f"queue {lanes.overdue:,} overdue lanes again", ledger.queue_overdue_lanes)
    if wrong := await health.wrong_counts():
        yield Repair(f"correct {wrong:,} counts", ledger.correct_books)
