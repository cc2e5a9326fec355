"""The demo: its calls, its checks of receipts, its output, and the mix that the rules give."""

from __future__ import annotations

import io
import json
import os
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import UUID, uuid5

import httpx
import pytest
from rich.console import Console, RenderableType

from deploy.demo import acts as demo
from deploy.demo.acts import EXPECTED, WORKER, DemoApi, Json
from deploy.stack.failure import StackError
from deploy.stack.journal import Journal
from deploy.stack.layout import Layout
from pipeline.adapters.model_rules.decide import decide_facts
from pipeline.adapters.model_rules.extract import extract_facts
from pipeline.domain.events import StageName
from pipeline.domain.facts import Neighbour, Outcome
from pipeline.domain.messages import Message, Role, Source, SourcedMessage
from pipeline.ports import ExtractionRequest
from pipeline.settings import Settings

URL = "http://127.0.0.1:8000"
NAMESPACE = UUID(int=0)
RULES = {
    "models": ["local/rules"], "calls": 0, "prompt_tokens": 0, "completion_tokens": 0,
    "cost_usd": None,
}  # fmt: skip


def line(outcome: str, memory: str = "Maya lives in Bern", **given: Any) -> Json:
    values = {"id": "m1", "old_memory": None, "reason": "stated in the message"}
    return {"event": outcome, "memory": memory, **values, **given}


def event(*lines: Json, status: str = "SUCCEEDED", **given: Any) -> Json:
    values: Json = {
        "id": "e1", "note": None, "error": None, "code": None, "stage": None, "waiting": None,
        "usage": RULES, "stages": [], "latency": 12.0,
    }  # fmt: skip
    return {"status": status, "results": list(lines), **values, **given}


MIXED = [event(line("ADD"), line("ADD")), event(line("UPDATE", id="m7")), event(line("NOOP"))]


def plain(shown: RenderableType, width: int = 80) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False)
    with console.capture() as captured:
        console.print(shown)
    return "\n".join(row.rstrip() for row in captured.get().splitlines())


def answering(*answers: Any) -> DemoApi:
    """An API that gives these answers, one after the other."""
    left = iter(answers)
    return DemoApi(
        URL, "k", transport=httpx.MockTransport(lambda _: httpx.Response(200, json=next(left)))
    )


def test_an_add_carries_key_scope_and_the_day_it_was_said() -> None:
    requests: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        return httpx.Response(200, json={"event_id": "e1", "status": "PENDING"})

    with DemoApi(URL, "secret", transport=httpx.MockTransport(answer)) as api:
        at = demo.story()["sessions"][0]["at"]
        accepted = api.add([{"role": "user", "content": "Hi"}], timestamp=at, user_id="maya-1")
    assert (accepted["event_id"], accepted["status"]) == ("e1", "PENDING")
    assert accepted["ms"] > 0
    assert requests[0].headers["authorization"] == "Token secret"
    assert json.loads(requests[0].content) == {
        "messages": [{"role": "user", "content": "Hi"}],
        "user_id": "maya-1",
        "timestamp": "2026-03-02T18:30:00+00:00",
    }


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """Data directory of a stack that has recorded the test's own process as its worker."""
    layout = Layout(tmp_path)
    layout.create()
    Journal(layout, Settings(port=8000)).started(WORKER, os.getpid())
    return layout


def test_the_worker_is_the_process_of_the_pid_file_that_the_stack_started(layout: Layout) -> None:
    process = demo.worker(layout, URL)
    assert process is not None
    assert process.pid == os.getpid()


def test_a_worker_of_another_stack_is_not_ours_to_kill(layout: Layout) -> None:
    assert demo.worker(layout, "http://127.0.0.1:9999") is None


def test_a_pid_file_that_names_a_stranger_is_not_believed(layout: Layout) -> None:
    layout.pid_file(WORKER).write_text("1\n")
    assert demo.worker(layout, URL) is None


def test_no_stack_has_no_worker(tmp_path: Path) -> None:
    assert demo.worker(Layout(tmp_path), URL) is None


