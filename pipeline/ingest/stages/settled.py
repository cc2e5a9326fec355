"""settled: decisions that need no model.

    verbatim add                                                ADD
    mode append                                                 ADD, or the end of a memory
    text that is stored, or occurs earlier in the same batch    NOOP
    the same statement in another spelling                      NOOP
    an assistant's repetition of a memory, or of the batch      NOOP
    nothing near: no common slot, name or word, low cosine      ADD (low: see cosine_scale.py)

A repeat is not settled if another event of the batch says something near in between.

Without slots, statements with the same stated slot, or of one topic or matter, are near, and so is
any memory to a fact that says that something changed: it has no word of the memory it replaces.

Nothing is merged or changed by similarity alone. Retrieve saves these decisions with its output;
later stages read them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from uuid import UUID

from pipeline.domain.consolidation.candidates import About, nearness
from pipeline.domain.consolidation.conservation import matter, same_statement
from pipeline.domain.consolidation.echoes import is_echo, is_quoted
from pipeline.domain.facts import Decision, Fact, Neighbour, Outcome
from pipeline.domain.lanes import Batch
from pipeline.domain.messages import Role
from pipeline.domain.stage_outputs import Extracted, Retrieved, read
from pipeline.domain.vectors import unpack
from pipeline.ingest.stages.appended import decide_appended
from pipeline.text.equality import text_hash
from pipeline.text.statements.polarity import changes
from pipeline.text.statements.stated_slots import same_slot, stated_slot
from pipeline.text.terms import terms
from pipeline.text.word_scores import prefixes

VERBATIM = "Stored as said (infer=false)."
PROCEDURE = "The summary of a procedure is a memory of its own."
ALREADY_STORED = "Exactly this is already stored."
SAME_STATEMENT = "The same statement is already stored."
ECHO = "The assistant repeats what is already stored."
ECHO_OF_TURN = "The assistant repeats what was said earlier in the same batch."
REPEATED_IN_BATCH = "Exactly this was said earlier in the same batch."
NOTHING_SIMILAR = "Nothing similar is stored."


def settle(batch: Batch, extracted: Extracted, retrieved: Retrieved) -> Retrieved:
    """The output of retrieve with the decisions that need no model."""
    facts = extracted.facts
    decided = _repeats(batch, extracted, retrieved)
    if batch.options.infer and not batch.options.procedural and not extracted.appends:
        decided = _unchallenged(batch, facts, decided, retrieved)
    left = [i for i in range(len(facts)) if i not in decided]
    if batch.options.procedural or not batch.options.infer:
        reason = PROCEDURE if batch.options.procedural else VERBATIM
        decided |= {i: Decision(i, Outcome.ADD, reason, facts[i].text) for i in left}
    elif extracted.appends:
        decided |= {i: decide_appended(i, facts[i], retrieved.neighbours) for i in left}
    else:
        near = _near_each_other(facts, left, retrieved)
        decided |= {
            i: Decision(i, Outcome.ADD, NOTHING_SIMILAR, facts[i].text)
            for i in left
            if i not in near
            and not any(_near(facts[i], n, retrieved.far) for n in retrieved.neighbours)
        }
    return replace(retrieved, settled=tuple(decided[i] for i in sorted(decided)))


def settled(batch: Batch) -> dict[int, Decision]:
    """The saved decisions that need no model, by the fact's position."""
    retrieved = read(batch, Retrieved)
    if retrieved.settled is None:  # saved by a release that computed them in each stage
        retrieved = settle(batch, read(batch, Extracted), retrieved)
    return {decision.fact: decision for decision in retrieved.settled or ()}


def _repeats(batch: Batch, extracted: Extracted, retrieved: Retrieved) -> dict[int, Decision]:
    """NOOPs for facts that are stored or come earlier in this batch, by position.

    A NOOP for an earlier fact names no memory: that fact is applied later.
    """
    first: dict[bytes, int] = {}
    decided: dict[int, Decision] = {}
    for position, fact in enumerate(extracted.facts):
        earlier = first.setdefault(text_hash(fact.text), position)
        if (stored := retrieved.known[position]) is not None:
            decided[position] = Decision(position, Outcome.NOOP, ALREADY_STORED, memory_id=stored)
        elif not extracted.appends and (same := _same(fact, retrieved.neighbours)):
            decided[position] = Decision(position, Outcome.NOOP, SAME_STATEMENT, memory_id=same)
        elif may_echo(batch, fact) and (echo := _echo(batch, position, extracted, retrieved)):
            decided[position] = echo
        elif earlier != position:
            decided[position] = Decision(position, Outcome.NOOP, REPEATED_IN_BATCH)
    return decided


