"""Slots: one key for all spellings of an attribute."""

from __future__ import annotations

import pytest

from pipeline.text.statements.slots import (
    LONGEST_SLOT,
    Cardinality,
    attribute_name,
    cardinality,
    many_valued,
    single_valued,
    slot,
)


@pytest.mark.parametrize(
    ("subject", "attribute", "key"),
    [
        ("Maya", "residence", "maya · residence"),
        ("maya", "Lives in", "maya · residence"),
        ("Maya", "livesIn", "maya · residence"),
        ("Maya", "wohnort", "maya · residence"),
        ("Maya", "current_city", "maya · residence"),
        ("玛雅", "居住地", "玛雅 · residence"),
        ("The user", "employer", "user · employer"),
        ("用户", "雇主", "user · employer"),
        ("Maya's sister", "works-at", "maya sister · employer"),
        ("Maya’s sister", "works at", "maya sister · employer"),
        ("Maya", "favorite color", "maya · favourite_colour"),
        ("Maya", "preferred tea", "maya · favourite_tea"),
        ("Ana María", "teléfono", "ana maría · phone"),
    ],
)
def test_slot(subject: str, attribute: str, key: str) -> None:
    assert slot(subject, attribute) == key


@pytest.mark.parametrize(
    ("subject", "attribute"),
    [(None, "age"), ("Maya", None), ("", "age"), ("Maya", "--"), (".", "age")],
)
def test_no_slot_without_subject_or_attribute(subject: str | None, attribute: str | None) -> None:
    assert slot(subject, attribute) is None


def test_names_one_letter_apart_have_slots_of_their_own() -> None:
    assert slot("Jan", "age") != slot("Jana", "age")


def test_a_slot_has_a_bounded_length() -> None:
    key = slot("M" * 5_000, "age")
    assert key is not None
    assert len(key) == LONGEST_SLOT


@pytest.mark.parametrize(
    "attribute", ["residence", "lives_in", "employer", "favorite_food", "phone_number", "age"]
)
def test_attributes_with_one_value(attribute: str) -> None:
    assert single_valued(slot("Maya", attribute))


@pytest.mark.parametrize(
    "attribute", ["likes", "hobby", "pet", "visited", "allergy", "languages", "plans", "x"]
)
def test_attributes_with_several_values(attribute: str) -> None:
    assert not single_valued(slot("Maya", attribute))


@pytest.mark.parametrize(
    "attribute", ["locker_number", "spind", "número_de_taquilla", "储物柜号", "mentor"]
)
def test_an_unknown_attribute_has_the_number_of_values_that_is_known(attribute: str) -> None:
    key = slot("Maya", attribute)
    assert not single_valued(key)
    assert not many_valued(key)
    assert single_valued(key, Cardinality.ONE)
    assert many_valued(key, Cardinality.SEVERAL)


@pytest.mark.parametrize(
    "attribute",
    ["languages", "idiomas", "sprachen", "children", "allergie", "过敏", "bank_accounts"],
)
def test_the_extractions_word_does_not_overrule_the_table(attribute: str) -> None:
    key = slot("Maya", attribute)
    known = cardinality(key, Cardinality.ONE, None)
    assert (known, many_valued(key, known), single_valued(key, known)) == (None, True, False)


def test_the_projects_list_overrules_the_table_and_the_extraction() -> None:
    own = {"languages": "one", "residence": "several"}
    languages = cardinality(slot("Maya", "speaks"), Cardinality.SEVERAL, own)
    homes = cardinality(slot("Maya", "lives in"), Cardinality.ONE, own)
    assert (languages, homes) == (Cardinality.ONE, Cardinality.SEVERAL)
    assert many_valued(slot("Maya", "residence"), homes)


def test_an_unknown_slot_has_several_values() -> None:
    assert not single_valued(None)


def test_an_attribute_keeps_its_own_name() -> None:
    assert attribute_name("Shoe size") == "shoe_size"
