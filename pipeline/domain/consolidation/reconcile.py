"""Pure function from decisions to changes of memories.

Decisions are applied in order to a copy of the memories they name. If the ledger has changed since
the model read it, these rules apply:

    UPDATE, DELETE or NOOP of a deleted memory        ADD: no fact is lost
    UPDATE or DELETE of an immutable memory           ADD
    any, of a memory that a user has edited           decide again; after some attempts, ADD
    ADD with the text of another memory               NOOP that names that memory
    UPDATE to the text of another memory              DELETE: it is superseded by that memory
    NOOP without a memory, of a repeated fact         NOOP that names the memory of the first one
    NOOP of a memory that the batch has reworded      ADD, unless the new text has the fact
    ADD or NOOP that says an expired memory again     UPDATE: it holds until the event's own date
    UPDATE of an expired memory                       UPDATE, which expires with the event's date

These rules apply to every decision:

    UPDATE or DELETE of a memory in open conflict     ADD: both are kept, see domain/conflicts
    ADD or UPDATE that contradicts a memory so        the same, and an open conflict
    any that decides an open conflict                 the other statements are superseded, too
    UPDATE or DELETE of what was said later           NOOP; the fact is stored as superseded by it
    UPDATE that keeps all of what was said later      UPDATE; the memory keeps its time
    UPDATE or DELETE by a statement of the past       ADD: both hold, at their times
    UPDATE or DELETE that loses something             withheld: ADD, and an open suggestion
    UPDATE or DELETE of what a person edited          withheld
    UPDATE or DELETE of a pinned memory               withheld
    text that a person deleted after the event came   NOOP
    DELETE of more than a share of the scope          withheld
    ADD of a request to forget                        NOOP: it is no memory
    UPDATE of a memory to a request to forget         DELETE
    any, of a request that names a fact of its batch  the memory of that fact is deleted, too

A withheld change is left to a person. If another decision on the same fact stores it, the line is
NOOP on the memory that stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any
from uuid import uuid5

from pipeline.domain.conflicts import OpenConflict, Statement, decides, undecided
from pipeline.domain.consolidation import conservation
from pipeline.domain.consolidation.objections import Loss, Objection
from pipeline.domain.consolidation.retire_limit import RetireLimit
from pipeline.domain.facts import Fact, FactKind, Outcome
from pipeline.domain.memories import SLOT, Memory, structure
from pipeline.domain.messages import Role
from pipeline.domain.suggestions import Suggestion, SuggestionKind
from pipeline.domain.writes import Change, ScopeMemories, Write
from pipeline.text.equality import text_hash
from pipeline.text.statements.endings import ending, is_requested
from pipeline.text.statements.forget_requests import asks_to_forget

# The reason to change no memory of an open conflict.
UNDECIDED = "Nothing decides between it and the memory."
# The reason to store nothing.
NO_MEMORY = "A request to forget is not stored."
# The reason to delete what a request to forget names in its own batch.
FORGOTTEN = "It asks to forget what was said before it."


@dataclass(frozen=True, slots=True)
class Refusal:
    """The reason not to apply a change. `suggested`: a person decides about the change. Not if
    nothing decides between two memories, or if both hold at different times.
    """

    reason: str
    suggested: bool = True


def add_instead(write: Write) -> Write:
    """Turn a write into an ADD of its fact, because a user edited the memory it names."""
    added = _with_fact_text(write, "A person has changed its memory.")
    return replace(added, outcome=Outcome.ADD, target=None)


def apply_writes(
    writes: Sequence[Write], memories: ScopeMemories, limit: RetireLimit | None = None
) -> list[Change]:
    """Apply the writes in order: one change per write. `memories` then has the final states.

    Of the decisions on one fact, those that are withheld come last, because they add the fact only
    if no other decision stores it. Before them come those on memories that were said later, which
    store it as history. `limit`: default no limit.
    """
    changes: list[Change] = []
    for _, group in groupby(writes, key=lambda write: write.position):
        own = _with_named([_carried_out(write) for write in group], memories)
        reviewed = [(_review(write, own, memories, limit), write) for write in own]
        stored = False
        for refusal, write in sorted(reviewed, key=lambda pair: _rank(pair[0], pair[1], memories)):
            # An earlier decision may have changed the memory for which the review allowed this one.
            if refusal := refusal or _protection(write, memories):
                change = _withhold(write, refusal, memories, stored=stored)
            else:
                change = _apply(write, memories)
            change = _contested(replace(change, write=write), memories)
            stored = stored or _stores(change)
            if change.outcome is not Outcome.NOOP or write.target is not None:
                memories.by_fact[text_hash(write.fact.text)] = change
            changes.append(change)
        changes += _settled(own[0], changes, memories)
    return changes


def _rank(refusal: Refusal | None, write: Write, memories: ScopeMemories) -> int:
    """Place of a decision among those on one fact."""
    if refusal is not None:
        return 2
    target = memories.active(write.target)
    return int(target is not None and not target.immutable and _is_older(write, target))


def _contested(change: Change, memories: ScopeMemories) -> Change:
    """The change, with the conflict that its memory raises, if any."""
    after = change.after
    if after is None or after.state != "ACTIVE" or change.write.appended:
        return change
    statement = Statement.of(after)
    against = [
        memory
        for memory in memories.about(after.slot)
        if memory.id != after.id
        and not memory.appended
        and undecided(statement, Statement.of(memory))
    ]
    if not against:
        return change
    event_id = change.write.event.id
    known = next((m.conflict_id for m in against if m.conflict_id), None)
    conflict = OpenConflict(
        id=known or uuid5(event_id, f"conflict:{after.id}"),
        slot=after.slot or "",
        event_id=event_id,
        memory=after,
        against=tuple(against),
    )
    for memory in (after, *against):
        memories.put(replace(memory, conflict_id=conflict.id))
    ids = ", ".join(str(memory.id) for memory in against)
    reason = f"{change.reason} (Open conflict with memory {ids}: nothing decides, both are kept.)"
    return replace(change, conflict=conflict, reason=reason)


def _settled(write: Write, changes: Sequence[Change], memories: ScopeMemories) -> list[Change]:
    """Supersede the statements of an open conflict that a later statement decides."""
    fact = Statement.of_fact(write.fact, write.said_at, write.event.id)
    stating = [
        memories.active(change.memory_id)
        for change in changes
        if change.write.position == write.position and change.outcome is not Outcome.DELETE
    ]
    successor = next((memory for memory in stating if memory is not None), None)
    if successor is None:
        return []
    decided = [
        memory
        for memory in memories.about(write.fact.slot)
        if memory.conflict_id
        and memory.id != successor.id
        and not memory.immutable
        and not memory.protection
        and decides(fact, Statement.of(memory))
    ]
    settled = []
    for memory in decided:
        reason = f"A later statement decides the conflict: memory {successor.id}."
        loser = replace(write, outcome=Outcome.DELETE, target=memory.id, reason=reason)
        after = replace(memory, state="RETIRED", superseded_by=successor.id)
        settled.append(_next_version(loser, memories, memory, after))
    return settled


def _is_request(write: Write) -> bool:
    """Tell if a write would store a request to forget that was extracted from a message."""
    options = write.event.options
    return options.infer and not options.procedural and asks_to_forget(write.text)


def _carried_out(write: Write) -> Write:
    """A DELETE in place of an UPDATE that would write a request to forget into a memory."""
    if write.outcome is not Outcome.UPDATE or not _is_request(write):
        return write
    return replace(write, outcome=Outcome.DELETE)


def _with_named(own: list[Write], memories: ScopeMemories) -> list[Write]:
    """The writes of one fact; of a request to forget also the DELETE of what it names in its batch.

    No model is shown the other facts of a batch. The memory is the only one of an earlier fact
    that states what the request names, and nothing else.
    """
    write, request = own[0], own[0].fact.text
    if not _is_request(replace(write, text=request)) or write.fact.attributed_to is not Role.USER:
        return own
    earlier = {change.memory_id for change in memories.by_fact.values()}
    active = [memory for key in earlier if (memory := memories.active(key)) is not None]
    named = [memory.id for memory in active if is_requested(request, memory.text)]
    deleted = {other.target for other in own if other.outcome is Outcome.DELETE}
    if len(named) != 1 or named[0] in deleted:
        return own
    delete = replace(write, outcome=Outcome.DELETE, target=named[0], reason=FORGOTTEN)
    others = [other for other in own if other.target not in (None, named[0])]
    return [*others, replace(delete, text=request)]


def _noop(
    write: Write, why: str, memory: Memory | None = None, *, text: str | None = None
) -> Change:
    """A NOOP, on a memory if there is one, with `why` appended to its reason."""
    memory_id, reason = memory.id if memory else None, f"{write.reason} ({why})"
    return Change(write, Outcome.NOOP, memory_id, text or write.text, reason, memory)


def _stores(change: Change) -> bool:
    """Tell if an active memory states the fact after the change."""
    standing = change.after is not None and change.after.state == "ACTIVE"
    return standing or change.outcome is Outcome.NOOP


def _apply(write: Write, memories: ScopeMemories) -> Change:
    if write.outcome is Outcome.ADD:
        return _add(write, memories)
    if write.outcome is Outcome.NOOP and write.target is None:
        return _repeat(write, memories)
    target = memories.active(write.target)
    if target is None:
        return _add(_with_fact_text(write, "Its memory is gone."), memories)
    if write.outcome is Outcome.NOOP:
        return _repeated(target, write, memories)
    return _change_target(target, write, memories)


def _repeated(target: Memory, write: Write, memories: ScopeMemories) -> Change:
    """A NOOP on a memory. A later statement of it moves its time, so that older ones yield."""
    fact = write.fact.text
    if target.id in memories.reworded and not conservation.keeps_all(fact, target.text):
        return _add(_with_fact_text(write, "Its memory has another text now."), memories)
    if memories.is_over(target.expiration_date):
        return _said_again(target, write, memories)
    after = _at_later_time(target, write, memories)
    return Change(write, Outcome.NOOP, target.id, fact, write.reason, target, restated=after)


def _at_later_time(target: Memory, write: Write, memories: ScopeMemories) -> Memory | None:
    """The memory with the time of a later statement of it; None if its time stays."""
    if write.said_at <= target.said_at or target.immutable or target.protection:
        return None
    after = replace(target, said_at=write.said_at)
    memories.put(after)
    return after


def _said_again(memory: Memory, write: Write, memories: ScopeMemories) -> Change:
    """An expired memory that a later statement says again holds again: no read shows it otherwise.

    Not if no model changes it, or if the event's own expiration date is over.
    """
    until = write.event.options.expiration_date
    fixed = memory.immutable or memory.protection is not None
    if fixed or write.said_at < memory.said_at or memories.is_over(until):
        return _noop(write, "It has expired.", memory, text=write.fact.text)
    metadata = {**memory.metadata, **write.event.options.metadata}
    after = replace(memory, expiration_date=until, metadata=metadata)
    again = replace(write, outcome=Outcome.UPDATE, reason=f"{write.reason} (It had expired.)")
    return _next_version(again, memories, memory, after)


def _change_target(target: Memory, write: Write, memories: ScopeMemories) -> Change:
    if target.immutable:
        return _add(_with_fact_text(write, "Its memory is immutable."), memories)
    if _is_older(write, target):
        return _superseded(target, write, memories)
    if write.outcome is Outcome.DELETE:
        return _next_version(write, memories, target, replace(target, state="RETIRED"))
    return _update(write, memories, target)


def _is_older(write: Write, target: Memory) -> bool:
    """Tell if a change is by an older statement that does not complete the memory."""
    if write.said_at >= target.said_at:
        return False
    if write.outcome is Outcome.UPDATE:
        return not conservation.keeps_all(target.text, write.text)
    return write.outcome is Outcome.DELETE


def _texts(writes: Sequence[Write], outcome: Outcome, *, without: Write) -> list[str]:
    return [w.text for w in writes if w is not without and w.outcome is outcome]


def _review(
    write: Write, own: Sequence[Write], memories: ScopeMemories, limit: RetireLimit | None
) -> Refusal | None:
    """The reason to withhold a change, or None. A DELETE that is allowed counts for the limit.

    It counts here, not when it is applied, because all decisions on a fact are reviewed first.
    """
    refusal, target = _refusal(write, own, memories), memories.active(write.target)
    if refusal is not None or write.outcome is not Outcome.DELETE:
        return refusal
    if target is None or target.immutable or write.said_at < target.said_at:
        return None
    if limit is not None and memories.retired[write.event.id] >= limit.most:
        return Refusal(f"One event may retire at most {limit.most} memories of this scope.")
    memories.retired[write.event.id] += 1
    return None


def _refusal(write: Write, own: Sequence[Write], memories: ScopeMemories) -> Refusal | None:
    """The reason to withhold a change because of its target, or None."""
    target = memories.active(write.target)
    if write.outcome not in (Outcome.UPDATE, Outcome.DELETE) or target is None or target.immutable:
        return None
    contested = not memories.is_over(target.expiration_date) and undecided(
        Statement.of_fact(write.fact, write.said_at, write.event.id), Statement.of(target)
    )
    if contested:
        return Refusal(target.protection or UNDECIDED, suggested=False)
    if target.protection is not None:
        return _protection(write, memories)
    deletes = write.outcome is Outcome.DELETE
    change = conservation.Replacement(
        old=target.text,
        new=None if deletes else write.text,
        fact=write.fact.text,
        successors=_texts(own, Outcome.UPDATE, without=write),
        added=_texts(own, Outcome.ADD, without=write),
        old_slot=target.slot,
        fact_slot=write.fact.slot,
        cardinality=write.fact.cardinality or target.cardinality,
        similarity=write.similarity,
    )
    if write.said_at < target.said_at and not conservation.is_of_another_time(change):
        same = conservation.same_matter(change)
        refused = None if same else Objection(Loss.OTHER_MATTER)
        return Refusal(refused.reason) if refused else None
    refused = conservation.objection(change)
    of_past = refused is not None and refused.loss is Loss.OTHER_TIME
    return Refusal(refused.reason, suggested=not of_past) if refused else None


def _protection(write: Write, memories: ScopeMemories) -> Refusal | None:
    """The reason to withhold a change of a pinned or edited memory, or None.

    None also if the change would not reach it: the statement is older, or its text is stored.
    """
    target = memories.active(write.target)
    if write.outcome not in (Outcome.UPDATE, Outcome.DELETE) or target is None or target.immutable:
        return None
    if target.protection is None or _is_older(write, target):
        return None
    key = text_hash(write.text)
    is_stored = key in memories.by_text or (write.event.id, key) in memories.forgotten
    if write.outcome is Outcome.UPDATE and is_stored:
        return None
    return Refusal(target.protection)


def _withhold(write: Write, refusal: Refusal, memories: ScopeMemories, *, stored: bool) -> Change:
    """Leave the memory as it is, suggest the change, and add the fact unless it is stored.

    A change that a conflict prevents is not suggested: the conflict is resolved instead. Nor is one
    by a statement of another time: both hold.
    """
    target = memories.by_id[write.target] if write.target else None
    assert target is not None
    suggestion = Suggestion(
        lane_id=target.lane_id,
        kind=SuggestionKind(write.outcome),
        event_id=write.event.id,
        fact_text=write.fact.text,
        targets=((target.id, target.version),),
        proposed_text=write.text if write.outcome is Outcome.UPDATE else None,
        reason=refusal.reason,
    )
    withheld = suggestion if refusal.suggested else None
    why = f"{write.outcome} withheld: {refusal.reason}"
    if stored or _is_request(replace(write, text=write.fact.text)):
        noop = _noop(write, why, target, text=write.fact.text)
        return replace(noop, suggestion=withheld)
    return replace(_add(_with_fact_text(write, why), memories), suggestion=withheld)


def _superseded(target: Memory, write: Write, memories: ScopeMemories) -> Change:
    """Store a statement that is older than its memory as history: retired, and superseded by it.

    Once, if it is older than several memories; not if another decision on the fact has stored it.
    """
    why = "The memory was said later."
    statement, noop = _with_fact_text(write, why), _noop(write, why, target, text=write.fact.text)
    if _is_request(statement):
        return _noop(statement, NO_MEMORY)
    if (forgotten := _forgotten(statement, memories)) is not None:
        return forgotten
    if write.new_id in memories.by_id:
        return noop
    older = _new_memory(statement, memories)
    older = replace(older, state="RETIRED", superseded_by=target.id)
    memories.put(older)
    return replace(noop, after=older, vector=write.fact_vector)


def _repeat(write: Write, memories: ScopeMemories) -> Change:
    """A NOOP that names the memory of the same fact, or an ADD if that memory was deleted since."""
    earlier = memories.by_fact.get(text_hash(write.fact.text))
    memory_id = earlier.memory_id if earlier else None
    memory = memories.active(memory_id)
    if earlier and earlier.outcome is not Outcome.DELETE and memory_id and not memory:
        return _add(_with_fact_text(write, "What it repeats is gone."), memories)
    after = _at_later_time(memory, write, memories) if memory else None
    return Change(write, Outcome.NOOP, memory_id, write.fact.text, write.reason, restated=after)


def _with_fact_text(write: Write, why: str) -> Write:
    """The write with the fact's own text, and `why` appended to its reason."""
    return replace(
        write, text=write.fact.text, vector=write.fact_vector, reason=f"{write.reason} ({why})"
    )


