"""Slots read from the words of statements."""

from __future__ import annotations

import pytest

from pipeline.text.statements.stated_slots import of_other_subjects, same_slot, stated_slot


@pytest.mark.parametrize(
    ("text", "slot"),
    [
        ("User's favourite author is Toni Morrison.", "user · favourite_author"),
        ("The user's new phone number is 555-0198.", "user · phone"),
        ("User's mother's phone number is 555-0198.", "user mother · phone"),
        ("Zoe's mother has the phone number 555-0177.", "zoe mother · phone"),
        ("User moved to Berlin.", "user · residence"),
        ("Mary Jane now lives on a farm.", "mary jane · residence"),
        ("User's partner is vegetarian.", "user partner · diet"),
        ("User got married in May 2026.", "user · partner"),
        ("The standup is on Tuesday at 9:15.", "standup · time"),
        ("The release is postponed.", "release · time"),
        ("Jonas ist nach Bonn umgezogen.", "jonas · residence"),
        ("Nutzers Hausärztin ist Dr. Yilmaz.", "user · hausärztin"),
        ("Die Chefin von Lena ist Priya.", "lena · chefin"),
        ("La autora favorita de Lucía es Ana María Matute.", "lucía · autora_favorita"),
        ("El usuario se mudó a Vigo.", "user · residence"),
        ("用户的医生是陈医生。", "user · 医生"),
        ("用户最喜欢的书是《三体》。", "user · favourite_书"),
        ("小雨从2018年起住在广州。", "小雨 · residence"),
    ],
)
def test_the_slot_of_a_statement_is_read(text: str, slot: str) -> None:
    assert stated_slot(text) == slot


@pytest.mark.parametrize(
    "text",
    [
        "",
        "User likes the work at Siemens.",
        "User also works at Fuglen.",
        "User lived in Paris in 2010.",
        "User's cat Tim is ten years old.",
        "User met Tom on Tuesday.",
        "User no longer lives in Oslo.",
        "The standup is on Tuesday in the garden of the office.",
    ],
)
def test_a_statement_of_another_form_has_no_slot(text: str) -> None:
    assert stated_slot(text) is None


def test_an_attribute_is_the_same_for_women_and_men() -> None:
    assert same_slot("lucía · autora_favorita", "lucía · autor_favorito")
    assert same_slot("user · hausarzt", "user · hausärztin")
    assert not same_slot("user · dentist", "user · vet")


@pytest.mark.parametrize(
    ("first", "other", "differ"),
    [
        ("zoe · phone", "zoe mother · phone", True),
        ("user · manager", "priya · manager", True),
        ("release · time", "review of the release · time", True),
        ("team · standup", "standup · time", False),
        ("user sister mary jane · residence", "mary jane · residence", False),
    ],
)
def test_subjects_are_compared_with_their_roles(first: str, other: str, *, differ: bool) -> None:
    assert of_other_subjects(first, other) is differ
    assert of_other_subjects(other, first) is differ
