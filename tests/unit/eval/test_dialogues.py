"""The scenarios of the evaluation: complete, free of contradictions, and answered by the oracle."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.eval.scenarios.dialogues import Scenario, load
from tests.eval.scenarios.oracle import key
from tests.eval.scenarios.play import shuffled

SCENARIOS = load()
LEAST = {"en": 30, "de": 18, "es": 17, "zh": 15}
THEMES = {
    "move", "job", "correction", "negation", "take-back", "also", "multi-target", "same-name",
    "plan", "sarcasm", "quoted", "question", "hypothetical", "import", "speakers", "echo",
    "injection", "repeat", "date", "guard",
}  # fmt: skip


def test_every_language_and_theme_has_its_scenarios() -> None:
    counts = Counter(scenario.language for scenario in SCENARIOS)
    assert {name: counts[name] >= least for name, least in LEAST.items()} == dict.fromkeys(
        LEAST, True
    )
    assert {tag for scenario in SCENARIOS for tag in scenario.tags} >= THEMES


def test_names_and_texts_are_unique_because_a_model_is_shown_nothing_else() -> None:
    assert not repeated(scenario.name for scenario in SCENARIOS)
    texts = [
        (key(text), scenario.name)
        for scenario in SCENARIOS
        for fact in scenario.facts.values()
        for text in {fact.text.plain, fact.becomes.plain if fact.becomes else fact.text.plain}
    ]
    messages = {
        (key(message["content"]), scenario.name)
        for scenario in SCENARIOS
        for turn in scenario.turns
        for message in turn.messages
    }
    assert not repeated(text for text, _ in set(texts))
    assert not repeated(content for content, _ in messages)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_a_scenario_expects_what_its_relations_say(scenario: Scenario) -> None:
    earlier: list[str] = []
    for turn in scenario.turns:
        for fact in turn.facts:
            assert set(fact.earlier) <= set(earlier)
            assert bool(fact.extends) == bool(fact.becomes)
            assert fact.message < len(turn.messages)
        earlier += [fact.id for fact in turn.facts]
    assert not repeated(fact.id for turn in scenario.turns for fact in turn.facts)
    assert sorted(standing(scenario)) == sorted(text.plain for text in scenario.expected)
    times = [turn.at for turn in scenario.turns]
    assert times == sorted(times)
    assert shuffled(scenario) != list(scenario.turns) or len(times) == 1


def standing(scenario: Scenario) -> list[str]:
    """Texts of the memories that the asserted facts make, fact by fact."""
    memories: list[frozenset[str]] = []
    for fact in scenario.facts.values():
        if not fact.asserted:
            continue
        related = [known for known in memories if known & scenario.ancestors(fact.id)]
        memories = [known for known in memories if known not in related]
        memories.append(frozenset({fact.id}).union(*related))
    texts = [scenario.memory(known) for known in memories]
    return [text.plain for text in texts if text is not None]


def repeated(values: object) -> list[object]:
    return [value for value, times in Counter(values).items() if times > 1]  # type: ignore[call-overload]
