"""Plans of statements as they run: PostgreSQL's auto_explain sends each one to its client.

So a plan is recorded for every statement of the product, with the plan that its connection really
uses, also for those of triggers and of code that calls the driver directly.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import asyncpg
from sqlalchemy import event
from sqlalchemy.ext.asyncio import AsyncEngine

SETTINGS = {
    "log_min_duration": "0",
    "log_analyze": "on",
    "log_timing": "off",
    "log_format": "json",
    "log_level": "notice",
    "log_nested_statements": "on",
    "log_parameter_max_length": "0",
}
LOAD = "LOAD 'auto_explain'; " + "; ".join(
    f"SET auto_explain.{name} = '{value}'" for name, value in SETTINGS.items()
)
# Nodes whose rows the statement changes.
CHANGES = "ModifyTable"
# A join that compares each row with each other one discards most of them.
REMOVED = tuple(f"Rows Removed by {why}" for why in ("Filter", "Join Filter", "Index Recheck"))


@dataclass(frozen=True, slots=True)
class ExecutedPlan:
    """The plan of an executed statement.

    `returned`: rows that it returned or changed. `read`: most rows that one node read, returned or
    not. `node`: that node.
    """

    words: str
    returned: float
    read: float
    node: str

    @classmethod
    def of(cls, explained: dict[str, Any]) -> ExecutedPlan:
        """Build a plan from EXPLAIN's JSON."""
        root = explained["Plan"]
        nodes = list(nodes_of(root))
        node = max(nodes, key=_read)
        changed = [n for n in nodes if n["Node Type"] == CHANGES]
        returned = max(_rows(root), *(_changed(n) for n in changed), 0)
        return cls(" ".join(explained["Query Text"].split()), returned, _read(node), _name(node))


@dataclass(slots=True)
class Recorder:
    """Plans of all statements since the last call of `taken`."""

    plans: list[ExecutedPlan] = field(default_factory=list)

    async def taken(self) -> Sequence[ExecutedPlan]:
        """Return the plans recorded so far, and forget them."""
        await asyncio.sleep(0)  # the driver delivers notices in callbacks
        taken, self.plans = self.plans, []
        return taken

    def hear(self, _: object, message: asyncpg.PostgresLogMessage) -> None:
        """Record a plan; other notices are ignored."""
        head, is_plan, plan = str(message.message).partition("plan:\n")
        if head.startswith("duration:") and is_plan:
            self.plans.append(ExecutedPlan.of(json.loads(plan)))


@contextmanager
def explaining(*engines: AsyncEngine) -> Iterator[Recorder]:
    """Record the plans of what the connections opened from now on execute.

    Dispose of the engines before and after, so that all connections are new.
    """
    recorder = Recorder()
    listen = partial(_connected, recorder)
    for engine in engines:
        event.listen(engine.sync_engine, "connect", listen)
    try:
        yield recorder
    finally:
        for engine in engines:
            event.remove(engine.sync_engine, "connect", listen)


def _connected(recorder: Recorder, connection: Any, _: object) -> None:
    async def set_up(driver: asyncpg.Connection[Any]) -> None:
        await driver.execute(LOAD)
        driver.add_log_listener(recorder.hear)

    connection.run_async(set_up)


def nodes_of(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A plan node and all nodes below it."""
    yield node
    for part in node.get("Plans", ()):
        yield from nodes_of(part)


def _rows(node: dict[str, Any]) -> float:
    return float(node.get("Actual Rows", 0) * node.get("Actual Loops", 0))


def _read(node: dict[str, Any]) -> float:
    """Rows that a node returned, and those that it read and discarded."""
    removed = sum(node.get(reason, 0) for reason in REMOVED)
    return _rows(node) + float(removed * node.get("Actual Loops", 0))


def _changed(node: dict[str, Any]) -> float:
    """Rows that a node that writes a table was given."""
    return max((_rows(part) for part in node.get("Plans", ())), default=0)


def _name(node: dict[str, Any]) -> str:
    on = node.get("Index Name") or node.get("Relation Name") or ""
    return f"{node['Node Type']} {on}".strip()