def test_rules_must_show_the_mix_with_reasons_and_a_language_model_need_not() -> None:
    demo.check_outcomes(MIXED, "local/rules")
    demo.check_outcomes([], "openai/gpt-4o-mini")
    with pytest.raises(StackError, match="NOOP or UPDATE"):
        demo.check_outcomes(MIXED[:1], "local/rules")
    with pytest.raises(StackError, match="no reason"):
        demo.check_outcomes([*MIXED, event(line("ADD", reason=None))], "local/rules")


def test_an_event_that_failed_is_named_with_its_code() -> None:
    failed = event(status="FAILED", code="LLM_REJECTED", error="401")
    with pytest.raises(StackError, match="e1 FAILED with LLM_REJECTED: 401"):
        demo.check_success([event(), failed], 1)


def test_an_event_that_does_not_end_in_time_is_named_with_what_it_waits_for() -> None:
    waits = event(status="RUNNING", waiting={"code": "LLM_UNAVAILABLE"})
    with pytest.raises(StackError, match=r"still RUNNING after 0 s .*LLM_UNAVAILABLE"):
        demo.follow(["e1"], lambda _: waits, lambda _: None, within_s=0)


def test_following_shows_every_state_and_ends_with_the_events_in_order() -> None:
    states = {"e1": iter(["PENDING", "RUNNING", "SUCCEEDED"]), "e2": iter(["SUCCEEDED"])}
    shown: list[list[str]] = []
    events = demo.follow(
        ["e1", "e2"],
        lambda event_id: event(id=event_id, status=next(states[event_id])),
        lambda events: shown.append([each["status"] for each in events]),
    )
    assert [each["id"] for each in events] == ["e1", "e2"]
    assert shown == [["RUNNING", "SUCCEEDED"], ["SUCCEEDED", "SUCCEEDED"]]


def rows(*texts: str) -> Json:
    return {"results": [{"memory": text, "user_id": "u"} for text in texts]}


def test_the_stored_memories_must_equal_the_receipts() -> None:
    events, console = [*MIXED, event(line("DELETE"))], Console(file=io.StringIO())
    demo.compare(events, 4, "r", answering(rows("a")), console)
    with pytest.raises(StackError, match="make 1 memories, 2 are stored, 0 of them twice"):
        demo.compare(events, 4, "r", answering(rows("a", "b")), console)
    with pytest.raises(StackError, match="2 are stored, 1 of them twice"):
        demo.compare(events, 4, "r", answering(rows("a", "a")), console)
    with pytest.raises(StackError, match="5 turns were accepted and 4 events ended"):
        demo.compare(events, 5, "r", answering(rows("a")), console)


def test_brackets_in_texts_are_text_and_no_markup() -> None:
    assert "[red]alert[/]" in plain(demo.receipts([event(line("ADD", "[red]alert[/]"))]))
    assert "[red]alert[/]" in plain(demo.listed([("0.91", "[red]alert[/]")]))


def test_progress_shows_finished_running_and_skipped_stages() -> None:
    extracted = [{"stage": "extract", "ms": 250}]
    running = event(status="RUNNING", stage="retrieve", stages=extracted)
    skipped = event(stages=extracted)
    _, head, rule, first, second = plain(demo.progress([running, skipped])).splitlines()
    names = ["turn", "extract", "retrieve", "consolidate", "apply", "relate", "status"]
    assert head.split()[:7] == names
    assert set(rule.strip()) == {"─"}
    assert first.split() == ["1", "250", "...", "RUNNING", "12"]
    assert second.split() == ["2", "250", "-", "-", "-", "-", "SUCCEEDED", "12"]


def test_progress_shows_the_reason_of_a_wait() -> None:
    waits = event(status="RUNNING", stage="extract", waiting={"code": "LLM_UNAVAILABLE"})
    assert "waits: LLM_UNAVAILABLE" in plain(demo.progress([waits]), width=100)


def test_progress_fits_eighty_columns() -> None:
    runs = [{"stage": name.value, "ms": 1234.5} for name in StageName]
    text = plain(demo.progress([event(stages=runs, latency=98765.4)]))
    assert len(text.splitlines()) == 4
    assert "…" not in text


def test_a_receipt_shows_memory_reason_and_why_nothing_was_stored() -> None:
    changed = line("UPDATE", "Maya lives in Porto", old_memory="Maya lives in Bern", reason="moved")
    text = plain(demo.receipts([event(changed), event(note="Small talk.")]))
    assert "UPDATE   Maya lives in Porto" in text
    assert "before: Maya lives in Bern" in text
    assert "reason: moved" in text
    assert "nothing stored. Small talk." in text


