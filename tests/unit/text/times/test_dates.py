"""Dates and ranges in questions, in four languages; "now" is 19 June 2024."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.text.times.dates import MOST_SPANS, Span, closeness, spans

NOW = datetime(2024, 6, 19, 12, tzinfo=UTC)
MOMENTS = st.datetimes(timezones=st.just(UTC))


def span(first: str, last: str | None = None) -> Span:
    return Span(date.fromisoformat(first), date.fromisoformat(last or first))


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What did Maya do in May 2023?", span("2023-05-01", "2023-05-31")),
        ("Where was she on May 7th, 2023?", span("2023-05-07")),
        ("on the 7th of May, 2023", span("2023-05-07")),
        ("what happened on 2023-05-07", span("2023-05-07")),
        ("last March", span("2024-03-01", "2024-03-31")),
        ("last August", span("2023-08-01", "2023-08-31")),
        ("What did I say yesterday?", span("2024-06-18")),
        ("two weeks ago", span("2024-06-03", "2024-06-09")),
        ("last week", span("2024-06-10", "2024-06-16")),
        ("this month", span("2024-06-01", "2024-06-30")),
        ("last Friday", span("2024-06-14")),
        ("in the last 3 days", span("2024-06-16", "2024-06-19")),
        ("Which film did we see in 2022?", span("2022-01-01", "2022-12-31")),
        ("Was war im März 2022?", span("2022-03-01", "2022-03-31")),
        ("letzte Woche", span("2024-06-10", "2024-06-16")),
        ("vor drei Tagen", span("2024-06-16")),
        ("¿Qué hizo el 5 de mayo de 2023?", span("2023-05-05")),
        ("el mes pasado", span("2024-05-01", "2024-05-31")),
        ("hace dos días", span("2024-06-17")),
        ("2023年5月7日她做了什么", span("2023-05-07")),
        ("上周", span("2024-06-10", "2024-06-16")),
        ("去年", span("2023-01-01", "2023-12-31")),
        ("三天前", span("2024-06-16")),
        ("What did I do last summer?", span("2023-06-01", "2023-08-31")),
        ("What did I read last winter?", span("2023-12-01", "2024-02-29")),
        ("Where did we hike last fall with Ann?", span("2023-09-01", "2023-11-30")),
        ("What did Maya do this spring?", span("2024-03-01", "2024-05-31")),
        ("What are my plans for next summer?", span("2025-06-01", "2025-08-31")),
        ("What did we do in the summer of 2022?", span("2022-06-01", "2022-08-31")),
        ("Which state did Ann visit in summer 2021?", span("2021-06-01", "2021-08-31")),
        ("the winter of 2022/23", span("2022-12-01", "2023-02-28")),
        ("in the winter of 2022", span("2022-01-01", "2022-12-31")),
        ("Was habe ich letzten Sommer gemacht?", span("2023-06-01", "2023-08-31")),
        ("im Herbst 2022", span("2022-09-01", "2022-11-30")),
        ("¿Qué hizo Ana el verano pasado?", span("2023-06-01", "2023-08-31")),
        ("la primavera de 2022", span("2022-03-01", "2022-05-31")),
        ("What is on the 14th?", span("2024-07-14")),
        ("What's on the 25th at the office?", span("2024-06-25")),
        ("What did I do on the 14th?", span("2024-06-14")),
        ("Who called on the 25th?", span("2024-05-25")),
        ("Whom did I meet on the 15th after my trip?", span("2024-06-15")),
    ],
)
def test_a_question_asks_about(question: str, expected: Span) -> None:
    assert spans(question, NOW) == (expected,)


@pytest.mark.parametrize(
    ("question", "today", "expected"),
    [
        ("a month ago", "2024-03-31", span("2024-02-01", "2024-02-29")),
        ("vor einem Monat", "2024-12-31", span("2024-11-01", "2024-11-30")),
        ("hace un mes", "2025-03-01", span("2025-02-01", "2025-02-28")),
        ("11 months ago", "2025-12-31", span("2025-01-01", "2025-01-31")),
        ("two years ago", "2024-12-31", span("2022-01-01", "2022-12-31")),
        ("10 years ago", "2025-12-31", span("2015-01-01", "2015-12-31")),
        ("a year ago", "2024-02-29", span("2023-01-01", "2023-12-31")),
    ],
)
def test_months_and_years_ago_are_those_of_the_calendar(
    question: str, today: str, expected: Span
) -> None:
    """On the last day of a month or a leap year too: 30 days are no month, 730 no two years."""
    assert spans(question, datetime.fromisoformat(f"{today}T12:00:00+00:00")) == (expected,)


@pytest.mark.parametrize(
    "question", ["in May", "im Mai", "en mayo", "5月", "Did they march in May?"]
)
def test_a_month_without_a_year_is_that_of_any_year(question: str) -> None:
    [span] = spans(question, NOW)
    assert (span.first.month, span.any_year) == (5, True)


@pytest.mark.parametrize(
    "question",
    [
        "What happened before the wedding?",
        "May I ask what she likes?",
        "Who will march with them?",
        "When did Jan move?",
        "Is chapter 12 done?",
        "Who won on 31 June?",
        "Who lives on the 14th floor?",
        "Is she in the 5th grade?",
        "What must I learn by the 5th grade?",
        "Who scored in the 4th?",
        "Did I pass on the 1st try?",
        "Who won on the 1st or 2nd try?",
        "What is on the 31st?",
        "Who ate the last spring roll?",
        "Do I like this spring roll?",
        "When did I fall in love?",
        "When did I last fall in love?",
        "When did Maya last fall?",
        "When is our spring cleaning?",
        "How long does this spring cleaning take?",
        "Where did I buy this winter coat?",
        "What did I like about this summer's film?",
        "How was my last summer in Rome?",
        "When was the last winter of his life?",
        "What do I do in summer?",
        "Was machen wir in diesem Fall?",
        "",
    ],
)
def test_what_is_not_certain_is_no_date(question: str) -> None:
    assert [span for span in spans(question, NOW) if span.is_day] == []
    if "June" not in question:
        assert spans(question, NOW) == ()


def day(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def test_the_nearer_to_what_was_asked_the_better() -> None:
    may = spans("in May 2023", NOW)
    assert closeness(may, day("2023-05-20")) > closeness(may, day("2023-06-05")) > 0
    assert closeness(may, day("2023-06-05")) > closeness(may, day("2022-05-20")) > 0
    assert closeness(may, day("2023-08-01")) == 0
    assert closeness(may, day("2023-04-30")) == 0
    seventh = spans("on 7 May 2023", NOW)
    assert closeness(seventh, day("2023-05-09")) == 1
    assert closeness(seventh, day("2023-05-09")) > closeness(seventh, day("2023-05-30")) > 0


def test_a_leap_day_is_no_date_if_no_near_year_has_one() -> None:
    assert closeness(spans("on 29 February", NOW), day("2002-02-28")) == 0


def test_a_day_of_any_year_is_near_across_new_year() -> None:
    assert closeness(spans("on 1 January", NOW), day("2023-12-29")) == 1


def test_no_time_asked_for_is_near_to_nothing() -> None:
    assert closeness((), NOW) == 0


@given(st.text(), MOMENTS)
def test_any_text_can_be_read_at_any_time(text: str, now: datetime) -> None:
    for span in spans(text, now):
        assert span.first <= span.last


@given(
    st.dates(date(1990, 1, 1), date(2090, 1, 1)),
    st.integers(0, 400),
    st.booleans(),
    MOMENTS,
)
def test_closeness_is_a_share(first: date, days: int, any_year: bool, when: datetime) -> None:
    span = Span(first, first + timedelta(days=days), any_year)
    assert 0 <= closeness((span,), when) <= 1


def test_a_text_of_hundreds_of_dates_has_eight_times() -> None:
    text = " ".join(f"2020-{n % 12 + 1:02}-{n % 28 + 1:02}" for n in range(300))
    assert len(spans(text, datetime(2026, 3, 1, tzinfo=UTC))) == MOST_SPANS


def test_yesterday_is_that_of_the_clock_of_the_question() -> None:
    tokyo = NOW.replace(hour=20).astimezone(timezone(timedelta(hours=9)))
    assert spans("What did I say yesterday?", tokyo) == (span("2024-06-19"),)
