"""Graphs of statements that arrive in any order: those of the statements in order."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

import pytest

from tests.unit.domain.graph.graph_stories import Said, Story, on, said

SQUASH, TIDEWATER = "User plays squash", "Edda works_at Tidewater"
Batches = Sequence[Sequence[Said]]

# Each line of a story is a batch.
STORIES: dict[str, Batches] = {
    "stopped": [
        [said(0, "User plays squash.", SQUASH)],
        [said(10, "User stopped playing squash.", ends=[SQUASH])],
    ],
    "said twice and stopped": [
        [said(0, "User plays squash.", SQUASH)],
        [said(5, "User plays squash.", SQUASH)],
        [said(10, "User gave up squash.", ends=[SQUASH])],
    ],
    "left one of two": [
        [said(0, "Edda is a member of the Red Herons.", "Edda member_of Red Herons"),
         said(0, "Edda is a member of the Blue Herons.", "Edda member_of Blue Herons")],
        [said(10, "Edda left the Red Herons.", ends=["Edda member_of Red Herons"])],
    ],
    "drives no more": [
        [said(0, "User owns the Volvo.", "User owns Volvo")],
        [said(0, "User drives the Volvo.", "User drives Volvo")],
        [said(10, "User no longer drives the Volvo.", ends=["User drives Volvo"])],
    ],
    "two who left": [
        [said(0, "User works at Tidewater.", "User works_at Tidewater"),
         said(0, "Edda works at Tidewater.", TIDEWATER)],
        [said(10, "Edda left Tidewater.", ends=[TIDEWATER])],
    ],
    "a divorce and a marriage": [
        [said(0, "Tove is married to Ingmar.", "Tove married_to Ingmar")],
        [said(10, "Tove and Ingmar are divorced.", "Tove divorced_from Ingmar")],
        [said(20, "Tove is married to Axel.", "Tove married_to Axel")],
    ],
    "a second employer": [
        [said(0, "Edda works at Tidewater.", TIDEWATER)],
        [said(10, "Edda also works at Nordlys.", "Edda works_at Nordlys")],
    ],
    "ein zweiter Arbeitgeber": [
        [said(0, "Edda arbeitet bei Tidewater.", TIDEWATER)],
        [said(10, "Edda arbeitet außerdem bei Nordlys.", "Edda works_at Nordlys")],
    ],
    "a plan and a visit": [
        [said(0, "User plans to visit Malta.", "User plans_to_visit Malta")],
        [said(10, "User visited Malta.", "User visited Malta")],
    ],
    "a separation": [
        [said(0, "User is dating Edda.", "User dating Edda")],
        [said(10, "Edda and User broke up.", ends=["User dating Edda"])],
    ],
}  # fmt: skip
DAYS = range(-1, 40, 2)
ORDERS = [
    pytest.param(name, order, id=f"{name}-{''.join(map(str, order))}")
    for name, batches in STORIES.items()
    for order in permutations(range(len(batches)))
]


def graphs(batches: Batches) -> list[set[str]]:
    story = Story()
    for batch in batches:
        story.arrive(*batch)
    return [story.at(day) for day in DAYS]


@pytest.mark.parametrize(("name", "order"), ORDERS)
def test_a_story_in_any_order_gives_the_graphs_of_the_story_in_order(
    name: str, order: Sequence[int]
):
    batches = STORIES[name]
    assert graphs([batches[place] for place in order]) == graphs(batches)


def test_an_end_of_one_of_two_namesakes_ends_none():
    story = Story()
    story.arrive(said(0, "User has a brother Sam.", "User has_brother Sam"))
    story.arrive(said(0, "User has a colleague Sam.", "User has_colleague Sam"))
    story.arrive(said(10, "Sam left Tidewater."))
    brother = "User's brother Sam works at Tidewater."
    story.arrive(said(0, brother, "User has_brother Sam", "Sam works_at Tidewater"))
    assert "Sam works_at Tidewater" in story.at(30)


def test_a_value_that_is_said_again_between_is_one_relation():
    story = Story()
    story.arrive(said(0, "User plays squash.", SQUASH))
    story.arrive(said(10, "User quit squash.", ends=[SQUASH]))
    story.arrive(said(5, "User plays squash.", SQUASH))
    assert story.graph == [f"{SQUASH} 0-10"]


def test_a_value_that_is_taken_up_after_a_future_end_was_said_does_not_end():
    story = Story()
    story.arrive(said(10, "User quit squash.", valid_from=on(30)))
    story.arrive(said(0, "User has a dog."), said(20, "User plays squash.", SQUASH))
    assert story.graph == [f"{SQUASH} 20-"]


def test_a_statement_of_an_open_conflict_ends_nothing():
    story = Story()
    story.arrive(said(10, "User quit squash."))
    story.beside = (story.memories[0].memory_id,)
    story.arrive(said(0, "User plays squash.", SQUASH))
    assert story.graph == [f"{SQUASH} 0-"]


@pytest.mark.parametrize(
    "text",
    [
        "Edda lives in Lund and also has a dog.",
        "Edda also has a dog and lives in Lund.",
        "Edda lives in Lund on the second floor.",
        "Edda lives on the second floor in Lund.",
        "Edda wohnt in Lund und hat auch einen Hund.",
        "Edda hat auch einen Hund und wohnt in Lund.",
        "Edda vive en Lund y también tiene un perro.",
        "Edda habite à Lund et elle a aussi un chien.",
    ],
)
def test_a_late_value_ends_with_the_next_one_whatever_else_its_memory_says_now(text: str):
    story = Story()
    story.arrive(said(10, "Edda lives in Lund.", "Edda lives_in Lund"))
    story.say_again("Edda lives_in Lund", 20, text)
    story.arrive(said(0, "Edda lives in Bergen.", "Edda lives_in Bergen"))
    assert story.at(30) == {"Edda lives_in Lund"}


def test_a_statement_of_the_same_batch_ends_nothing_by_its_words():
    story = Story()
    story.arrive(said(10, "User quit squash."), said(0, "User plays squash.", SQUASH))
    assert story.at(20) == {SQUASH}


def test_an_end_before_the_beginning_ends_nothing():
    story = Story()
    story.arrive(said(10, "User quit squash in March 2019.", valid_from=on(-2_480)))
    story.arrive(said(0, "User plays squash.", SQUASH))
    assert story.at(20) == {SQUASH}


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("User plays squash.", True),
        ("User plays squash again.", True),
        ("User no longer plays squash.", False),
        ("User played squash.", False),
        ("User will play squash.", False),
        ("User played squash until June.", False),
        ("User's first sport was squash.", False),
        ("User ne joue plus au squash.", False),
        ("User ha smesso di giocare a squash.", False),
        ("User parou de jogar squash.", False),
        ("User spielte Squash.", False),
        ("User jugaba al squash.", False),
        ("User moved the squash racket before selling it.", False),
    ],
)
def test_an_edge_opens_again_after_a_late_end_if_its_memory_says_it_since(text: str, holds: bool):
    story = Story()
    story.arrive(said(0, "User plays squash.", SQUASH))
    story.say_again(SQUASH, 20, text)
    story.arrive(said(10, "User no longer plays squash.", ends=[SQUASH]))
    after = {SQUASH} if holds else set()
    assert [story.at(day) for day in (5, 15, 25)] == [{SQUASH}, set(), after]
