"""A sale or gift to a named person that arrives before the former owner, and careless statements.

The ownership of the other person is stored too: a careless model states it.
"""

from __future__ import annotations

import pytest

from tests.unit.domain.graph.graph_stories import Story, said

# One statement for each kind of form: the former owner, the new one, and the thing.
SALES = """
Tove sold the Kestrel to Kim.                            | Tove | Kim | Kestrel
Tove has sold the Kestrel to Kim on 11 January 2026.     | Tove | Kim | Kestrel
Tove sold Kim the Kestrel.                               | Tove | Kim | Kestrel
Tove gave the Kestrel to Kim.                            | Tove | Kim | Kestrel
Tove gave Kim the Kestrel.                               | Tove | Kim | Kestrel
Tove gave away the Kestrel to KIM.                       | Tove | KIM | Kestrel
Kim bought the Kestrel from Tove.                        | Tove | Kim | Kestrel
User sold the Kestrel to Kim.                            | User | Kim | Kestrel
Tove sold the Kestrel to User.                           | Tove | User | Kestrel
Tove hat die Kestrel an Kim verkauft.                    | Tove | Kim | Kestrel
Tove hat Kim die Kestrel geschenkt.                      | Tove | Kim | Kestrel
Tove verkaufte die Kestrel an Kim.                       | Tove | Kim | Kestrel
Kim hat Tove die Kestrel abgekauft.                      | Tove | Kim | Kestrel
Nerea vendió el Kestrel a Kim.                           | Nerea | Kim | Kestrel
Nerea le ha regalado el Kestrel a Kim.                   | Nerea | Kim | Kestrel
吴梅把帆船卖给了高远。                                    | 吴梅 | 高远 | 帆船
吴梅把帆船送给高远了。                                    | 吴梅 | 高远 | 帆船
高远从吴梅手里买下了帆船。                                | 吴梅 | 高远 | 帆船
"""
# Statements after which the former owner owns it, also if the model states the other ownership.
CARELESS = """
Tove sold a painting of the Kestrel to Kim.              | Tove | Kim | Kestrel
Tove sold the painting of the Kestrel to Kim.            | Tove | Kim | Kestrel
Tove almost sold the Kestrel to Kim.                     | Tove | Kim | Kestrel
Kim wants to buy the Kestrel from Tove.                  | Tove | Kim | Kestrel
Kim almost bought the Kestrel from Tove.                 | Tove | Kim | Kestrel
Tove sold tickets for the Kestrel to Kim.                | Tove | Kim | Kestrel
Tove sold the tickets for the Kestrel to Kim.            | Tove | Kim | Kestrel
Tove has not sold the Kestrel to Kim.                    | Tove | Kim | Kestrel
Tove's brother sold the Kestrel to Kim.                  | Tove | Kim | Kestrel
Tove lent the Kestrel to Kim.                            | Tove | Kim | Kestrel
Tove will give the Kestrel to Kim.                       | Tove | Kim | Kestrel
Tove would have sold the Kestrel to Kim.                 | Tove | Kim | Kestrel
Tove gave the Kestrel to Kim for a week.                 | Tove | Kim | Kestrel
Tove sold the Kestrel to Kim?                            | Tove | Kim | Kestrel
Tove gave Kim the keys of the Kestrel.                   | Tove | Kim | Kestrel
Kim bought a ticket for the Kestrel from Tove.           | Tove | Kim | Kestrel
Tove offered the Kestrel to Kim.                         | Tove | Kim | Kestrel
Tove sold the Kestrel to Kim in a dream.                 | Tove | Kim | Kestrel
Tove sold the Kestrel to Ingmar.                         | Tove | Kim | Kestrel
Tove sold the Kestrel to Kim's sister.                   | Tove | Kim | Kestrel
If Tove sold the Kestrel to Kim.                         | Tove | Kim | Kestrel
Tove hat die Kestrel fast an Kim verkauft.               | Tove | Kim | Kestrel
Tove hat Karten für die Kestrel an Kim verkauft.         | Tove | Kim | Kestrel
Tove will die Kestrel an Kim verkaufen.                  | Tove | Kim | Kestrel
Nerea casi vendió el Kestrel a Kim.                      | Nerea | Kim | Kestrel
Nerea vendió una foto del Kestrel a Kim.                 | Nerea | Kim | Kestrel
Tove hat das Segel für das Boot verkauft.                | Tove | Kim | Boot
Kim compró el retrato a Nerea.                           | Nerea | Kim | retrato
Kim hat das Porträt von Tove gekauft.                    | Tove | Kim | Porträt
吴梅没把帆船卖给高远。                                    | 吴梅 | 高远 | 帆船
吴梅想把帆船卖给高远。                                    | 吴梅 | 高远 | 帆船
"""


def rows(table: str) -> list[list[str]]:
    return [[part.strip() for part in line.split("|")] for line in table.strip().splitlines()]


def owners(text: str, former: str, new: str, thing: str, *states: str) -> set[str]:
    """Edges that hold if the former owner arrives behind a statement."""
    story = Story()
    story.arrive(said(10, text, *states))
    story.arrive(said(0, f"{former} owns the {thing}.", f"{former} owns {thing}"))
    return story.at(20)


@pytest.mark.parametrize(("text", "former", "new", "thing"), rows(SALES))
def test_a_sale_that_arrives_first_ends_the_ownership(text: str, former: str, new: str, thing: str):
    bought = f"{new} owns {thing}"
    assert owners(text, former, new, thing, bought) == {bought}


@pytest.mark.parametrize(("text", "former", "new", "thing"), rows(CARELESS))
def test_a_careless_statement_about_a_sale_ends_nothing(
    text: str, former: str, new: str, thing: str
):
    for states in ([], [f"{new} owns {thing}"]):
        assert owners(text, former, new, thing, *states) == {f"{former} owns {thing}", *states}


@pytest.mark.parametrize(("text", "former", "new", "thing"), rows(SALES))
def test_a_sale_to_a_name_that_does_not_own_the_thing_ends_nothing(
    text: str, former: str, new: str, thing: str
):
    of_another = f"Ingmar owns {thing}"
    edges = owners(text, former, new, thing, of_another, f"{new} owns harbour")
    assert f"{former} owns {thing}" in edges


def test_the_ownership_of_the_buyer_counts_at_the_time_of_the_sale():
    story = Story()
    story.arrive(said(10, "Tove sold the Kestrel to Kim."))
    story.arrive(said(15, "Kim owns the Kestrel.", "Kim owns Kestrel"))
    story.arrive(said(0, "Tove owns the Kestrel.", "Tove owns Kestrel"))
    assert story.at(20) == {"Tove owns Kestrel", "Kim owns Kestrel"}


def test_a_buyer_who_has_sold_it_since_owned_it_then():
    story = Story()
    story.arrive(said(10, "Tove sold the Kestrel to Kim.", "Kim owns Kestrel"))
    story.arrive(said(20, "Kim sold the Kestrel.", ends=["Kim owns Kestrel"]))
    story.arrive(said(0, "Tove owns the Kestrel.", "Tove owns Kestrel"))
    assert [story.at(day) for day in (5, 15, 25)] == [
        {"Tove owns Kestrel"}, {"Kim owns Kestrel"}, set(),
    ]  # fmt: skip
