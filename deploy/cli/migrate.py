"""memlane migrate: apply the pending migrations, or say what they will lock."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Annotated

import typer

from deploy.cli.context import local
from deploy.cli.recovery import database_url
from pipeline.ledger.engine import UNLIMITED, connect
from pipeline.ledger.upgrade_plan import EFFECTS, MigrationPlan
from pipeline.migrate import migrate as apply
from pipeline.migrate import newest_schema, pending


def migrate(
    check: Annotated[
        bool, typer.Option("--check", help="Print what they lock, and change nothing.")
    ] = False,
) -> None:
    """Apply the pending migrations of the database, each in a transaction of its own.

    With --check: the tables that each of them locks, and roughly how long.
    """
    plans = asyncio.run(_run(database_url(*local()), check=check))  # noqa: TID251  own process
    for line in lines(plans) if check else (f"Schema {newest_schema()}.",):
        print(line)


async def _run(url: str, *, check: bool) -> list[MigrationPlan]:
    engine = connect(url, pool_size=2, name="memlane migrate", limits=UNLIMITED)
    try:
        if check:
            return await pending(engine)
        await apply(engine)
        return []
    finally:
        await engine.dispose()


def lines(plans: Sequence[MigrationPlan]) -> Iterator[str]:
    """The plans as text."""
    if not plans:
        yield f"Nothing to do: the schema is {newest_schema()}, the newest."
    for plan in plans:
        yield f"{plan.revision}  {plan.title}"
        for lock in sorted(plan.locks, key=lambda each: (-each.lock, -each.seconds, each.table)):
            yield (
                f"      {lock.table:<20} {EFFECTS[lock.lock]:<26} {_time(lock.seconds):>14}"
                f"  {lock.rows:>12,} rows"
            )
        if plan.unread:
            yield f"      {plan.unread} statements cannot be read without running them"


def _time(seconds: float) -> str:
    return "a moment" if seconds < 1 else f"about {seconds:,.0f} s"
