"""Structure of the facts of `local/rules`: kind, slot and time of a canonical sentence."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from pipeline.adapters.model_rules.extract import extract_facts
from pipeline.domain.consolidation.conservation import Replacement, objection
from pipeline.domain.facts import FactKind
from pipeline.domain.messages import Message, Role, Source, SourcedMessage
from pipeline.ports import ExtractionRequest

SAID_AT = datetime(2026, 3, 9, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "name", "kind", "slot", "day"),
    [
        ("I live in Berlin.", None, FactKind.PERSONAL_DETAIL, "user · residence", None),
        ("I live in Oslo.", "Maya", FactKind.PERSONAL_DETAIL, "maya · residence", None),
        ("I am allergic to peanuts.", None, FactKind.HEALTH, "user · allergies", None),
        ("My favourite tea is mint.", None, FactKind.PREFERENCE, "user · favourite_tea", None),
        ("My dad lives in Rome.", None, FactKind.PERSONAL_DETAIL, "user father · residence", None),
        ("I plan to visit Rome in May.", None, FactKind.PLAN, "user · plans", "2026-05-01"),
        ("I played chess yesterday.", None, FactKind.OTHER, None, "2026-03-08"),
    ],
)  # fmt: skip
def test_a_sentence_has_a_structure(
    text: str, name: str | None, kind: FactKind, slot: str | None, day: str | None
) -> None:
    sourced = SourcedMessage(Source(0, 0), Message(Role.USER, text, name), SAID_AT)
    [fact] = extract_facts(ExtractionRequest([sourced])).value
    assert (fact.kind, fact.slot, fact.speaker) == (kind, slot, name)
    assert fact.valid_from == (day and datetime.fromisoformat(day).replace(tzinfo=UTC))


def test_a_request_to_forget_deletes_a_memory_of_any_attribute() -> None:
    love, forget = (
        SourcedMessage(Source(0, 0), Message(Role.USER, text, "Maya"), SAID_AT)
        for text in ("I love hiking!", "Please forget that I love hiking.")
    )
    [old] = extract_facts(ExtractionRequest([love])).value
    [fact] = extract_facts(ExtractionRequest([forget])).value
    assert old.slot is not None
    assert (fact.text, fact.slot) == ("Maya asks to forget: loves hiking", None)
    change = Replacement(old.text, None, fact.text, old_slot=old.slot, fact_slot=fact.slot)
    assert objection(change) is None
