"""NOOPs of a model: taken if nothing is lost, else sent back once, and then made ADD."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from pipeline.domain.errors import MalformedAnswer
from pipeline.domain.facts import Fact, Neighbour, Outcome
from pipeline.domain.messages import Source
from pipeline.models.questions.decide import parse_decisions

THEN = datetime(2026, 5, 8, tzinfo=UTC)
MEMORY = Neighbour(UUID(int=1), "Ann lives in Paris.", 0.3)


def fact(text: str) -> Fact:
    return Fact(text, Source(0, 0))


def row(of: int, action: str, **more: Any) -> dict[str, Any]:
    return {"fact": of, "action": action, "target": None, "text": None, "reason": "Known."} | more


def answer(*rows: dict[str, Any]) -> str:
    return json.dumps({"decisions": rows})


@pytest.mark.parametrize("target", [1, None])
@pytest.mark.parametrize(
    "text",
    ["Ann lives in Rome.", "Ann likes green tea.", "Ann used to live in Paris.", "Tom is 7 today."],
)
def test_a_fact_that_no_memory_states_is_sent_back_and_then_added(
    text: str, target: int | None
) -> None:
    careless = answer(row(1, "NOOP", target=target))
    with pytest.raises(MalformedAnswer, match="the NOOP on fact 1") as refused:
        parse_decisions(careless, [fact(text)], [MEMORY])
    assert text not in str(refused.value)
    [decision] = parse_decisions(careless, [fact(text)], [MEMORY], mend=True)
    assert (decision.outcome, decision.text, decision.memory_id) == (Outcome.ADD, text, None)
    assert "does not say it" in decision.reason


@pytest.mark.parametrize("mend", [False, True])
@pytest.mark.parametrize(
    ("texts", "rows"),
    [
        (["Ann lives in Paris"], [row(1, "NOOP", target=1)]),
        (["Forget where Ann lives"], [row(1, "NOOP")]),
        (["Tom no longer has a dog"], [row(1, "NOOP")]),
        # Overtaken by a later change of the same memory.
        (
            ["Ann lives in Rome", "Ann moved to Oslo"],
            [row(1, "NOOP", target=1), row(2, "UPDATE", target=1, text="Ann lives in Oslo.")],
        ),
        (["Tom is 7", "Tom is 7 today"], [row(1, "NOOP"), row(2, "ADD")]),
    ],
)
def test_a_noop_that_loses_nothing_is_taken(
    texts: list[str], rows: list[dict[str, Any]], *, mend: bool
) -> None:
    facts = [fact(text) for text in texts]
    first, *_ = parse_decisions(answer(*rows), facts, [MEMORY], mend=mend)
    assert first.outcome is Outcome.NOOP


def test_several_noops_on_one_fact_become_one_add() -> None:
    memories = [MEMORY, replace(MEMORY, memory_id=UUID(int=2))]
    rows = [row(1, "NOOP", target=1), row(1, "NOOP", target=2)]
    [decision] = parse_decisions(answer(*rows), [fact("Ann has 2 cats")], memories, mend=True)
    assert decision.outcome is Outcome.ADD


def test_what_was_said_before_a_memory_needs_no_memory_of_its_own() -> None:
    older = replace(fact("Ann lives in Rome"), said_at=THEN)
    memory = replace(MEMORY, said_at=THEN + timedelta(days=1))
    [decision] = parse_decisions(answer(row(1, "NOOP", target=1)), [older], [memory])
    assert decision.outcome is Outcome.NOOP
