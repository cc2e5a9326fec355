"""Consolidation: prompt that asks for decisions on each fact, and the parser of its answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from itertools import groupby
from typing import Annotated

from pydantic import BaseModel, BeforeValidator

from pipeline.domain.consolidation.conservation import Replacement, objection, same_matter
from pipeline.domain.consolidation.repeats import can_state, takes_back_nothing
from pipeline.domain.errors import MalformedAnswer
from pipeline.domain.events import Instructions
from pipeline.domain.facts import Decision, Fact, Neighbour, Outcome
from pipeline.models import prompts
from pipeline.models.json_answers import SHOWN_ERRORS, json_object, valid_rows
from pipeline.models.questions import integer_ids
from pipeline.models.questions.repair import Prompt
from pipeline.models.questions.text_field import Number, OptionalText, Reason
from pipeline.text.equality import same_text
from pipeline.text.statements.forget_requests import asks_to_forget

NO_REASON = "The model gave no reason."
UNDECIDED = "The model made no valid decision on this fact."


def settled(facts: Sequence[Fact]) -> tuple[Decision, ...]:
    """Decisions without a model call, where no memory is similar: ADD, and NOOP for duplicates."""
    seen: set[str] = set()
    decisions = []
    for at, fact in enumerate(facts):
        if same_text(fact.text) in seen:
            decisions.append(Decision(at, Outcome.NOOP, "An earlier fact says the same."))
        else:
            decisions.append(Decision(at, Outcome.ADD, "No memory is similar.", fact.text))
        seen.add(same_text(fact.text))
    return tuple(decisions)


def decide_prompt(
    facts: Sequence[Fact], neighbours: Sequence[Neighbour], instructions: Instructions
) -> Prompt[tuple[Decision, ...]]:
    """The prompt for decisions on each fact, given the similar memories."""
    text = prompts.render(
        "decide",
        wishes=prompts.wishes(instructions),
        memories=integer_ids.dated((neighbour.text, neighbour.said_at) for neighbour in neighbours),
        facts=integer_ids.dated((fact.text, fact.said_at) for fact in facts),
    )
    parse = partial(parse_decisions, facts=facts, neighbours=neighbours)
    return Prompt("decide", text, DecisionsAnswer, parse, partial(parse, mend=True))


def parse_decisions(
    text: str, facts: Sequence[Fact], neighbours: Sequence[Neighbour], *, mend: bool = False
) -> tuple[Decision, ...]:
    """At least one decision for each fact, in the order of the facts; each has another target.

    An UPDATE that drops values of its memory, a DELETE that the fact does not state, or a NOOP on a
    fact that nothing states is sent back for repair; the hint of the error names the loss.

    `mend` is for the repaired answer, after which there is no further call. A decision that is
    still not usable is weakened, and its reason says so; the other decisions stay:

    - UPDATE of a memory that was not offered, or without a text, becomes ADD of the fact;
    - DELETE or NOOP of a memory that was not offered becomes NOOP without a target;
    - NOOP on a fact that nothing states becomes ADD of the fact;
    - ADD, or NOOP without a target, is dropped if its fact has another decision;
    - if several decisions change one memory, the last counts and the others become NOOP on it;
    - an invalid row is dropped, and a fact without a row becomes ADD. Only for the facts of one
      event: a batch of several is halved instead.

    Errors: MalformedAnswer; with `mend`, for one event, only if no row is valid.
    """
    faults: list[str] = []
    rows = valid_rows(json_object(text), "decisions", DecisionRow, faults)
    if mend and rows and len({fact.source.event for fact in facts}) == 1:
        rows = _one_for_each(rows, len(facts))
    elif faults:
        raise MalformedAnswer("; ".join(faults[:SHOWN_ERRORS]))
    rows.sort(key=lambda row: row.fact)
    _check_facts(rows, len(facts))
    if mend:
        mended = [_mended(row, len(neighbours)) for row in rows]
        # The last one of each fact and target.
        once = {(row.fact, row.aim): row for row in _without_redundant_adds(mended)}
        rows = _stated(_changed_once(list(once.values())), facts, neighbours)
    _check_rows(rows, len(neighbours))
    if not mend:
        _check_losses(rows, facts, neighbours)
    return tuple(_decision(row, integer_ids.item(facts, row.fact), neighbours) for row in rows)


def _word(value: object) -> object:
    """The value; a string without blanks around it, in upper case."""
    return value.strip().upper() if isinstance(value, str) else value


class DecisionRow(BaseModel):
    """One decision of the answer. `fact` and `target` are numbers of the prompt, from 1."""

    fact: int
    action: Annotated[Outcome, BeforeValidator(_word)]
    target: Number = None
    text: OptionalText = None
    reason: Reason = None

    @property
    def changes(self) -> int | None:
        """Number of the memory that this decision updates or deletes, or None."""
        return self.target if self.action in (Outcome.UPDATE, Outcome.DELETE) else None

    @property
    def aim(self) -> int | None:
        """Number of the memory that this decision is about; ADD has none."""
        return None if self.action is Outcome.ADD else self.target


class DecisionsAnswer(BaseModel):
    """The answer to the question "decide"."""

    decisions: list[DecisionRow]


def _by_fact(rows: Sequence[DecisionRow]) -> list[list[DecisionRow]]:
    return [list(own) for _, own in groupby(rows, key=lambda row: row.fact)]


def _one_for_each(rows: Sequence[DecisionRow], count: int) -> list[DecisionRow]:
    """The rows on the facts, and an ADD of each fact that has none."""
    decided = [row for row in rows if 1 <= row.fact <= count]
    missing = set(range(1, count + 1)) - {row.fact for row in decided}
    added = [DecisionRow(fact=n, action=Outcome.ADD, reason=UNDECIDED) for n in sorted(missing)]
    return [*decided, *added] if decided else list(rows)


def _check_facts(rows: Sequence[DecisionRow], count: int) -> None:
    """Check that each fact has a decision. Errors: MalformedAnswer."""
    numbers = sorted({row.fact for row in rows})
    if numbers != list(range(1, count + 1)):
        answered = ", ".join(map(str, numbers[: count + SHOWN_ERRORS])) or "none"
        raise MalformedAnswer(
            f"each of the facts 1 to {count} needs a decision; decided were: {answered}"
        )


def _check_rows(rows: Sequence[DecisionRow], offered: int) -> None:
    """Check targets and texts, and that no fact or memory has decisions that exclude each other.

    Errors: MalformedAnswer.
    """
    for row in rows:
        _check_row(row, offered)
    for own in _by_fact(rows):
        aims = Counter(row.aim for row in own)
        if len(own) > 1 and (None in aims or max(aims.values()) > 1):
            raise MalformedAnswer(
                f"the decisions on fact {own[0].fact} exclude each other: each needs another"
                " target, and ADD or NOOP without a target stands alone"
            )
    changes = Counter(row.changes for row in rows if row.changes is not None)
    for number, times in changes.items():
        if times > 1:
            raise MalformedAnswer(
                f"{times} decisions change memory {number}; merge them into the last of them"
                " and make the others NOOP"
            )


def _check_row(row: DecisionRow, offered: int) -> None:
    where = f"the decision on fact {row.fact}"
    if row.changes is None and row.action in (Outcome.UPDATE, Outcome.DELETE):
        raise MalformedAnswer(f"{where} is {row.action} without a target")
    if row.action is Outcome.UPDATE and row.text is None:
        raise MalformedAnswer(f"{where} is UPDATE without a text")
    if row.aim is not None:
        integer_ids.check(f"{where}: target", row.aim, offered, "memories")


def _check_losses(
    rows: Sequence[DecisionRow], facts: Sequence[Fact], neighbours: Sequence[Neighbour]
) -> None:
    """Check that no decision loses anything. Errors: MalformedAnswer; its hint names the losses."""
    unstated = _unstated(rows, facts, neighbours)
    losses = [f"the NOOP on fact {number}" for number in unstated]
    hints = [f"Fact {number}: no memory says all of it." for number in unstated]
    for row in rows:
        if row.changes is None:
            continue
        fact, memory = integer_ids.item(facts, row.fact), integer_ids.item(neighbours, row.changes)
        others = [other for other in rows if other.fact == row.fact and other is not row]
        refused = objection(_replacement(row, fact, memory, others))
        if refused is not None and not _is_older(fact, memory):
            losses.append(f"the {row.action} of memory {row.changes} by fact {row.fact}")
            hints.append(f"Memory {row.changes}: {refused.reason}")
    if losses:
        raise MalformedAnswer(
            f"{'; '.join(losses)} would lose something: keep what the fact does not change in the"
            " text, or decide ADD",
            hint=" ".join(hints),
        )


def _unstated(
    rows: Sequence[DecisionRow], facts: Sequence[Fact], neighbours: Sequence[Neighbour]
) -> list[int]:
    """The numbers of the facts that have NOOPs alone, and would be lost with them."""
    changed = {row.changes for row in rows if row.changes is not None}
    stored = sorted({row.fact for row in rows if row.action in (Outcome.ADD, Outcome.UPDATE)})
    others = [integer_ids.item(facts, number) for number in stored]
    numbers = []
    for own in _by_fact(rows):
        aims = {row.aim for row in own if row.aim is not None}
        if all(row.action is Outcome.NOOP for row in own) and aims.isdisjoint(changed):
            fact = integer_ids.item(facts, own[0].fact)
            targets = [integer_ids.item(neighbours, aim) for aim in sorted(aims)]
            placed = any(_has_place(fact, other) for other in others)
            if not placed and not _needs_no_memory(fact, targets, neighbours):
                numbers.append(own[0].fact)
    return numbers


def _needs_no_memory(
    fact: Fact, targets: Sequence[Neighbour], neighbours: Sequence[Neighbour]
) -> bool:
    """Tell if a NOOP on the targets loses nothing: one of them says the fact, or something later.

    Without a target: if any memory says it, or if the fact takes back what none of them says.
    """
    memories = targets or neighbours
    return (
        asks_to_forget(fact.text)
        or any(can_state(m.text, fact.text, similarity=m.similarity) for m in memories)
        or any(_is_older(fact, memory) for memory in targets)
        or (not targets and takes_back_nothing(fact.text, [m.text for m in memories]))
    )


def _has_place(fact: Fact, other: Fact) -> bool:
    """Tell if another fact of the batch, which is stored, says a fact or takes its place."""
    change = Replacement(
        fact.text, other.text, other.text, old_slot=fact.slot, fact_slot=other.slot
    )
    return can_state(other.text, fact.text) or same_matter(change)


def _replacement(
    row: DecisionRow, fact: Fact, memory: Neighbour, others: Sequence[DecisionRow]
) -> Replacement:
    """The change of a memory that a row of the answer asks for."""
    return Replacement(
        old=memory.text,
        new=row.text if row.action is Outcome.UPDATE else None,
        fact=fact.text,
        successors=[other.text or fact.text for other in others if other.action is Outcome.UPDATE],
        added=[fact.text for other in others if other.action is Outcome.ADD],
        old_slot=memory.slot,
        fact_slot=fact.slot,
        similarity=memory.similarity,
    )


def _is_older(fact: Fact, memory: Neighbour) -> bool:
    """Tell if the fact was said before the memory, which it then cannot change."""
    return bool(fact.said_at and memory.said_at and fact.said_at < memory.said_at)


def _mended(row: DecisionRow, offered: int) -> DecisionRow:
    """The row, weakened to ADD or NOOP if its target was not offered or its text is missing."""
    if row.action is Outcome.ADD or (row.action is Outcome.NOOP and row.target is None):
        return row
    if row.target is None or not 1 <= row.target <= offered:
        action = Outcome.ADD if row.action is Outcome.UPDATE else Outcome.NOOP
        return _weakened(row, action, "named no offered memory", target=None)
    if row.action is Outcome.UPDATE and row.text is None:
        return _weakened(row, Outcome.ADD, "had no text", target=None)
    return row


def _without_redundant_adds(rows: Sequence[DecisionRow]) -> list[DecisionRow]:
    """The rows without an ADD, or a NOOP without a target, whose fact has another decision."""
    chosen: list[DecisionRow] = []
    for own in _by_fact(rows):
        aimed = [row for row in own if row.aim is not None]
        adds = [row for row in own if row.action is Outcome.ADD]
        chosen += aimed or adds[:1] or own[:1]
    return chosen


def _changed_once(rows: Sequence[DecisionRow]) -> list[DecisionRow]:
    """The rows, with all but the last change of each memory weakened to NOOP."""
    last = {row.changes: row.fact for row in rows}
    why = "is overtaken by a later change of the same memory"
    return [
        row
        if row.changes is None or last[row.changes] == row.fact
        else _weakened(row, Outcome.NOOP, why, target=row.target)
        for row in rows
    ]


def _stated(
    rows: Sequence[DecisionRow], facts: Sequence[Fact], neighbours: Sequence[Neighbour]
) -> list[DecisionRow]:
    """The rows, with the NOOPs on a fact that nothing states made one ADD."""
    unstated = _unstated(rows, facts, neighbours)
    why = "was on a memory that does not say it"
    chosen: list[DecisionRow] = []
    for own in _by_fact(rows):
        is_stated = own[0].fact not in unstated
        chosen += own if is_stated else [_weakened(own[0], Outcome.ADD, why, target=None)]
    return chosen


def _weakened(row: DecisionRow, action: Outcome, why: str, *, target: int | None) -> DecisionRow:
    reason = f"{row.reason or NO_REASON} (Made {action}: the {row.action} {why}.)"
    return row.model_copy(update={"action": action, "reason": reason, "target": target})


def _decision(row: DecisionRow, fact: Fact, neighbours: Sequence[Neighbour]) -> Decision:
    target = integer_ids.item(neighbours, row.aim).memory_id if row.aim else None
    text = {Outcome.ADD: fact.text, Outcome.UPDATE: row.text}.get(row.action)
    return Decision(row.fact - 1, row.action, row.reason or NO_REASON, text, target)
