"""Conservation: changes that lose a value, that no fact states, or that miss the matter."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.domain.consolidation.conservation import (
    Replacement,
    keeps_all,
    lost,
    objection,
    same_attribute,
    same_statement,
)
from pipeline.domain.consolidation.objections import Loss

HARMLESS = [
    ("Maya lives in Berlin", "Maya lives in Lisbon", "Maya moved to Lisbon"),
    ("Maya lives in Berlin", "Maya lives in Lisbon", "Maya moved from Berlin to Lisbon"),
    ("Jonas trinkt Kaffee", "Jonas trinkt Tee", "Jonas trinkt jetzt Tee statt Kaffee"),
    ("Lucía vive en Madrid", "Lucía vive en Bilbao", "Lucía se ha mudado a Bilbao"),
    ("小雨住在上海", "小雨住在成都", "小雨搬到成都"),
    ("Maya has 2 cats", "Maya has 3 cats", "Maya has 3 cats now"),
    ("Maya prefers C++", "Maya prefers C", "Maya prefers C"),
    ("Maya's blood type is A+", "Maya's blood type is A-", "Maya's blood type is A-"),
    ("Maya works in Room12b", "Maya works in Room13b", "Maya works in Room13b"),
    ("The exam is on 14 June", "The exam is on 5 July", "The exam was moved to 5 July"),
    ("User has a dog called Rex", None, "User's dog Rex died"),
    ("User has a dog", None, "User no longer has a dog"),
    ("小雨对花生过敏", None, "小雨对花生不再过敏"),
    ("Jonas spielt in einer Band", None, "Jonas spielt nicht mehr in der Band"),
    ("Lucía toca el clarinete", None, "Lucía ya no toca el clarinete"),
]
VALUE_LOSSES = [
    ("Maya lives in Berlin with 2 cats", "Maya lives in Lisbon", "Maya moved to Lisbon"),
    ("Anna likes tea", "Ben likes tea", "Ben likes tea"),
    ("Maya's blood type is A-, and she weighs 70 kg", "Maya weighs 72 kg", "Maya weighs 72 kg"),
    ("Maya writes C++ and weighs 70 kg", "Maya writes C and weighs 72 kg", "Maya weighs 72 kg"),
    ("Maya met Tom and Lea in Rome", "Maya met Kim in Rome", "Maya met Kim in Rome"),
    ("Maya plays tennis with Tom", "Maya plays tennis with Lea", "Maya also plays tennis with Lea"),
    ("Jonas spielt Schach mit Ole", "Jonas spielt Schach mit Kai", "Jonas spielt auch mit Kai"),
    ("小雨住在上海，有三十个学生", "小雨住在成都", "小雨搬到成都"),
    ("Maya works at Siemens since 2019", "Maya works at Siemens", "Maya likes her work at Siemens"),
    ("Maya lives with Tom", "Maya lives alone", "Maya lives with Tom, but not with her cat"),
]
UNFOUNDED = [
    ("User likes jazz", "User plays chess", "User plays chess"),
    ("User likes jazz", None, "User plays chess"),
    ("User has a dog called Rex", None, "User no longer eats meat"),
    ("Anna likes tea", None, "Ben no longer drinks tea"),
    ("小雨喜欢爵士乐", None, "小雨不再吃肉"),
]


@pytest.mark.parametrize(("old", "new", "fact"), HARMLESS)
def test_a_change_that_the_fact_states_is_applied(old: str, new: str | None, fact: str) -> None:
    assert objection(Replacement(old, new, fact)) is None


@pytest.mark.parametrize(("old", "new", "fact"), VALUE_LOSSES)
def test_an_update_that_drops_a_value_is_refused(old: str, new: str, fact: str) -> None:
    refused = objection(Replacement(old, new, fact, old_slot="maya · car", fact_slot="maya · car"))
    assert refused is not None
    assert refused.loss is Loss.VALUES
    assert refused.values


@pytest.mark.parametrize(("old", "new", "fact"), UNFOUNDED)
def test_a_change_of_another_matter_is_refused(old: str, new: str | None, fact: str) -> None:
    refused = objection(Replacement(old, new, fact))
    assert refused is not None
    assert refused.loss is Loss.OTHER_MATTER


def test_a_delete_without_a_take_back_needs_a_successor_with_the_values() -> None:
    old, fact = "Maya has lived in Rome since 2019", "Maya lives in Rome near the river"
    assert objection(Replacement(old, None, fact)) is not None
    merged = "Maya has lived in Rome, near the river, since 2019"
    assert objection(Replacement(old, None, fact, successors=[merged])) is None
    poorer = "Maya has lived in Rome, near the river"
    refused = objection(Replacement(old, None, fact, successors=[poorer]))
    assert refused is not None
    assert refused.values == ("2019",)


def test_a_slot_or_a_near_meaning_shows_the_same_matter() -> None:
    change = Replacement("Maya drives an old car", None, "Maya sold the Toyota")
    assert objection(change) is not None
    sold = ("Maya drives an old car", None, "Maya sold the Toyota")
    assert objection(Replacement(*sold, old_slot="maya · car", fact_slot="maya · car")) is None
    refused = objection(Replacement(*sold, similarity=0.7))  # no decision rests on a cosine alone
    assert refused is not None
    assert refused.loss is Loss.UNSTATED


@pytest.mark.parametrize(
    ("old", "new", "fact", "slots"),
    [
        # another subject, another attribute
        (
            "Zoe's mother has the phone number 555-0124.",
            "Zoe's phone number is 555-0177.",
            "Zoe's phone number is 555-0177.",
            ("zoe's mother · phone", "zoe · phone"),
        ),
        (
            "Ada's dentist is Dr Hall.",
            "Ada's vet is Dr Hale.",
            "Ada's vet is Dr Hale.",
            ("ada · dentist", "ada · vet"),
        ),
        # a name one letter apart
        (
            "Vera's friend Marta teaches chess.",
            "Vera's friend Maria teaches chess.",
            "Vera's friend Maria teaches chess.",
            (None, None),
        ),
        # one more value of many
        (
            "Eli speaks Welsh.",
            "Eli speaks Dutch.",
            "Eli speaks Dutch.",
            ("eli · languages", "eli · languages"),
        ),
        # the fact's own values
        (
            "Fay's son goes to school.",
            "Fay's son goes to school: year at.",
            "Fay's son Ivo is in year 3 at Hillside Primary.",
            (None, None),
        ),
        # a take-back of something else
        ("Hana's running coach is Bruno.", None, "Hana no longer runs 10 km.", (None, None)),
        ("陈博周末教小朋友下围棋。", None, "陈博没有中5000元的彩票，那是玩笑。", (None, None)),
    ],
)
def test_a_change_of_something_else_is_refused(
    old: str, new: str | None, fact: str, slots: tuple[str | None, str | None]
) -> None:
    assert objection(Replacement(old, new, fact, old_slot=slots[0], fact_slot=slots[1]))


def test_measuring_again_is_no_addition() -> None:
    old, new = "El hijo de Diego mide 134 cm.", "El hijo de Diego mide 132 cm, medido otra vez."
    assert objection(Replacement(old, new, new)) is None


@given(st.text(max_size=80), st.text(max_size=80), st.text(max_size=80))
def test_a_text_that_keeps_everything_loses_nothing(old: str, more: str, fact: str) -> None:
    assert lost(old, old, fact) == ()
    # A blank alone may join both to another value: "0 JUL" is a date.
    assert lost(old, f"{old} / {more}", old) == ()


NAMES = st.sampled_from(["Anna", "Ben", "Köln", "Siemens", "Rome", "Lea", "Tokyo"])


@given(st.sets(NAMES, min_size=2, max_size=4), st.data())
def test_no_more_values_are_replaced_than_the_fact_states(
    names: set[str], data: st.DataObject
) -> None:
    old = f"Kim met {', '.join(sorted(names))}"
    left = data.draw(st.sets(st.sampled_from(sorted(names)), max_size=len(names) - 2))
    new = f"Kim met {', '.join([*sorted(left), 'Zoe'])}"
    assert len(lost(old, new, "Kim met Zoe")) == len(names) - len(left) - 1


@pytest.mark.parametrize(
    ("first", "other", "same"),
    [
        ("User's favourite colour is purple.", "user’s favourite colour is purple", True),
        ("User's favourite colour is purple", "User's favourite colour is cyan", False),
        ("User eats meat", "User does not eat meat", False),
        ("Anna likes tea", "Anne likes tea", False),
        ("Anna has 2 cats", "Anna has 3 cats", False),
        ("Anna met Ben", "Ben met Anna", False),
        ("小雨喜欢茶。", "小雨喜欢茶", True),
        ("小雨喜欢茶", "小雨不喜欢茶", False),
        ("I'm in the choir.", "I am in a choir", True),
        ("Jonas spielt Cello in einem Orchester", "Jonas spielt Cello im Orchester!", True),
        ("Clara es alérgica al apio", "Clara es muy alérgica al apio", True),
        ("I fly to Paris on Mondays", "I fly from Paris on Mondays", False),
        ("Ich fahre nach Köln", "Ich fahre von Köln", False),
        ("My car is red", "His car is red", False),
        ("We own a house", "They own a house", False),
        ("I have a dog", "I had a dog", False),
        ("I will move to Rome", "I moved to Rome", False),
        ("I lived in Rome", "I live in Rome", False),
        ("I can swim", "I should swim", False),
        ("Anna likes tea or coffee", "Anna likes tea and coffee", False),
        ("My blood type is A+", "My blood type is A-", False),
        ("My garden is at -5 degrees", "My garden is at 5 degrees", False),
        ("My garden is at \u22125 degrees", "My garden is at -5 degrees", True),
        ("I write code in C", "I write code in C++", False),
        ("I write code in C#", "I write code in C", False),
        ("The ticket costs $5", "The ticket costs €5", False),
        ("My share is 5%", "My share is 5", False),
        ("My rent is > 900", "My rent is < 900", False),
        ("I have a well-known aunt - she sings", "I have a well known aunt, she sings", True),
    ],
)
def test_only_the_same_statement_is_merged_without_a_model(
    first: str, other: str, same: bool
) -> None:
    assert same_statement(first, other) is same


def test_a_name_of_another_matter_replaces_no_name() -> None:
    old = "Hana's running coach is Bruno"
    fact = "Because of her knee, Hana no longer runs 21 km with the Red Foxes"
    assert (refused := objection(Replacement(old, fact, fact))) is not None
    assert refused.values == ("Bruno",)


def test_a_chinese_text_is_completed_by_insertions() -> None:
    assert keeps_all("孙丽喜欢喝普洱茶。", "孙丽喜欢喝龙井茶和普洱茶。")
    assert not keeps_all("孙丽喜欢喝普洱茶。", "孙丽喜欢喝龙井茶。")
    assert not keeps_all("孙丽喜欢喝普洱茶。", "孙丽不喜欢喝普洱茶。")


def test_a_take_back_of_another_value_of_the_slot_deletes_nothing() -> None:
    slot = "maya · residence"
    stated = Replacement(
        "Maya lives in Berlin",
        None,
        "Maya no longer lives in Hamburg",
        old_slot=slot,
        fact_slot=slot,
    )
    assert (refused := objection(stated)) is not None
    assert refused.loss is Loss.UNSTATED
    assert objection(replace(stated, fact="Maya no longer lives in Berlin")) is None
    assert objection(replace(stated, fact="Maya has no home any more")) is None


def single(old: str, new: str | None, fact: str, **values: object) -> Replacement:
    """A change in a slot with one value."""
    slot = "maya · residence"
    change = Replacement(old, new, fact, old_slot=slot, fact_slot=slot)
    return replace(change, **values)  # type: ignore[arg-type]


def test_a_value_of_another_class_replaces_the_value_of_its_slot() -> None:
    old, fact = "Maya lives in San Francisco, California.", "Maya lives on a boat."
    assert objection(single(old, fact, fact)) is None
    assert objection(single(old, None, fact, added=[fact])) is None


def test_what_else_the_memory_says_stays() -> None:
    old, fact = "Maya lives in Oslo and keeps bees with Tom.", "Maya lives on a boat."
    assert (refused := objection(single(old, fact, fact))) is not None
    assert refused.values == ("Tom", "keeps bees with Tom")
    assert objection(single(old, "Maya lives on a boat and keeps bees with Tom.", fact)) is None


def test_a_fact_that_repeats_the_value_replaces_nothing() -> None:
    old, fact = "Maya has lived in Oslo since 2019.", "Maya likes the summers in Oslo."
    assert (refused := objection(single(old, fact, fact))) is not None
    assert refused.values == ("2019",)


def test_a_list_keeps_its_words() -> None:
    slot = "maya · allergies"
    change = Replacement(
        "Maya is allergic to peanuts.",
        "Maya is allergic to kiwi.",
        "Maya is allergic to kiwi.",
        old_slot=slot,
        fact_slot=slot,
    )
    assert (refused := objection(change)) is not None
    assert refused.values == ("peanuts",)
    assert objection(replace(change, new="Maya is allergic to peanuts and kiwi.")) is None


def test_another_occasion_replaces_none() -> None:
    old, fact = "Maya met Dana in May 2024.", "Maya met Evan in June 2025."
    assert objection(Replacement(old, fact, fact, similarity=0.9)) is not None


def test_a_longer_name_replaces_no_other_name() -> None:
    old = "Maya's name is Katarzyna, and friends call her Kasia."
    fact = "Maya's name is Katarzyna Nowak."
    assert (refused := objection(single(old, fact, fact))) is not None
    assert "Kasia" in refused.values


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("Noor lives in Basel.", "Noor lives in Bern (confirmed by phone).", True),
        ("Noor lives in Basel.", "Noor lives on a boat.", True),
        ("User follows a vegan diet.", "User follows a Mediterranean diet.", True),
        ("Nutzer wohnt in Ulm.", "Nutzer wohnt in Jena.", True),
        ("用户住在上海。", "用户住在成都。", True),
        ("Noor lives in Basel.", "Noor plays chess.", False),
        ("Noor lives in Basel.", "Kim lives in Basel.", False),
    ],
)
def test_an_edited_text_keeps_its_attribute(old: str, new: str, same: bool) -> None:
    assert same_attribute(old, new) is same
