"""Every public function on texts takes time in proportion to its text.

The functions are modules by walking the packages: a new one joins by itself, or is listed in EXEMPT
with its reason. Arguments are built from the annotations.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any
from uuid import UUID

import numpy as np
import pytest

from pipeline.adapters.model_rules.decide import curate
from pipeline.adapters.model_rules.fill import fill, fill_fields
from pipeline.domain import conflicts
from pipeline.domain.conflicts import Statement
from pipeline.domain.consolidation import candidates
from pipeline.domain.consolidation.conservation import Replacement
from pipeline.domain.curation import CuratedMemory, CurationRequest
from pipeline.domain.events import Instructions
from pipeline.domain.facts import Fact, Neighbour
from pipeline.domain.graph.values import GraphTypes, RelationRequest, StoredRelation
from pipeline.domain.messages import Message, Role, Source, SourcedMessage
from pipeline.domain.passages import PassageKey
from pipeline.models import prompts
from pipeline.models.questions import integer_ids
from pipeline.ports import ExtractionRequest
from pipeline.search.candidates import Candidate
from pipeline.search.ranking import evidence, signals
from pipeline.search.ranking.calibration import scale
from pipeline.search.ranking.vocabulary import is_mistyped, may_be_mistyped, weight_of
from pipeline.text.question_topics import topics
from pipeline.text.questions import content_words
from pipeline.text.speakers import first_named
from pipeline.text.statements.slots import Cardinality
from pipeline.text.statements.values import Value, stated
from pipeline.text.terms import terms
from tests.support.long_texts import UNITS, faults

PACKAGES = (
    "pipeline.text", "pipeline.models.prompts", "pipeline.models.background",
    "pipeline.models.questions.integer_ids",
    "pipeline.models.json_answers", "pipeline.domain.conflicts", "pipeline.domain.graph.values",
    "pipeline.domain.consolidation.conservation", "pipeline.domain.consolidation.candidates",
    "pipeline.domain.consolidation.echoes", "pipeline.domain.consolidation.repeats",
    "pipeline.search.ranking.signals", "pipeline.search.ranking.evidence",
    "pipeline.search.ranking.vocabulary", "pipeline.search.conversation",
    "pipeline.search.words.bm25",
    "pipeline.adapters.model_rules.extract", "pipeline.adapters.model_rules.decide",
    "pipeline.adapters.model_rules.relate", "pipeline.adapters.model_rules.fill",
)  # fmt: skip
NOW = datetime(2026, 11, 23, tzinfo=UTC)
NO_TEXT = "It reads no text."
FILE = "It reads a file of words/ by name."
INNER = "Its texts are values that its module's entry point has bounded; that one is called."
# Functions that are not called here, each with the reason.
EXEMPT: Mapping[str, str] = {
    "pipeline.text.times.dates.closeness": NO_TEXT,
    "pipeline.text.times.dates.day_of_month": NO_TEXT,
    "pipeline.text.times.dates.days_back": NO_TEXT,
    "pipeline.text.times.dates.month_of": NO_TEXT,
    "pipeline.text.word_lists.groups_in": FILE,
    "pipeline.text.word_lists.lines_of": FILE,
    "pipeline.text.word_lists.words_in": FILE,
    "pipeline.text.edit_distance.distance": "Its caller compares words of up to 24 letters.",
    "pipeline.models.json_answers.json_object": "It raises for a text that is no object.",
    "pipeline.text.times.dates.read_match": INNER,
    "pipeline.text.times.when.iso": NO_TEXT,
    "pipeline.text.times.dates.number_of": INNER,
    "pipeline.text.terms.cut": "It calls terms for each text, in a thread.",
    "pipeline.domain.consolidation.candidates.chosen": NO_TEXT,
    "pipeline.domain.graph.values.node_id": "It makes an id of a key.",
    "pipeline.domain.graph.values.graph_types": NO_TEXT,
    "pipeline.search.conversation.blended": NO_TEXT,
    "pipeline.search.ranking.evidence.set_closeness": NO_TEXT,
    "pipeline.search.words.bm25.found_words": NO_TEXT,
    "pipeline.search.words.bm25.ranking": NO_TEXT,
    "pipeline.search.words.bm25.ranking_by_forms": NO_TEXT,
    "pipeline.models.questions.integer_ids.groups": NO_TEXT,
    "pipeline.models.questions.integer_ids.item": NO_TEXT,
    "pipeline.models.prompts.render": "It fills a template by name.",
    "pipeline.models.prompts.version": "It reads a template by name.",
    "pipeline.models.json_answers.answer_schema": NO_TEXT,
    "pipeline.models.json_answers.validated": "pydantic checks a value that is parsed already.",
    "pipeline.models.json_answers.valid_rows": "It calls validated for each row.",
    "pipeline.models.json_answers.parsed": "It calls json_object and pydantic.",
}
SHAPE = {"type": "object", "properties": {"name": {"type": "string"}}}
# Letters of a part, if a text is given as many texts.
PART = 40


def parts(text: str) -> list[str]:
    return [text[at : at + PART] for at in range(0, len(text), PART)]


def fact(text: str) -> Fact:
    return Fact(text, Source(0, 0), subject=text[:500], attribute=text[:500])


def sourced(text: str) -> SourcedMessage:
    return SourcedMessage(Source(0, 0), Message(Role.USER, text, text[:500]), NOW)


BUILDERS: Mapping[Any, Callable[[str], Any]] = {
    str: lambda text: text,
    str | None: lambda text: text,
    Iterable[str]: parts,
    Sequence[str]: parts,
    typing.Collection[str]: parts,
    Sequence[Sequence[str]]: lambda text: [parts(text)],
    datetime: lambda text: NOW,
    datetime | None: lambda text: NOW,
    date: lambda text: NOW.date(),
    int: lambda text: 20,
    Message: lambda text: Message(Role.USER, text),
    Sequence[Message]: lambda text: [Message(Role.USER, text)],
    Iterable[Message]: lambda text: [Message(Role.USER, text)],
    Sequence[SourcedMessage]: lambda text: [sourced(text)],
    Fact: fact,
    Sequence[Fact]: lambda text: [fact(text)],
    Sequence[Neighbour]: lambda text: [Neighbour(UUID(int=1), text, 0.5)],
    Replacement: lambda text: Replacement(text, f"{text[1:]}y", f"not {text}", (text,)),
    Iterable[Value]: lambda text: stated(text).values,
    Instructions: lambda text: Instructions(includes=text, custom=text, categories={text: text}),
    ExtractionRequest: lambda text: ExtractionRequest(
        [sourced(text)], [Message(Role.USER, text)], Instructions(excludes=text)
    ),
    Sequence[StoredRelation]: lambda text: [],
    Cardinality | None: lambda text: None,
    Mapping[str, str] | None: lambda text: {},
    dict[str, str]: lambda text: {"User": text, "he": text, "she": text},
}


def public_functions() -> Iterator[tuple[str, Callable[..., object]]]:
    for package in PACKAGES:
        root = importlib.import_module(package)
        within = pkgutil.walk_packages(getattr(root, "__path__", ()), f"{package}.")
        for module in (root, *(importlib.import_module(entry.name) for entry in within)):
            for name, value in vars(module).items():
                if name.startswith("_") or not callable(value):
                    continue
                function = inspect.unwrap(value)
                if inspect.isfunction(function) and function.__module__ == module.__name__:
                    yield f"{module.__name__}.{name}", value


FUNCTIONS = dict(public_functions())


def statements(text: str) -> tuple[Statement, Statement]:
    first = Statement(text, None, "Maya", Role.USER, NOW, None, None)
    return first, replace(first, text=f"not {text}")


def set_evidence_of(text: str) -> None:
    candidate = Candidate(PassageKey(UUID(int=1)), UUID(int=2), text[:500], NOW)
    candidate.terms = terms(text)
    evidence.set_evidence([candidate], topics(text))


def set_signals_of(text: str) -> None:
    speakers = [
        Candidate(PassageKey(UUID(int=number)), UUID(int=2), part, NOW)
        for number, part in enumerate(parts(text))
    ]
    signals.set_signals(
        speakers,
        [text] * 5,
        signals.ChannelScores({}, {}, np.zeros(0, np.float32), {}, {}),
        scale=scale("x"),
        now=NOW,
    )


# Calls of functions whose arguments do not follow from their annotations.
CALLS: Mapping[str, Callable[[str], object]] = {
    "pipeline.text.speakers.first_named": lambda text: first_named([text] * 5, parts(text)),
    "pipeline.domain.consolidation.candidates.ranked": lambda text: candidates.ranked(
        [candidates.Compared(text, None, {})],
        [candidates.Comparable(UUID(int=1), " ".join(terms(text)), None)],
    ),
    "pipeline.domain.conflicts.undecided": lambda text: conflicts.undecided(*statements(text)),
    "pipeline.domain.conflicts.disagree": lambda text: conflicts.disagree(*statements(text)),
    "pipeline.domain.conflicts.decides": lambda text: conflicts.decides(*statements(text)),
    "pipeline.domain.conflicts.question": lambda text: conflicts.question(
        [(text, text, NOW), (text, None, NOW)]
    ),
    "pipeline.models.questions.integer_ids.dated": lambda text: integer_ids.dated([(text, NOW)]),
    "pipeline.models.prompts.form": lambda text: prompts.form({text: text}),
    "pipeline.models.prompts.entity_types": lambda text: prompts.entity_types(
        GraphTypes({text: text})
    ),
    "pipeline.models.prompts.relation_names": lambda text: prompts.relation_names(
        RelationRequest([fact(text)], types=GraphTypes(relations={text: text}))
    ),
    "pipeline.search.ranking.vocabulary.weight_of": lambda text: weight_of(text, text[1:]),
    "pipeline.search.ranking.vocabulary.may_be_mistyped": lambda text: may_be_mistyped(
        text, text[1:]
    ),
    "pipeline.search.ranking.vocabulary.is_mistyped": lambda text: is_mistyped(text[:24], text),
    "pipeline.search.ranking.evidence.set_evidence": set_evidence_of,
    "pipeline.search.ranking.signals.set_signals": set_signals_of,
    "pipeline.adapters.model_rules.fill.fill": lambda text: fill(SHAPE, parts(text)),
    "pipeline.adapters.model_rules.fill.fill_fields": lambda text: fill_fields(SHAPE, parts(text)),
    "pipeline.adapters.model_rules.decide.curate": lambda text: curate(
        CurationRequest([CuratedMemory(part, NOW) for part in parts(text)][:50], [range(50)])
    ),
}


def argument_types(function: Callable[..., object]) -> dict[str, Any]:
    plain = inspect.unwrap(function)
    hints = typing.get_type_hints(plain)
    parameters = inspect.signature(plain).parameters.values()
    return {
        p.name: hints[p.name]
        for p in parameters
        if p.default is p.empty or hints[p.name] in (str, str | None)
    }


def can_call(function: Callable[..., object]) -> bool:
    return all(kind in BUILDERS for kind in argument_types(function).values())


def calls(function: Callable[..., object]) -> list[Callable[[str], object]]:
    """Calls with the text in all arguments, and with its first half in all but the first one."""
    kinds = argument_types(function)

    def call(text: str, other: str) -> object:
        given = {
            name: BUILDERS[kind](other if number else text)
            for number, (name, kind) in enumerate(kinds.items())
        }
        result = function(**given)
        return list(result) if inspect.isgenerator(result) else result

    if sum(kind in (str, str | None) for kind in kinds.values()) < 2:
        return [lambda text: call(text, text)]
    return [
        lambda text: call(text, text),
        lambda text: call(text, f"{text[: len(text) // 2]}~"),
        lambda text: call(f"{text[: len(text) // 2]}~", text),
    ]


def test_every_public_function_is_called_or_listed_with_a_reason() -> None:
    not_called = {
        name
        for name, function in FUNCTIONS.items()
        if name not in CALLS and (name in EXEMPT or not can_call(function))
    }
    assert not_called == EXEMPT.keys()


@pytest.mark.parametrize("name", sorted(FUNCTIONS.keys() - EXEMPT.keys()))
def test_time_grows_with_the_text(name: str) -> None:
    own = [CALLS[name]] if name in CALLS else calls(FUNCTIONS[name])
    first, *others = own
    assert faults(first) == []
    assert [fault for call in others for fault in faults(call, UNITS[::4])] == []


@pytest.mark.parametrize(
    "call",
    [
        lambda text: [stated(text).keeps(value) for value in stated(f"{text}1").values],
        lambda text: [stated(text).of(value.kind) for value in stated(text).values],
    ],
)
def test_values_are_compared_in_linear_time(call: Callable[[str], object]) -> None:
    assert faults(call) == []


def test_words_after_blanks_are_read_in_linear_time() -> None:
    def call(text: str) -> object:
        words = " ".join(f"w{number:x}" for number in range(len(text) // 8))
        return content_words(" " * len(text) + words)

    assert faults(call, UNITS[:1]) == []
