"""Statements that their own words bound in the past."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from pipeline.text.times.past import current_slot, is_past, past_until

PAST = [
    "User lived in Paris in 2010.",
    "User worked at Bosch from 2010 to 2014.",
    "User lived in Paris until 2014.",
    "User used to live in Paris.",
    "User was employed at Bosch as a student.",
    "User lived in Paris for two years.",
    "User's address was 12 Oak Street in 2019.",
    "User was in Lisbon last week.",
    "Nutzer wohnte früher in Bonn.",
    "Nutzer arbeitete bis 2014 bei Bosch.",
    "Nutzer hat von 2010 bis 2014 in Bonn gewohnt.",
    "Lena war 2010 in Paris.",
    "La usuaria solía vivir en Lugo.",
    "La usuaria vivió en Lugo en 2010.",
    "Ana trabajaba en Bosch hasta 2014.",
    "L'utilisateur vivait à Lyon en 2010.",
    "Camille a travaillé chez Renault de 2010 à 2014.",
    "用户2010年住在北京。",
    "用户以前住在北京。",
    "小雨2010年到2014年在博世工作。",
]
CURRENT = [
    "User lives in Oslo.",
    "User moved to Paris in 2010.",
    "User has lived in Paris since 2010.",
    "User got married in May 2026.",
    "User was promoted to manager in 2024.",
    "User is used to living in Paris.",
    "User lived in Paris until 2014 and then moved to Oslo.",
    "User is in Lisbon until Friday.",
    "The standup was moved to Friday in 2026.",
    "Nutzer wohnt seit 2010 in Bonn.",
    "Nutzer hat seit 2010 in Bonn gewohnt.",
    "Nutzer ist 2010 nach Bonn gezogen.",
    "Nutzer steht früher auf.",
    "La usuaria vive en Vigo desde 2010.",
    "La usuaria se mudó a Vigo en 2010.",
    "Ana fue ascendida en 2024.",
    "Camille habite à Lyon depuis 2010.",
    "用户从2010年起住在北京。",
    "用户2010年搬到北京。",
    "考试在2026年5月3日。",
]


@pytest.mark.parametrize("text", PAST)
def test_a_state_with_a_time_that_has_ended_is_of_the_past(text: str) -> None:
    assert is_past(text)
    assert current_slot("user", "residence", text) is None


@pytest.mark.parametrize("text", CURRENT)
def test_a_state_that_holds_and_a_change_are_not_of_the_past(text: str) -> None:
    assert not is_past(text)
    assert current_slot("user", "residence", text) == "user · residence"


@pytest.mark.parametrize(
    ("text", "year"),
    [
        ("User worked at Bosch from 2010 to 2014.", 2015),
        ("Nutzer arbeitete bis Mai 2014 bei Bosch.", 2015),
        ("Ana trabajaba en Bosch hasta 2014.", 2015),
        ("Camille a travaillé chez Renault de 2010 à 2014.", 2015),
        ("小雨2010年到2014年在博世工作。", 2015),
        ("User lived in Paris in 2010.", None),
    ],
)
def test_the_end_of_a_range_is_read(text: str, year: int | None) -> None:
    assert past_until(text) == (datetime(year, 1, 1, tzinfo=UTC) if year else None)
