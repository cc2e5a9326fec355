"""Counts from receipts: outcomes, shared costs, and memories stored twice."""

from __future__ import annotations

from typing import Any

import pytest

from deploy.demo import tally
from deploy.demo.__main__ import refuse_poor_mix
from deploy.demo.answers import DemoBatch, DemoEvent, DemoMemories, DemoReceiptLine, DemoUsage
from deploy.demo.failure import DemoError
from deploy.demo.sessions import follow, refuse_failures


def line(outcome: str, memory: str = "Maya lives in Bern", **given: Any) -> DemoReceiptLine:
    values = {"id": "m1", "old_memory": None, "reason": "said so"} | given
    return DemoReceiptLine(event=outcome, memory=memory, **values)


def event(*lines: DemoReceiptLine, status: str = "SUCCEEDED", **given: Any) -> DemoEvent:
    usage = DemoUsage(
        models=["local/rules"],
        calls=0,
        prompt_tokens=0,
        completion_tokens=0,
        cost_usd=None,
        batch=DemoBatch(id="b0"),
    )
    values: dict[str, Any] = {
        "id": "e1",
        "note": None,
        "error": None,
        "code": None,
        "stage": None,
        "waiting": None,
        "usage": usage,
        "stages": [],
        "latency": 12.0,
    }
    return DemoEvent(status=status, results=list(lines), **(values | given))


def paid(batch: str) -> DemoUsage:
    return DemoUsage(
        models=["openai/gpt-4o-mini"],
        calls=3,
        prompt_tokens=900,
        completion_tokens=90,
        cost_usd=0.03,
        batch=DemoBatch(id=batch),
    )


def memories(*texts: str) -> DemoMemories:
    results = [{"id": str(n), "memory": text, "user_id": "u"} for n, text in enumerate(texts)]
    return DemoMemories.model_validate({"count": len(texts), "results": results})


MIXED = [event(line("ADD"), line("ADD")), event(line("UPDATE", id="m7")), event(line("NOOP"))]


def test_outcomes_are_counted_over_all_receipts() -> None:
    assert tally.outcomes(MIXED) == {"ADD": 2, "UPDATE": 1, "NOOP": 1}
    assert tally.missing(MIXED) == []
    assert tally.missing(MIXED[:1]) == ["NOOP", "UPDATE"]


def test_what_events_cost_is_the_sum_of_their_shares() -> None:
    spent = tally.cost([event(usage=paid("b1")), event(usage=paid("b1")), event(usage=paid("b2"))])
    assert (spent.calls, spent.tokens, spent.batches, spent.events) == (9, 2970, 2, 3)
    assert spent.usd == pytest.approx(0.09)


def test_rules_cost_nothing_and_no_price_is_made_up() -> None:
    spent = tally.cost(MIXED)
    assert (spent.calls, spent.usd, spent.models) == (0, None, ("local/rules",))


def test_the_memory_whose_history_is_shown_is_the_first_updated_one() -> None:
    assert tally.changed(MIXED) == "m7"
    assert tally.changed(MIXED[:1]) is None


def test_receipts_say_how_many_memories_there_must_be() -> None:
    assert tally.due([*MIXED, event(line("DELETE"))]) == 1


def test_the_same_text_twice_is_a_double() -> None:
    assert tally.doubles(memories("a", "b")) == 0
    assert tally.doubles(memories("a", "b", "a")) == 1


def test_rules_must_show_the_mix_with_reasons_and_a_language_model_need_not() -> None:
    refuse_poor_mix(MIXED, "local/rules")
    refuse_poor_mix([], "openai/gpt-4o-mini")
    with pytest.raises(DemoError, match="NOOP or UPDATE"):
        refuse_poor_mix(MIXED[:1], "local/rules")
    with pytest.raises(DemoError, match="no reason"):
        refuse_poor_mix([*MIXED, event(line("ADD", reason=None))], "local/rules")


def test_an_event_that_failed_is_named_with_its_code() -> None:
    failed = event(status="FAILED", code="LLM_REJECTED", error="401")
    with pytest.raises(DemoError, match="e1 FAILED with LLM_REJECTED: 401"):
        refuse_failures([event(), failed], 1)


def test_an_event_that_does_not_end_in_time_is_named_with_what_it_waits_for() -> None:
    waits = event(status="RUNNING", waiting={"code": "LLM_UNAVAILABLE"})
    with pytest.raises(DemoError, match=r"still RUNNING after 0 s .*LLM_UNAVAILABLE"):
        follow(["e1"], lambda _: waits, lambda _: None, within_s=0)


def test_following_shows_every_look_and_ends_with_the_events_in_order() -> None:
    looks = {"e1": iter(["PENDING", "RUNNING", "SUCCEEDED"]), "e2": iter(["SUCCEEDED"])}
    shown: list[list[str]] = []
    ended = follow(
        ["e1", "e2"],
        lambda event_id: event(id=event_id, status=next(looks[event_id])),
        lambda events: shown.append([e.status for e in events]),
    )
    assert [e.id for e in ended] == ["e1", "e2"]
    assert shown == [["RUNNING", "SUCCEEDED"], ["SUCCEEDED", "SUCCEEDED"]]
