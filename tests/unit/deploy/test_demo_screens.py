"""The demo's screens, as plain text."""

from __future__ import annotations

import io
from datetime import UTC, datetime

from rich.console import Console, RenderableType

from deploy.demo import screens
from deploy.demo.answers import (
    DemoAccepted,
    DemoChange,
    DemoHit,
    DemoRelation,
    DemoSearch,
    DemoStageRun,
    DemoWaiting,
)
from deploy.demo.tally import Cost
from tests.unit.deploy.test_demo_tally import event, line

MARCH = datetime(2026, 3, 2, tzinfo=UTC)


def plain(what: RenderableType, width: int = 80) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False)
    with console.capture() as captured:
        console.print(what)
    return "\n".join(row.rstrip() for row in captured.get().splitlines())


def test_an_accepted_turn_shows_words_and_event() -> None:
    answer = DemoAccepted(event_id="5f0c7d3e", status="PENDING", ms=3.44)
    text = plain(screens.accepted(2, "Maya", "I live in Bern.", answer))
    assert text == "  2  Maya: I live in Bern.\n     -> PENDING  event 5f0c7d3e"


def test_brackets_in_what_was_said_are_text_not_markup() -> None:
    answer = DemoAccepted(event_id="e", status="PENDING")
    assert "[red]alert[/]" in plain(screens.accepted(1, "Maya", "[red]alert[/]", answer))
    assert "[red]alert[/]" in plain(screens.receipts([event(line("ADD", "[red]alert[/]"))]))


def test_progress_shows_finished_running_and_skipped_stages() -> None:
    running = event(
        status="RUNNING", stage="retrieve", stages=[DemoStageRun(stage="extract", ms=2)]
    )
    skipped = event(stages=[DemoStageRun(stage="extract", ms=250)])
    _, head, rule, first, second = plain(screens.progress([running, skipped])).splitlines()
    names = ["turn", "extract", "retrieve", "consolidate", "apply", "relate", "status"]
    assert head.split()[:7] == names
    assert set(rule.strip()) == {"─"}
    assert first.split() == ["1", "2.0", "...", "RUNNING", "12.0"]
    assert second.split() == ["2", "250", "-", "-", "-", "-", "SUCCEEDED", "12.0"]


def test_progress_says_what_an_event_waits_for() -> None:
    waits = event(status="RUNNING", stage="extract", waiting=DemoWaiting(code="LLM_UNAVAILABLE"))
    assert "waits: LLM_UNAVAILABLE" in plain(screens.progress([waits]), width=100)


def test_progress_fits_eighty_columns() -> None:
    runs = [DemoStageRun(stage=name, ms=1234.5) for name in screens.STAGES]
    text = plain(screens.progress([event(stages=runs, latency=98765.4)]))
    assert len(text.splitlines()) == 4
    assert "…" not in text


def test_a_receipt_shows_memory_before_reason_and_why_nothing_was_stored() -> None:
    changed = line("UPDATE", "Maya lives in Porto", old_memory="Maya lives in Bern", reason="moved")
    text = plain(screens.receipts([event(changed), event(note="Small talk.")]))
    assert "UPDATE   Maya lives in Porto" in text
    assert "before: Maya lives in Bern" in text
    assert "reason: moved" in text
    assert "nothing stored" in text
    assert "Small talk." in text


def test_a_deleted_memory_is_not_shown_as_its_own_past() -> None:
    gone = line("DELETE", "Maya loves hiking", old_memory="Maya loves hiking")
    assert "before:" not in plain(screens.receipts([event(gone)]))


def test_the_cost_says_plainly_when_rules_answered() -> None:
    text = plain(screens.cost(Cost(("local/rules",), 0, 0, None, 1, 4)), width=120)
    assert text.strip() == ("4 turns, 1 batch, 0 calls, 0 tokens: local/rules answered, not an LLM")


def test_the_cost_of_a_language_model_has_calls_tokens_and_price() -> None:
    known = Cost(("openai/gpt-4o-mini",), 6, 1980, 0.06, 2, 4)
    assert "2 batches, 6 calls, 1,980 tokens, $0.0600: openai/gpt-4o-mini" in plain(
        screens.cost(known), width=120
    )
    unknown = Cost(("openai/my-own",), 6, 1980, None, 2, 4)
    assert "price unknown" in plain(screens.cost(unknown), width=120)


def test_the_mix_counts_outcomes_and_empty_receipts() -> None:
    events = [event(line("NOOP"), line("ADD")), event(line("ADD")), event()]
    assert plain(screens.mix(events)) == "All receipts: 2 ADD, 1 NOOP, 1 with nothing to store."


def test_answers_and_relations_show_scores_and_since_when() -> None:
    hit = DemoHit(memory="Maya lives in Porto", score=0.912, timestamp=MARCH)
    text = plain(screens.found("Where?", DemoSearch(results=[hit], relations=[])))
    assert text.splitlines()[:2] == ["Where?", "  0.91  Maya lives in Porto  since 2 March 2026"]
    edge = DemoRelation(source="Maya", relationship="lives_in", target="Porto", valid_from=None)
    assert "  Maya --lives_in--> Porto" in plain(screens.graph([edge]))


def test_a_history_shows_each_state_with_its_reason() -> None:
    changes = [
        DemoChange(event="ADD", old_memory=None, new_memory="in Bern", reason="new"),
        DemoChange(event="DELETE", old_memory="in Bern", new_memory=None, reason="asked to"),
    ]
    first, second = plain(screens.history(changes)).splitlines()[1:]
    assert first.split() == ["ADD", "in", "Bern", "new"]
    assert second.split() == ["DELETE", "in", "Bern", "asked", "to"]
