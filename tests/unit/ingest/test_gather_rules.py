"""Gathering: which of a scope's first turns run now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import pytest

from pipeline.domain.events import AddOptions, Event, EventType, Question, StageName
from pipeline.domain.lanes import Batch, Gather
from pipeline.domain.messages import Message, Role, Source, SourcedMessage
from pipeline.domain.modes import Mode
from pipeline.domain.scope import Scope
from pipeline.domain.tenants import ProjectId
from pipeline.ingest.gathering import can_gather, runs_now, topic_shift

PROJECT = ProjectId(UUID(int=1))
NOW = datetime(2026, 11, 22, tzinfo=UTC)
LIMITS = Gather(messages=3, tokens=100, seconds=60)
SCHOOL = "My daughter Lena starts primary school in August, and Lena loves her new teacher."
MORE_SCHOOL = "The teacher says that Lena can read already, the school is happy about Lena."
CAR = "Our old red car made strange noises on the motorway near Basel this morning."


def event(text: str, seq: int, options: AddOptions) -> Event:
    message = SourcedMessage(Source(seq - 1, 0), Message(Role.USER, text), NOW)
    return Event(UUID(int=seq), seq, options, [message])


def batch(*texts: str, age_s: float = 0.0, **options: Any) -> Batch:
    chosen = AddOptions(**options)
    events = [event(text, seq, chosen) for seq, text in enumerate(texts, start=1)]
    return Batch(
        uuid4(), Scope(PROJECT, user_id="maya"), events, (), {}, age_s, gather=LIMITS, payer=PROJECT
    )


def test_one_short_turn_waits() -> None:
    assert runs_now(batch("I live in Bern."), LIMITS, more_behind=False) == 0


@pytest.mark.parametrize(
    ("waiting", "more_behind"),
    [
        (batch("I live in Bern.", age_s=60.0), False),
        (batch("Hi.", "I live in Bern.", "I like tea."), False),
        (batch("word " * 100), False),
        (batch("I live in Bern."), True),
    ],
    ids=["time", "messages", "tokens", "an event that cannot join"],
)
def test_they_run_once_a_limit_is_reached(waiting: Batch, more_behind: bool) -> None:
    assert runs_now(waiting, LIMITS, more_behind=more_behind) == len(waiting.events)


def test_a_new_topic_runs_the_turns_before_it() -> None:
    assert runs_now(batch(SCHOOL, MORE_SCHOOL, CAR), LIMITS, more_behind=False) == 2


@pytest.mark.parametrize(
    ("texts", "position"),
    [
        ((SCHOOL, MORE_SCHOOL), None),
        ((SCHOOL, "Yes, on Friday."), None),
        ((SCHOOL, CAR), 1),
        (("Meine Tochter Lena kommt im August in die Schule und mag ihre Lehrerin sehr.",
          "Unser altes rotes Auto machte heute auf der Autobahn bei Basel laute Geräusche."), 1),
        (("Mi hija Lena empieza la escuela en agosto y quiere mucho a su maestra nueva.",
          "Nuestro viejo coche rojo hizo ruidos extraños por la autopista cerca de Basilea."), 1),
        (("我女儿八月开始上小学，她很喜欢新老师。",
          "我们的旧车今天早上在高速公路上发出奇怪的声音。"), 1),
        (("我女儿八月开始上小学，她很喜欢新老师。", "老师说我女儿上小学以前就会看书了。"), None),
    ],
)  # fmt: skip
def test_a_topic_shift_is_found_by_words(texts: Sequence[str], position: int | None) -> None:
    assert topic_shift(batch(*texts).events) == position


@pytest.mark.parametrize(
    "other",
    [
        replace(batch("I live in Bern."), gather=None),
        replace(batch("I live in Bern."), mode=Mode.TURNS),
        replace(batch("I live in Bern."), payer=ProjectId(UUID(int=2))),
        replace(batch("I live in Bern."), outputs={StageName.EXTRACT: {}}),
        batch("I live in Bern.", infer=False),
        batch("I live in Bern.", procedural=True),
        batch("?", question=Question(EventType.EXPORT, {}, {})),
    ],
    ids=["off", "turns", "replay", "read", "verbatim", "procedure", "question"],
)
def test_others_run_at_once(other: Batch) -> None:
    assert not can_gather(other)
    assert can_gather(batch("I live in Bern."))
