"""Facts that a memory can state already, and those that a NOOP on it would lose."""

from __future__ import annotations

import pytest

from pipeline.domain.consolidation.repeats import can_state, takes_back_nothing

NEAR, FAR = 0.75, 0.5
STATED = [
    ("User lives in Berlin", "User resides in Berlin"),
    ("User works at Bosch as an engineer", "User is an engineer at Bosch"),
    ("User has 2 cats", "User has two cats"),
    ("User moved to Rome in May 2025", "User lives in Rome"),
    ("User has a dog called Rex", "User's dog's name is Rex"),
    ("User's sister is called Anna", "Anna is the user's sister"),
    ("Der Nutzer wohnt in Köln", "Der Nutzer lebt in Köln"),
    ("Nutzerin ist allergisch gegen Nüsse", "Nutzerin verträgt keine Nüsse"),
    ("El usuario vive en Madrid", "El usuario reside en Madrid"),
    ("用户住在成都", "用户居住在成都"),
    ("User does not drink alcohol", "User never drinks alcohol"),
    ("User prefers tea to coffee", "User likes tea more than coffee"),
    ("User wakes up at 6:30", "User gets up at 6:30 am"),
    ("User's birthday is 3 May", "User was born on May 3"),
    ("User's blood type is A+", "User has blood type A+"),
    ("Gus is allergic to peanuts", "Gus cannot eat peanuts because of an allergy"),
    ("User likes jazz", "Maya likes jazz"),
]
LOST = [
    ("User lives in Berlin", "User moved to Lisbon"),
    ("User has a dog", "User no longer has a dog"),
    ("User has a dog", "User's dog died"),
    ("User likes tea", "User plays chess"),
    ("User has 2 cats", "User has 3 cats"),
    ("User works at Bosch", "User started at Bosch on 2 May 2026"),
    ("User lives in Paris", "User lived in Paris in 2010"),
    ("User's sister lives in Rome", "User's brother lives in Rome"),
    ("User lives in Rome", "User's brother lives in Rome"),
    ("Anna lives in Rome", "Ben lives in Rome"),
    ("User's blood type is A+", "User's blood type is A-"),
    ("Nutzer hat einen Hund", "Nutzer hat keinen Hund mehr"),
    ("用户住在成都", "用户住在北京"),
]


@pytest.mark.parametrize(("text", "fact"), STATED)
def test_a_memory_states_a_fact_in_its_own_words(text: str, fact: str) -> None:
    assert can_state(text, fact, similarity=NEAR)


@pytest.mark.parametrize(("text", "fact"), LOST)
def test_a_memory_does_not_state_what_it_lacks(text: str, fact: str) -> None:
    assert not can_state(text, fact, similarity=FAR)


def test_a_near_meaning_needs_no_common_word() -> None:
    assert can_state("User plays the violin", "User is a violinist", similarity=NEAR)
    assert not can_state("User plays the violin", "User is a violinist", similarity=FAR)


def test_only_a_take_back_of_what_is_stored_needs_a_memory() -> None:
    texts = ["User lives in Rome", "User has a cat"]
    assert takes_back_nothing("User no longer has a dog", texts)
    assert not takes_back_nothing("User no longer has a cat", texts)
    assert not takes_back_nothing("User has a dog", texts)
