"""Times of statements, in four languages; the statements are of Wednesday 19 June 2024."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.text.times.dates import Span
from pipeline.text.times.when import dated, resolve

NOW = datetime(2024, 6, 19, 12, tzinfo=UTC)


def span(first: str, last: str | None = None) -> Span:
    return Span(date.fromisoformat(first), date.fromisoformat(last or first))


PAST = [
    ("yesterday", span("2024-06-18")),
    ("last May", span("2024-05-01", "2024-05-31")),
    ("in August", span("2023-08-01", "2023-08-31")),
    ("on 7 May", span("2024-05-07")),
    ("since 2019", span("2019-01-01", "2019-12-31")),
    ("2019", span("2019-01-01", "2019-12-31")),
    ("on Friday", span("2024-06-14")),
    (
        "last weekend",
        span("2024-06-15", "2024-06-16"),
    ),
    ("two months ago", span("2024-04-01", "2024-04-30")),
    ("gestern", span("2024-06-18")),
    ("letzten Freitag", span("2024-06-14")),
    ("vor zwei Wochen", span("2024-06-03", "2024-06-09")),
    ("seit drei Jahren", span("2021-01-01", "2021-12-31")),
    ("im August", span("2023-08-01", "2023-08-31")),
    ("ayer", span("2024-06-18")),
    ("el viernes pasado", span("2024-06-14")),
    ("hace un mes", span("2024-05-01", "2024-05-31")),
    ("desde 2019", span("2019-01-01", "2019-12-31")),
    ("el mes pasado", span("2024-05-01", "2024-05-31")),
    ("昨天", span("2024-06-18")),
    ("上周五", span("2024-06-14")),
    ("三个月前", span("2024-03-01", "2024-03-31")),
    ("2019年", span("2019-01-01", "2019-12-31")),
    ("去年五月", span("2023-01-01", "2023-12-31")),
    ("last summer", span("2023-06-01", "2023-08-31")),
    ("this spring", span("2024-03-01", "2024-05-31")),
    ("summer of 2022", span("2022-06-01", "2022-08-31")),
    ("letzten Winter", span("2023-12-01", "2024-02-29")),
    ("el otoño pasado", span("2023-09-01", "2023-11-30")),
    ("on the 14th", span("2024-06-14")),
    ("on the 25th", span("2024-05-25")),
    ("on the 14th floor", None),
    ("by the 5th grade", None),
    ("last spring roll", None),
    ("this spring cleaning", None),
    ("recently", None),
    ("every Friday", None),
    ("jeden Montag", None),
    ("cada semana", None),
    ("每周五", None),
    ("on Fridays", None),
    ("at some point", None),
    ("", None),
]
FUTURE = [
    ("tomorrow", span("2024-06-20")),
    ("next Friday", span("2024-06-21")),
    ("on Wednesday", span("2024-06-19")),
    ("in two weeks", span("2024-07-01", "2024-07-07")),
    ("next month", span("2024-07-01", "2024-07-31")),
    ("in May", span("2025-05-01", "2025-05-31")),
    ("in June", span("2024-06-01", "2024-06-30")),
    ("three days from now", span("2024-06-22")),
    ("morgen", span("2024-06-20")),
    ("übermorgen", span("2024-06-21")),
    ("nächste Woche", span("2024-06-24", "2024-06-30")),
    ("am Freitag", span("2024-06-21")),
    ("in drei Tagen", span("2024-06-22")),
    ("mañana", span("2024-06-20")),
    ("la semana que viene", span("2024-06-24", "2024-06-30")),
    ("el próximo viernes", span("2024-06-21")),
    ("dentro de dos semanas", span("2024-07-01", "2024-07-07")),
    ("明天", span("2024-06-20")),
    ("下周五", span("2024-06-28")),
    ("两周后", span("2024-07-01", "2024-07-07")),
    ("明年", span("2025-01-01", "2025-12-31")),
    ("next summer", span("2025-06-01", "2025-08-31")),
    ("next autumn", span("2024-09-01", "2024-11-30")),
    ("nächsten Winter", span("2024-12-01", "2025-02-28")),
    ("el verano que viene", span("2025-06-01", "2025-08-31")),
    ("on the 14th", span("2024-07-14")),
    ("moved to the 25th", span("2024-06-25")),
    ("by the 19th", span("2024-06-19")),
]


@pytest.mark.parametrize(("words", "expected"), PAST)
def test_words_about_the_past(words: str, expected: Span | None) -> None:
    assert resolve(words, NOW) == expected


@pytest.mark.parametrize(("words", "expected"), FUTURE)
def test_words_about_the_future(words: str, expected: Span | None) -> None:
    assert resolve(words, NOW, ahead=True) == expected


@pytest.mark.parametrize(
    ("text", "when", "ahead", "written", "start"),
    [
        ("Met Jon yesterday.", None, False, "Met Jon yesterday (2024-06-18).", "2024-06-18"),
        ("Maya moved to Bern.", "last May", False, "Maya moved to Bern (2024-05).", "2024-05-01"),
        ("Maya moved to Bern in May 2024.", "last May", False, None, "2024-05-01"),
        ("Moved to Bern on 7 May 2024.", "last May", False, None, "2024-05-01"),
        ("Maya moved in 2024.", "last May", False, "Maya moved in 2024 (2024-05).", "2024-05-01"),
        ("Oslo next week (2024-06-24 – 2024-06-30).", "next week", True, None, "2024-06-24"),
        ("Er kommt morgen.", "morgen", True, "Er kommt morgen (2024-06-20).", "2024-06-20"),
        ("Fue a Oslo ayer.", "ayer", False, "Fue a Oslo ayer (2024-06-18).", "2024-06-18"),
        ("她昨天去了奥斯陆。", "昨天", False, "她昨天（2024-06-18）去了奥斯陆。", "2024-06-18"),
        ("玛雅搬到了伯尔尼。", "去年", False, "玛雅搬到了伯尔尼（2023）。", "2023-01-01"),
        ("Maya runs every Friday.", "every Friday", False, None, None),
        ("Maya's birthday is on 7 May.", None, False, None, None),
        ("Maya has 2019 followers.", None, False, None, None),
        ("Maya likes tea.", None, False, None, None),
        ("Maya met Jon yesterday and Ann last week.", None, False,
         "Maya met Jon yesterday (2024-06-18) and Ann last week (2024-06-10 – 2024-06-16).", None),
        ("Maya plays chess in the morning.", None, False, None, None),
        ("Maya corre por la mañana.", None, False, None, None),
        ("Maya läuft am Morgen.", None, False, None, None),
        ("Ann hiked last summer.", None, False, "Ann hiked last summer (2023).", "2023-06-01"),
        ("Maya skied.", "last winter", False, "Maya skied (2023/24).", "2023-12-01"),
        ("Ann hiked in summer 2023.", "last summer", False, None, "2023-06-01"),
        ("Maya's exam is on the 25th.", None, False, None, None),
    ],
)  # fmt: skip
def test_a_text_gets_the_dates_of_its_relative_times(
    text: str, when: str | None, ahead: bool, written: str | None, start: str | None
) -> None:
    assert dated(text, NOW, when=when, ahead=ahead) == (
        written or text,
        start and datetime.fromisoformat(start).replace(tzinfo=UTC),
    )


def test_a_day_that_a_model_counted_wrong_is_corrected() -> None:
    text = "Maya met Jon on 2024-06-13."
    assert dated(text, NOW, when="last Friday")[0] == "Maya met Jon on 2024-06-14."
    assert (
        dated(text, NOW, when="last Friday", source="it was 2024-06-13")[0]
        != "Maya met Jon on 2024-06-14."
    )


def test_a_date_far_from_the_words_is_another_date() -> None:
    text = "On Friday Maya heard that her exam is on 2024-09-01."
    assert "2024-09-01" in dated(text, NOW, when="on Friday")[0]


@pytest.mark.parametrize("when", ["yesterday", "last week", "last year", "去年", "last summer"])
def test_a_text_is_completed_once(when: str) -> None:
    once, start = dated(f"Maya met Jon {when}.", NOW, when=when)
    assert dated(once, NOW, when=when) == (once, start)


@pytest.mark.parametrize(
    ("today", "words", "expected"),
    [
        ("2024-01-15", "last winter", span("2022-12-01", "2023-02-28")),
        ("2024-01-15", "this winter", span("2023-12-01", "2024-02-29")),
        ("2024-01-15", "next winter", span("2024-12-01", "2025-02-28")),
        ("2024-12-15", "this winter", span("2024-12-01", "2025-02-28")),
        ("2024-09-15", "this summer", span("2024-06-01", "2024-08-31")),
        ("2024-09-15", "last summer", span("2024-06-01", "2024-08-31")),
        ("2024-05-31", "next summer", span("2024-06-01", "2024-08-31")),
    ],
)
def test_a_season_is_that_beside_the_day(today: str, words: str, expected: Span) -> None:
    assert resolve(words, datetime.fromisoformat(f"{today}T12:00:00+00:00")) == expected


@settings(deadline=None)
@given(st.text(), st.text() | st.none(), st.datetimes(timezones=st.just(UTC)), st.booleans())
def test_no_text_raises(text: str, when: str | None, now: datetime, ahead: bool) -> None:
    completed, _ = dated(text, now, when=when, ahead=ahead)
    assert len(completed) >= len(text)
