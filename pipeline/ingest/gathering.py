"""Gathering: turns of a scope wait for each other, so that one extraction reads them together.

    the topic changes with a turn           the turns before it run
    enough messages or tokens               all of them run
    the oldest has waited long enough       all of them run
    an event that cannot join them waits    all of them run
    otherwise                               they wait

The topic is compared by words, without a model. A missed change only costs time, and a wrong one
only a smaller batch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from math import sqrt

from pipeline.domain.events import Event, StageName
from pipeline.domain.lanes import Batch, Gather
from pipeline.domain.messages import Role
from pipeline.domain.modes import Mode
from pipeline.text.terms import terms
from pipeline.text.tokens import tokens

# Fewest terms of a turn that have a topic, and the cosine of two topics below which they
# differ. Source: test_gather_rules; short answers ("yes, on Friday") belong to any topic.
LEAST_TERMS, SAME_TOPIC = 5, 0.05


def can_gather(batch: Batch) -> bool:
    """Tell if the events of a batch may wait for others: adds of a conversation, not yet read."""
    options = batch.options
    return (
        batch.gather is not None
        and batch.mode is not Mode.TURNS
        and options.infer
        and not options.procedural
        and options.question is None
        and options.dry_run is None
        and not batch.replayed
        and batch.payer == batch.scope.project_id
        and StageName.EXTRACT not in batch.outputs
    )


def runs_now(batch: Batch, limits: Gather, *, more_behind: bool) -> int:
    """Number of the first events of a batch that run now; 0 while all of them wait.

    `more_behind`: events wait behind the batch that cannot join it.
    """
    if (shift := topic_shift(batch.events)) is not None:
        return shift
    spoken = [
        message.message for message in batch.messages if message.message.role is not Role.SYSTEM
    ]
    full = (
        more_behind
        or batch.age_s >= limits.seconds
        or len(spoken) >= limits.messages
        or sum(tokens(message.content) for message in spoken) >= limits.tokens
    )
    return len(batch.events) if full else 0


def topic_shift(events: Sequence[Event]) -> int | None:
    """Position of the first event about another topic than those before it, or None."""
    before: Counter[str] = Counter()
    for position, event in enumerate(events):
        words = Counter(_words(event))
        if _differ(before, words):
            return position
        before += words
    return None


def _words(event: Event) -> Iterable[str]:
    for sourced in event.messages:
        if sourced.message.role is not Role.SYSTEM:
            yield from terms(sourced.message.content)


def _differ(before: Counter[str], words: Counter[str]) -> bool:
    if min(len(before), len(words)) < LEAST_TERMS:
        return False
    common = sum(count * before[word] for word, count in words.items())
    return common < SAME_TOPIC * _length(before) * _length(words)


def _length(words: Counter[str]) -> float:
    return sqrt(sum(count * count for count in words.values()))
