"""repeated: facts of turns that were processed before, without a model call.

A turn is a repeat if the scope has processed the same messages with the same options shortly
before, and each line of that receipt names a memory whose text has not changed since. Two kinds of
turns are never repeats, because they can mean something else today: those that name a relative
time, and those whose messages do not contain what their facts state ("Yes, both.").
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from pipeline.domain.consolidation.conservation import matter
from pipeline.domain.events import Event
from pipeline.domain.facts import Fact
from pipeline.domain.lanes import Batch
from pipeline.domain.messages import Source
from pipeline.memories.store import Memories
from pipeline.text.statements.values import stated
from pipeline.text.times.when import names_relative_time

# Number of the scope's last events in which a repeat is looked up.
REACH = 20
# Least share of a fact's words that the messages contain.
SELF_CONTAINED = 0.5


async def repeated_facts(batch: Batch, memories: Memories) -> dict[int, tuple[Fact, ...]]:
    """The facts of each event of the batch that is a repeat, by its position in the batch."""
    if not batch.context:
        return {}
    lines = await memories.stated_before(
        batch.scope,
        [event.id for event in batch.events],
        before=min(event.seq for event in batch.events),
        reach=REACH,
    )
    by_event = {key: list(own) for key, own in groupby(lines, key=lambda line: line.event_id)}
    repeats = {}
    for position, event in enumerate(batch.events):
        own = by_event.get(event.id, [])
        facts = tuple(
            Fact(
                line.text,
                Source(position, line.message_ordinal),
                event.messages[line.message_ordinal].message.role,
            )
            for line in own
        )
        if facts and all(line.stands for line in own) and _self_contained(event, facts):
            repeats[position] = facts
    return repeats


def _self_contained(event: Event, facts: Sequence[Fact]) -> bool:
    """Tell if the messages mean the same at any time and after any other message."""
    if any(names_relative_time(s.message.content, s.said_at) for s in event.messages):
        return False
    text = "\n".join(sourced.message.content for sourced in event.messages)
    words, values = matter(text), stated(text)
    for fact in facts:
        about = matter(fact.text)
        names = [value for value in stated(fact.text).values if not value.leads]
        if len(about & words) < SELF_CONTAINED * len(about):
            return False
        if not all(values.keeps(name) for name in names):
            return False
    return True