def _add(write: Write, memories: ScopeMemories) -> Change:
    """Add a memory; a NOOP if an active memory has the text, or if it is a request to forget."""
    if _is_request(write):
        return _noop(write, NO_MEMORY)
    if (same := _same_text(write, memories)) is not None:
        return same
    memory = _new_memory(write, memories)
    memories.put(memory)
    return Change(
        write, Outcome.ADD, memory.id, memory.text, write.reason, after=memory, vector=write.vector
    )


def _new_memory(write: Write, memories: ScopeMemories) -> Memory:
    """The first state of the fact's own memory."""
    options = write.event.options
    ended = write.appended and ending(write.text) is not None
    memory = Memory(
        id=write.new_id,
        lane_id=memories.scope.lane_id,
        scope=memories.scope,
        text=write.text,
        metadata=dict(options.metadata),
        attributed_to=write.fact.attributed_to,
        state="ACTIVE",
        immutable=options.immutable,
        expiration_date=options.expiration_date,
        version=1,
        event_id=write.event.id,
        message_ordinal=write.fact.source.message,
        said_at=write.said_at,
        valid_from=write.fact.valid_from or write.said_at,
        created_at=write.said_at,
        categories=write.fact.categories,
        appended=write.appended and write.fact.single_valued and not ended,
        **structure(write.fact),
    )
    # The end of one value is no value that is current beside the others.
    return replace(memory, attribute=None, cardinality=None) if ended else memory


