"""Consolidation: prompt that asks for a decision on each fact, and the parser of its answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial

from pydantic import BaseModel

from pipeline.domain.errors import MalformedAnswer
from pipeline.domain.events import Instructions
from pipeline.domain.facts import Decision, Fact, Neighbour, Outcome
from pipeline.models import prompts
from pipeline.models.json_answers import (
    SHOWN_ERRORS,
    check_number,
    parsed,
)
from pipeline.models.questions.repair import Prompt
from pipeline.models.questions.rows import Text
from pipeline.text.equality import same_text


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
    """The prompt for one decision on each fact, given the similar memories."""
    text = prompts.render(
        "decide",
        wishes=prompts.wishes(instructions),
        memories=prompts.numbered(neighbour.text for neighbour in neighbours),
        facts=prompts.numbered(fact.text for fact in facts),
    )
    parse = partial(parse_decisions, facts=facts, neighbours=neighbours)
    return Prompt("decide", text, DecisionsAnswer, parse, partial(parse, mend=True))


def parse_decisions(
    text: str, facts: Sequence[Fact], neighbours: Sequence[Neighbour], *, mend: bool = False
) -> tuple[Decision, ...]:
    """Exactly one decision for each fact, in the order of the facts.

    `mend` is for the repaired answer, after which there is no further call. A decision on a memory
    that was not offered is weakened, and its reason says so; the other decisions stay:

    - UPDATE of such a memory becomes ADD of its text;
    - DELETE or NOOP of such a memory becomes NOOP without a target;
    - if several decisions change one memory, the last counts and the others become NOOP on it.

    Errors: MalformedAnswer.
    """
    rows = _one_a_fact(parsed(text, DecisionsAnswer).decisions, len(facts))
    if mend:
        rows = _changed_once([_mended(row, len(neighbours)) for row in rows])
    _check_targets(rows, len(neighbours))
    return tuple(_decision(row, fact, neighbours) for row, fact in zip(rows, facts, strict=True))


class DecisionRow(BaseModel):
    """One decision of the answer. `fact` and `target` are numbers of the prompt, from 1."""

    fact: int
    action: Outcome
    target: int | None = None
    text: Text | None = None
    reason: Text

    @property
    def changes(self) -> int | None:
        """Number of the memory that this decision updates or deletes, or None."""
        return self.target if self.action in (Outcome.UPDATE, Outcome.DELETE) else None


class DecisionsAnswer(BaseModel):
    """The answer to the question "decide"."""

    decisions: list[DecisionRow]


def _one_a_fact(rows: Sequence[DecisionRow], count: int) -> list[DecisionRow]:
    """The rows in the order of the facts.

    Errors: MalformedAnswer unless each fact has exactly one decision.
    """
    numbers = sorted(row.fact for row in rows)
    if numbers != list(range(1, count + 1)):
        given = ", ".join(map(str, numbers[: count + SHOWN_ERRORS])) or "none"
        raise MalformedAnswer(
            f"each of the facts 1 to {count} needs exactly one decision; decided were: {given}"
        )
    return sorted(rows, key=lambda row: row.fact)


def _check_targets(rows: Sequence[DecisionRow], offered: int) -> None:
    """Check every target. Errors: MalformedAnswer; also if two decisions change the same memory."""
    for row in rows:
        _check_target(row, offered)
    changes = Counter(row.changes for row in rows if row.changes is not None)
    for number, times in changes.items():
        if times > 1:
            raise MalformedAnswer(
                f"{times} decisions change memory {number}; merge them into the last of them"
                " and make the others NOOP"
            )


def _check_target(row: DecisionRow, offered: int) -> None:
    where = f"the decision on fact {row.fact}"
    if row.changes is None and row.action in (Outcome.UPDATE, Outcome.DELETE):
        raise MalformedAnswer(f"{where} is {row.action} without a target")
    if row.action is Outcome.UPDATE and row.text is None:
        raise MalformedAnswer(f"{where} is UPDATE without a text")
    if row.action is not Outcome.ADD and row.target is not None:
        check_number(f"{where}: target", row.target, offered, "memories")


def _mended(row: DecisionRow, offered: int) -> DecisionRow:
    """The row, weakened to ADD or NOOP if its target was not offered."""
    named = row.target is not None and 1 <= row.target <= offered
    untargeted = row.target is None and row.action is Outcome.NOOP
    if named or untargeted or row.action is Outcome.ADD:
        return row
    action = Outcome.ADD if row.action is Outcome.UPDATE else Outcome.NOOP
    return _weakened(row.model_copy(update={"target": None}), action, "named no offered memory")


def _changed_once(rows: Sequence[DecisionRow]) -> list[DecisionRow]:
    """The rows, with all but the last change of each memory weakened to NOOP."""
    last = {row.changes: row.fact for row in rows}
    return [
        row
        if row.changes is None or last[row.changes] == row.fact
        else _weakened(row, Outcome.NOOP, "is overtaken by a later change of the same memory")
        for row in rows
    ]


def _weakened(row: DecisionRow, action: Outcome, why: str) -> DecisionRow:
    reason = f"{row.reason} (Made {action}: the {row.action} {why}.)"
    return row.model_copy(update={"action": action, "reason": reason})


def _decision(row: DecisionRow, fact: Fact, neighbours: Sequence[Neighbour]) -> Decision:
    aimed = row.target is not None and row.action is not Outcome.ADD
    target = neighbours[row.target - 1].memory_id if aimed and row.target else None
    text = {Outcome.ADD: row.text or fact.text, Outcome.UPDATE: row.text}.get(row.action)
    return Decision(row.fact - 1, row.action, row.reason, text, target)