def test_a_deleted_memory_is_not_shown_as_its_own_past() -> None:
    gone = line("DELETE", "Maya loves hiking", old_memory="Maya loves hiking")
    assert "before:" not in plain(demo.receipts([event(gone)]))


def test_the_cost_names_the_rules_or_the_calls_tokens_and_price_of_a_model() -> None:
    assert demo.cost(MIXED).strip() == (
        "3 turns, 0 calls, 0 tokens: local/rules answered, not an LLM"
    )
    paid = {
        "models": ["openai/m"], "calls": 3, "prompt_tokens": 900, "completion_tokens": 90,
        "cost_usd": 0.03,
    }  # fmt: skip
    spent = demo.cost([event(usage=paid), event(usage=paid)])
    assert spent.strip() == "2 turns, 6 calls, 1,980 tokens, $0.0600: openai/m"
    assert "price unknown" in demo.cost([event(usage=paid | {"cost_usd": None})])


def test_answers_relations_and_history_are_shown() -> None:
    hit = {"memory": "Maya lives in Porto", "score": 0.912, "timestamp": "2026-03-02T18:30:00Z"}
    edge = {"source": "Maya", "relationship": "lives_in", "target": "Porto", "valid_from": None}
    states = [
        {"event": "ADD", "old_memory": None, "new_memory": "in Bern", "reason": "new"},
        {"event": "DELETE", "old_memory": "in Bern", "new_memory": None, "reason": "asked to"},
    ]
    api = answering({"results": [hit], "relations": [edge]}, states)
    console = Console(file=io.StringIO(), width=80, highlight=False)
    with console.capture() as captured:
        demo.questions(["Where?"], "maya", MIXED, api, console)
    shown = [row.rstrip() for row in captured.get().splitlines()]
    assert shown[:2] == ["Where?", "  0.91  Maya lives in Porto  since 2 March 2026"]
    assert "  Maya --lives_in--> Porto  -" in shown
    assert [row.split() for row in shown[-2:]] == [
        ["ADD", "in", "Bern", "new"],
        ["DELETE", "in", "Bern", "asked", "to"],
    ]


def test_the_sessions_are_weeks_apart_in_2026() -> None:
    times = [datetime.fromisoformat(session["at"]) for session in demo.story()["sessions"]]
    assert len(times) == 3
    assert all(at.year == 2026 for at in times)
    assert all((later - earlier).days >= 14 for earlier, later in pairwise(times))


def test_the_rules_answer_the_story_with_the_promised_mix_and_a_reason_each() -> None:
    reasons: dict[Outcome, list[str]] = {}
    stored: dict[UUID, str] = {}
    story = demo.story()
    for session in story["sessions"]:
        for text, _ in session["turns"]:
            message = Message(Role.USER, text, story["speaker"])
            sourced = SourcedMessage(Source(0, 0), message, datetime.fromisoformat(session["at"]))
            facts = extract_facts(ExtractionRequest([sourced])).value
            neighbours = [Neighbour(known, text, 0.5) for known, text in stored.items()]
            for decision in decide_facts(facts, neighbours):
                reasons.setdefault(decision.outcome, []).append(decision.reason)
                if decision.outcome is Outcome.DELETE and decision.memory_id:
                    del stored[decision.memory_id]
                elif decision.text and decision.outcome is not Outcome.NOOP:
                    stored[decision.memory_id or uuid5(NAMESPACE, decision.text)] = decision.text
    assert {outcome.value for outcome in reasons} >= EXPECTED
    assert all(reason for texts in reasons.values() for reason in texts)


def test_each_sentence_of_the_burst_is_one_fact_of_the_rules() -> None:
    story = demo.story()
    at = datetime.fromisoformat(story["sessions"][0]["at"])
    assert len(story["burst"]) == 8
    for name, texts in story["burst"].items():
        for text in texts:
            sourced = SourcedMessage(Source(0, 0), Message(Role.USER, text, name), at)
            facts = extract_facts(ExtractionRequest([sourced])).value
            assert [fact.text.split()[0] for fact in facts] == [name]