def _update(write: Write, memories: ScopeMemories, target: Memory) -> Change:
    """Change the target's text, structure and options.

    If another active memory has the text, the target is merged into it, because its former text no
    longer holds.
    """
    if (same := _same_text(write, memories)) is not None:
        holder = memories.active(same.memory_id)
        if holder is None or holder.id == target.id or target.protection is not None:
            return same
        reason = f"{write.reason} (Memory {holder.id} has this text.)"
        merged = replace(write, outcome=Outcome.DELETE, reason=reason)
        after = replace(target, state="RETIRED", superseded_by=holder.id)
        return _next_version(merged, memories, target, after)
    options = write.event.options
    older = write.said_at < target.said_at
    is_over = memories.is_over(target.expiration_date)
    kept_until = None if is_over else target.expiration_date
    after = replace(
        target,
        text=write.text,
        metadata={**target.metadata, **options.metadata},
        expiration_date=options.expiration_date or kept_until,
        categories=write.fact.categories or target.categories,
        valid_from=write.fact.valid_from or (target.valid_from if older else write.said_at),
        **_restated(write.fact, target),
    )
    if write.appended:
        after = replace(after, attribute=None, cardinality=None)
    after = replace(after, appended=target.appended and after.slot == target.slot)
    return replace(_next_version(write, memories, target, after), vector=write.vector)


