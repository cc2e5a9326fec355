"""Share of a query that the paths of the graph account for, by memory."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID, uuid4

import pytest

from pipeline.graph.ranking import shares
from pipeline.graph.views import GraphPath, RelationView, Walk

NOON = datetime(2026, 5, 7, 12, tzinfo=UTC)
SISTER, WORK, TOWN, FRIEND = (UUID(int=number) for number in range(1, 5))


def relation(source: str, name: str, destination: str, memory_id: UUID | None) -> RelationView:
    return RelationView(
        id=uuid4(),
        source_id=uuid4(),
        source=source,
        source_kind="thing",
        relation=name,
        destination_id=uuid4(),
        destination=destination,
        destination_kind="thing",
        valid_from=NOON,
        valid_to=None,
        created_at=NOON,
        expired_at=None,
        event_id=uuid4(),
        memory_id=memory_id,
    )


def walk(query: str) -> Walk:
    sister = relation("User", "has_sister", "Ines", SISTER)
    work = relation("Ines", "works_at", "Bosch", WORK)
    town = relation("Bosch", "located_in", "Stuttgart", TOWN)
    friend = relation("User", "has_friend", "Kim", FRIEND)
    paths = [
        GraphPath(sister),
        GraphPath(work, [sister]),
        GraphPath(town, [sister, work]),
        GraphPath(friend),
    ]
    return Walk(query, [uuid4()], paths)


def test_every_memory_of_the_best_path_has_its_share() -> None:
    of = shares(walk("Which company does my sister work for?"))
    assert of[SISTER] == of[WORK] > of.get(FRIEND, 0.0)


def test_a_path_with_all_words_accounts_for_the_whole_query() -> None:
    assert shares(walk("sister"))[SISTER] == pytest.approx(1.0)


def test_a_word_that_no_path_has_counts_in_the_whole() -> None:
    assert shares(walk("sister allergy"))[SISTER] < 0.6


def test_paths_without_a_word_of_the_query_account_for_nothing() -> None:
    assert shares(walk("allergy")) == {}


def test_a_relation_that_adds_no_word_of_the_query_accounts_for_nothing() -> None:
    """ "Who is Ines?" is about her, and not about all that the user has beside a sister."""
    sister = relation("User", "has_sister", "Ines", SISTER)
    work = relation("Ines", "works_at", "Bosch", WORK)
    friend = relation("User", "has_friend", "Kim", FRIEND)
    paths = [GraphPath(sister), GraphPath(work), GraphPath(friend, [sister])]
    assert shares(Walk("Who is Ines?", [uuid4()], paths)).keys() == {SISTER, WORK}


def test_a_relation_without_a_memory_is_left_out() -> None:
    alone = GraphPath(relation("User", "has_sister", "Ines", None))
    assert shares(Walk("sister", [uuid4()], [alone])) == {}


def test_without_paths_nothing_is_accounted_for() -> None:
    assert shares(Walk("sister")) == {}
