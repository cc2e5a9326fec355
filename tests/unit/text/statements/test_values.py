"""Values: the names, numbers and dates that are read from statements in four languages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.text.statements.values import ValueKind, stated

STATEMENTS = [
    ("Maya has lived in New York with two cats since May 2021", "2021-5-? 2 maya new_york"),
    ("Jonas fährt seit 2019 einen VW Golf und wohnt in Köln", "2019-?-? jonas vw_golf koln"),
    ("小雨2024年3月从上海搬到成都", "2024-3-? 小雨 上海 成都"),
    ("Maya's sister Anna works at Siemens on Fridays until 18:30", "w4 18:30 maya anna siemens"),
    ("The user likes cyan", ""),
    ("Lives in Berlin, Lange Straße 5", "5 berlin lange_strasse"),
    ("User's dog is called Rex and weighs 1,500 g", "1500 rex"),
    ("Her mail is a.b@c.de and she flies an A380 on 2026-03-02", "a.b@c.de a380 2026-3-2"),
    ("Lucía trabaja en el Hospital Clínico desde marzo de 2020", "2020-3-? lucia hospital_clinico"),
    ("Bebe leche de avena por la mañana", ""),
    ("Ben trinkt am Montag mit Anna in der Küche Kakao", "w0 ben anna kakao"),
    ("王小明在北京的华为工作，每周三打羽毛球，有两只猫", "w2 2 北京 王小明"),
    ("小雨养了一只叫米粒的猫", "米粒 小雨"),
    ("小雨有三十个学生", "三十 小雨"),
    ("I'm in Rome, and I’ve said I'll stay", "rome"),
    ("User writes C++, has blood type A- and keeps it at -5 or \u22126 degrees", "c++ a- -5 -6"),
    ("User reads pages 3-5 of an e-mail, at a ratio of 3:2 - a nurse", "3 5 3:2"),
]


@pytest.mark.parametrize(("text", "keys"), STATEMENTS)
def test_names_numbers_and_dates_are_read(text: str, keys: str) -> None:
    assert {value.key for value in stated(text).values} == {
        key.replace("_", " ") for key in keys.split()
    }


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("Anna moved in May 2021", "Since 3 May 2021 Anna has lived here", True),
        ("Anna moved on 3 May 2021", "Anna moved in May 2021", False),
        ("The class is on Friday", "The class is on 2026-11-27", True),
        ("The class is on Friday", "The class is on 2026-11-26", False),
        ("Anna has two cats", "Anna has 2 cats", True),
        ("Anna hat drei Katzen", "Anna hat zwei Katzen", False),
        ("Es ist das Auto von Anna", "Annas Auto", True),
        ("Rent is 1,150 pounds", "Rent is 1150 pounds", True),
        ("Rent is 1,150 pounds", "Rent is 1.15 pounds", False),
        ("Tim knows Nora", "Tim knows Dora", False),
        ("小雨住在北京", "小雨住在上海", False),
        ("每周三上课", "每星期三上课", True),
        ("Sie fliegt mit der A380", "Sie fliegt mit einer A380 nach Rom", True),
        ("Sie fliegt mit der A380", "Sie fliegt mit einer A320 nach Rom", False),
    ],
)
def test_a_text_keeps_the_values_that_it_states_in_any_form(old: str, new: str, same: bool) -> None:
    assert all(stated(new).keeps(value) for value in stated(old).values) is same


@given(st.text(max_size=200))
def test_any_text_keeps_its_own_values(text: str) -> None:
    own = stated(text)
    assert all(own.keeps(value) for value in own.values)


def test_the_subject_of_a_statement_leads_it() -> None:
    [leading] = [value for value in stated("Anna met Ben in Rome").values if value.leads]
    assert leading.key == "anna"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("User reads Ursula K. Le Guin.", "Ursula K. Le Guin"),
        ("Mira's boss is Dr. Anna van der Berg.", "Dr. Anna van der Berg"),
        ("User works at Procter & Gamble.", "Procter & Gamble"),
        ("El usuario vive en Santiago de Compostela.", "Santiago de Compostela"),
        ("User studied at the University of Amsterdam.", "University of Amsterdam"),
        ("User moved from St. Gallen.", "St. Gallen"),
    ],
)
def test_a_name_of_several_words_is_one_value(text: str, name: str) -> None:
    assert name in {value.text for value in stated(text).values}


def test_digits_in_groups_are_one_number() -> None:
    [number] = stated("User's phone is +49 151 555-0134.").values
    assert (number.kind, number.key) == (ValueKind.NUMBER, "491515550134")