def _restated(fact: Fact, target: Memory) -> dict[str, Any]:
    """The structure of an updated memory: the fact's, as far as it has one."""
    if fact.kind is FactKind.OTHER and fact.slot is None:
        return {"speaker": fact.speaker, "confidence": fact.confidence}
    values = structure(fact)
    if fact.slot is None:
        return values | {name: getattr(target, name) for name in SLOT}
    same = fact.slot == target.slot
    return values | {"cardinality": fact.cardinality or (target.cardinality if same else None)}


def _same_text(write: Write, memories: ScopeMemories) -> Change | None:
    """A NOOP if an active memory of the scope has the text or a person deleted it, else None.

    An expired memory with the text holds again.
    """
    memory_id = memories.by_text.get(text_hash(write.text))
    if memory_id is None:
        return _forgotten(write, memories)
    memory = memories.by_id[memory_id]
    if memories.is_over(memory.expiration_date):
        return _said_again(memory, write, memories)
    return _noop(write, "This text is already stored.", memory)


def _forgotten(write: Write, memories: ScopeMemories) -> Change | None:
    """A NOOP if a person has deleted the text since the event was accepted, else None."""
    if (write.event.id, text_hash(write.text)) not in memories.forgotten:
        return None
    return _noop(write, "A person has deleted this text.")


def _next_version(write: Write, memories: ScopeMemories, before: Memory, after: Memory) -> Change:
    after = replace(
        after,
        version=before.version + 1,
        event_id=write.event.id,
        message_ordinal=write.fact.source.message,
        said_at=max(write.said_at, before.said_at),
    )
    memories.put(after)
    if after.text != before.text:
        memories.reworded.add(after.id)
    return Change(write, write.outcome, after.id, after.text, write.reason, before, after)