def may_echo(batch: Batch, fact: Fact) -> bool:
    """Tell if a fact may be an assistant's repetition: extracted from what the assistant said."""
    extracts = batch.options.infer and not batch.options.procedural
    return extracts and fact.attributed_to is Role.ASSISTANT


def _echo(
    batch: Batch, position: int, extracted: Extracted, retrieved: Retrieved
) -> Decision | None:
    """The NOOP for an assistant's repetition of a memory or of an earlier fact, or None."""
    fact, neighbours = extracted.facts[position], retrieved.neighbours
    message = batch.events[fact.source.event].messages[fact.source.message].message.content
    memories = [neighbour.text for neighbour in neighbours]
    place = next((n for n, text in enumerate(memories) if is_echo(fact.text, text)), None)
    if place is None:
        place = is_quoted(fact.text, message, memories)
    if place is not None:
        return Decision(position, Outcome.NOOP, ECHO, memory_id=neighbours[place].memory_id)
    earlier = (f for f in extracted.facts[:position] if f.attributed_to is not Role.ASSISTANT)
    if any(is_echo(fact.text, other.text) for other in earlier):
        return Decision(position, Outcome.NOOP, ECHO_OF_TURN)
    return None


def _same(fact: Fact, neighbours: Sequence[Neighbour]) -> UUID | None:
    """The memory that states the same in another spelling, if there is one."""
    return next((n.memory_id for n in neighbours if same_statement(fact.text, n.text)), None)


def _near(fact: Fact, neighbour: Neighbour, far: float) -> bool:
    if neighbour.similarity >= far:
        return True
    if neighbour.slot is None and fact.slot is None and changes(fact.text):
        return True
    return is_related(fact.text, fact.slot, neighbour.text, neighbour.slot)


def is_related(text: str, slot: str | None, other_text: str, other_slot: str | None) -> bool:
    """True for slots of one subject and topic, or a common word besides the subject.

    Without slots also for one stated slot, topic or matter.
    """
    if slot and other_slot and nearness(slot, other_slot):
        return True
    if _words(text) & _words(other_text):
        return True
    return not (slot and other_slot) and _of_one_matter(text, other_text)


def _of_one_matter(text: str, other_text: str) -> bool:
    """True if the words state one slot, or are of one topic or matter."""
    key, other_key = stated_slot(text), stated_slot(other_text)
    if key and other_key and same_slot(key, other_key):
        return True
    about, other = About.of(terms(text)), About.of(terms(other_text))
    return bool(about.topics & other.topics or about.matters & other.matters)


def _words(text: str) -> set[str]:
    return set(prefixes(sorted(matter(text))))


def _unchallenged(
    batch: Batch, facts: Sequence[Fact], decided: Mapping[int, Decision], retrieved: Retrieved
) -> dict[int, Decision]:
    """The repeats that no other event of the batch can have contradicted before them.

    In "lives in Oslo", "lives in Bergen", "lives in Oslo" the last statement repeats the first one,
    and changes what the second one has changed.
    """
    hashes = [text_hash(fact.text) for fact in facts]
    others = [place for place in range(len(facts)) if place not in decided]
    unchallenged = {}
    for place, decision in decided.items():
        stored = retrieved.known[place] is not None or decision.memory_id is not None
        since = 0 if stored else hashes.index(hashes[place]) + 1
        between = [n for n in others if since <= n < place and hashes[n] != hashes[place]]
        if may_echo(batch, facts[place]) or not any(
            _is_near_fact(facts, n, place, retrieved) for n in between
        ):
            unchallenged[place] = decision
    return unchallenged


def _near_each_other(facts: Sequence[Fact], left: Sequence[int], retrieved: Retrieved) -> set[int]:
    """Positions of facts that may repeat or contradict a fact of another event of the batch."""
    near: set[int] = set()
    for place, other in combinations(left, 2):
        if _is_near_fact(facts, place, other, retrieved):
            near |= {place, other}
    return near


def _is_near_fact(facts: Sequence[Fact], place: int, other: int, retrieved: Retrieved) -> bool:
    """Tell if a fact may repeat or contradict one of another event."""
    first, second = facts[place], facts[other]
    if first.source.event == second.source.event:  # a turn does not contradict itself
        return False
    cosine = float(unpack(retrieved.vectors[place]) @ unpack(retrieved.vectors[other]))
    return cosine >= retrieved.far or is_related(first.text, first.slot, second.text, second.slot)
