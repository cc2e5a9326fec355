"""Times that a summary keeps: dates and clock times of statements, in four languages."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from pipeline.text.times.kept_times import missing_times, times, times_to_keep
from pipeline.text.times.when import dated

# A Sunday.
SAID_AT = datetime(2026, 11, 22, 9, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("We met yesterday at 18:30.", {"2026-11-21", "18:30"}),
        ("Wir haben uns gestern um 18:30 getroffen.", {"2026-11-21", "18:30"}),
        ("Nos vimos ayer a las 18:30.", {"2026-11-21", "18:30"}),
        ("我们昨天18:30见面。", {"2026-11-21", "18:30"}),
        ("She moved in May 2021 and has 2 cats.", {"2021-5-?"}),
        ("The exam is on 3 December.", {"?-12-3"}),
        ("Nothing happened.", set()),
    ],
)
def test_relative_times_are_kept_as_dates(text: str, keys: set[str]) -> None:
    completed, _ = dated(text, SAID_AT)
    assert {value.key for value in times(completed)} == keys


@pytest.mark.parametrize(
    "text", ["How are you today?", "Was machst du morgen?", "¿Qué haces hoy?", "你明天来吗？"]
)
def test_a_question_states_no_time(text: str) -> None:
    assert times(dated(text, SAID_AT)[0]) == []


def test_a_statement_beside_a_question_keeps_its_time() -> None:
    assert [value.text for value in times("Really? I left on 2024-03-02. And you?")] == [
        "2024-03-02"
    ]


def test_a_more_exact_date_is_kept_too() -> None:
    wanted = times_to_keep(["They met in May 2021."], most=9)
    assert missing_times(wanted, "They met on 2021-05-03.") == []
    assert missing_times(wanted, "They met in June.") == ["May 2021"]


def test_a_weekday_is_kept_by_its_date() -> None:
    wanted = times_to_keep(["She swims on Sunday."], most=9)
    assert missing_times(wanted, "She swims on 2026-11-22.") == []


def test_only_the_first_ones_are_wanted() -> None:
    texts = ["On 2024-01-01 and 2024-01-02.", "On 2024-01-01.", "On 2024-01-03."]
    assert [value.text for value in times_to_keep(texts, most=2)] == ["2024-01-01", "2024-01-02"]
