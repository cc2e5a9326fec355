"""Graphs of statements that arrive in order: no end is read from the words of a memory.

The expected graphs are those of the release before late ends were read.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.unit.domain.graph.graph_stories import Said, Story, on, said

SQUASH, SPANISH = "User plays squash", "User speaks Spanish"
TIDEWATER, NORDLYS = "Edda works_at Tidewater", "Edda works_at Nordlys"
Batches = Sequence[Sequence[Said]]

# Each line of a story is a batch.
STORIES: dict[str, Batches] = {
    "a negation beside the value": [
        [said(0, "User speaks Spanish.", SPANISH, subject="User", attribute="languages")],
        [said(1, "User speaks Spanish without an accent.", SPANISH,
              subject="User", attribute="languages")],
    ],
    "a negation beside the value in one batch": [
        [said(0, "User speaks Spanish.", SPANISH, subject="User", attribute="languages"),
         said(0.1, "User speaks Spanish without an accent.", SPANISH,
              subject="User", attribute="languages")],
    ],
    "an end in the same batch": [
        [said(0, "User plays squash.", SQUASH), said(0.1, "User quit squash.")],
    ],
    "a trip": [
        [said(0, "Edda lives in Bergen.", "Edda lives_in Bergen")],
        [said(1, "Edda left Bergen.")],
    ],
    "the end of another person": [
        [said(0, "User works at Tidewater.", "User works_at Tidewater")],
        [said(1, "Edda works at Tidewater.", TIDEWATER)],
        [said(2, "Edda left Tidewater.", ends=[TIDEWATER])],
    ],
    "taken up again before a future end": [
        [said(0, "User plays squash.", SQUASH)],
        [said(1, "User stops playing squash in spring.", valid_from=on(60), ends=[SQUASH])],
        [said(2, "User plays squash.", SQUASH)],
    ],
    "an end, and a new beginning": [
        [said(0, "User plays squash.", SQUASH)],
        [said(10, "User no longer plays squash.", ends=[SQUASH])],
        [said(20, "User plays squash again.", SQUASH)],
        [said(30, "User quit squash.", ends=[SQUASH])],
    ],
    "an end that the model does not list": [
        [said(0, "User plays squash.", SQUASH)],
        [said(10, "User no longer plays squash.")],
        [said(20, "User plays squash.", SQUASH)],
    ],
    "another name that is said last": [
        [said(0, "Margarethe lives in Lund.", "Margarethe lives_in Lund")],
        [said(10, "Grete lives in Bergen.", "Grete lives_in Bergen")],
        [said(20, "Margarethe is also known as Grete.", "Margarethe also_known_as Grete")],
    ],
    "another name and a value in one batch": [
        [said(0, "Grete lives in Bergen.", "Grete lives_in Bergen")],
        [said(20, "Margarethe lives in Lund.", "Margarethe lives_in Lund"),
         said(20, "Margarethe is also known as Grete.", "Margarethe also_known_as Grete")],
    ],
    "another name before the value": [
        [said(0, "Margarethe lives in Lund.", "Margarethe lives_in Lund"),
         said(0, "Margarethe is also known as Grete.", "Margarethe also_known_as Grete")],
        [said(20, "Grete lives in Bergen.", "Grete lives_in Bergen")],
    ],
    "a divorce and a marriage": [
        [said(0, "Tove is married to Ingmar.", "Tove married_to Ingmar")],
        [said(10, "Tove and Ingmar are divorced.", "Tove divorced_from Ingmar")],
        [said(20, "Tove is married to Axel.", "Tove married_to Axel")],
    ],
    "a second employer": [
        [said(0, "Edda works at Tidewater.", TIDEWATER)],
        [said(10, "Edda also works at Nordlys.", NORDLYS)],
        [said(20, "Edda works at Fjordbank.", "Edda works_at Fjordbank")],
    ],
    "employers in a row": [
        [said(0, "Edda works at Tidewater.", TIDEWATER)],
        [said(10, "Edda left Tidewater.", ends=[TIDEWATER])],
        [said(20, "Edda works at Nordlys.", NORDLYS)],
        [said(30, "Edda works at Tidewater.", TIDEWATER)],
    ],
    "three homes and a former one": [
        [said(0, "Edda lives in Bergen.", "Edda lives_in Bergen")],
        [said(10, "Edda lives in Lund.", "Edda lives_in Lund")],
        [said(20, "Edda lived in Ulm in 2019.", "Edda lives_in Ulm",
              valid_from=on(-2_500))],
        [said(30, "Edda lives in Bergen again.", "Edda lives_in Bergen")],
    ],
    "a plan, a visit and a plan": [
        [said(0, "User plans to visit Malta.", "User plans_to_visit Malta")],
        [said(10, "User visited Malta.", "User visited Malta")],
        [said(20, "User plans to visit Malta.", "User plans_to_visit Malta")],
    ],
    "a change of taste": [
        [said(0, "User likes figs.", "User likes figs")],
        [said(10, "User does not like figs any more.", "User dislikes figs")],
        [said(20, "User likes figs.", "User likes figs")],
    ],
    "a question, a wish and a rumour": [
        [said(0, "Edda works at Tidewater.", TIDEWATER)],
        [said(1, "Edda might leave Tidewater.")],
        [said(2, "Tove asked if Edda left Tidewater.")],
        [said(3, "Edda left Tidewater after lunch.")],
    ],
    "a new home in the future": [
        [said(0, "Edda lives in Bergen.", "Edda lives_in Bergen")],
        [said(1, "Edda lives in Lund from March on.", "Edda lives_in Lund", valid_from=on(60))],
        [said(2, "Edda lives in Bergen.", "Edda lives_in Bergen")],
    ],
    "friends no more": [
        [said(0, "User and Edda are friends.", "User has_friend Edda")],
        [said(10, "User and Edda are no longer friends.", ends=["User has_friend Edda"])],
        [said(20, "User and Edda are friends.", "Edda has_friend User")],
    ],
}  # fmt: skip
EXPECTED: dict[str, list[str]] = {
    "a negation beside the value": ["User speaks Spanish 0-"],
    "a negation beside the value in one batch": ["User speaks Spanish 0-"],
    "an end in the same batch": ["User plays squash 0-"],
    "a trip": ["Edda lives_in Bergen 0-"],
    "the end of another person": ["Edda works_at Tidewater 1-2", "User works_at Tidewater 0-"],
    "taken up again before a future end": ["User plays squash 0-60", "User plays squash 2-"],
    "an end, and a new beginning": ["User plays squash 0-10", "User plays squash 20-30"],
    "an end that the model does not list": ["User plays squash 0-"],
    "another name that is said last": [
        "Grete lives_in Bergen 10-",
        "Margarethe also_known_as Grete 20-",
        "Margarethe lives_in Lund 0-",
    ],
    "another name and a value in one batch": [
        "Grete lives_in Bergen 0-",
        "Margarethe also_known_as Grete 20-",
        "Margarethe lives_in Lund 20-",
    ],
    "another name before the value": [
        "Grete lives_in Bergen 20-",
        "Margarethe also_known_as Grete 0-",
        "Margarethe lives_in Lund 0-20",
    ],
    "a divorce and a marriage": [
        "Tove divorced_from Ingmar 10-",
        "Tove married_to Axel 20-",
        "Tove married_to Ingmar 0-10",
    ],
    "a second employer": [
        "Edda works_at Fjordbank 20-",
        "Edda works_at Nordlys 10-20",
        "Edda works_at Tidewater 0-20",
    ],
    "employers in a row": [
        "Edda works_at Nordlys 20-30",
        "Edda works_at Tidewater 0-10",
        "Edda works_at Tidewater 30-",
    ],
    "three homes and a former one": [
        "Edda lives_in Bergen 0-10",
        "Edda lives_in Bergen 30-",
        "Edda lives_in Lund 10-30",
        "Edda lives_in Ulm -2500-10",
    ],
    "a plan, a visit and a plan": [
        "User plans_to_visit Malta 0-10",
        "User plans_to_visit Malta 20-",
        "User visited Malta 10-",
    ],
    "a change of taste": [
        "User dislikes figs 10-20",
        "User likes figs 0-10",
        "User likes figs 20-",
    ],
    "a question, a wish and a rumour": ["Edda works_at Tidewater 0-"],
    "a new home in the future": ["Edda lives_in Bergen 0-60", "Edda lives_in Lund 60-"],
    "friends no more": ["Edda has_friend User 20-", "User has_friend Edda 0-10"],
}


@pytest.mark.parametrize("name", STORIES)
def test_a_story_in_order_gives_the_graph_that_it_gave_before(name: str):
    story = Story()
    for batch in STORIES[name]:
        story.arrive(*batch)
    assert story.graph == EXPECTED[name]
