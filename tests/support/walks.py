"""Walks over relations in memory, as the ledger walks its own: paths from the named things."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from uuid import UUID, uuid5

from pipeline.graph.views import GraphPath, RelationView, Walk
from pipeline.text.names import is_self, names_in, names_self, plain_name
from pipeline.text.relations.names import canonical

NOON = datetime(2026, 5, 7, 12, tzinfo=UTC)
SPACE = UUID(int=7)
Edge = tuple[str, str, str]


def memory_of(text: str) -> UUID:
    """The id of the memory with this text."""
    return uuid5(SPACE, f"memory {text}")


def relations(stated: Mapping[str, Sequence[Edge]]) -> list[RelationView]:
    """The relations that these texts state, in the direction in which they are stored."""
    return [_relation(edge, memory_of(text)) for text, edges in stated.items() for edge in edges]


def _relation(edge: Edge, memory_id: UUID) -> RelationView:
    source, given, destination = edge
    name, exchanged = canonical(given)
    if exchanged:
        source, destination = destination, source
    return RelationView(
        id=uuid5(SPACE, f"{source} {name} {destination}"),
        source_id=uuid5(SPACE, source),
        source=source,
        source_kind="thing",
        relation=name,
        destination_id=uuid5(SPACE, destination),
        destination=destination,
        destination_kind="thing",
        valid_from=NOON,
        valid_to=None,
        created_at=NOON,
        expired_at=None,
        event_id=uuid5(SPACE, "event"),
        memory_id=memory_id,
    )


def walk(query: str, known: Sequence[RelationView], hops: int = 3) -> Walk:
    """All paths of up to `hops` relations from the things that the query names."""
    names = set(names_in(query))
    things = {node: name for r in known for node, name in _ends(r)}
    starts = [
        node
        for node, name in things.items()
        if plain_name(name) in names or (is_self(name) and names_self(query))
    ]
    around: dict[UUID, list[RelationView]] = {}
    for relation in known:
        for node, _ in _ends(relation):
            around.setdefault(node, []).append(relation)
    paths = [path for start in starts for path in _paths(start, (start,), (), around, hops)]
    return Walk(query, [SPACE], sorted(paths, key=lambda path: len(path.via)))


def _paths(
    at: UUID,
    visited: tuple[UUID, ...],
    via: tuple[RelationView, ...],
    around: Mapping[UUID, Sequence[RelationView]],
    hops: int,
) -> Iterator[GraphPath]:
    for relation in around[at] if hops else ():
        far = relation.destination_id if relation.source_id == at else relation.source_id
        if far not in visited:
            yield GraphPath(relation, via)
            yield from _paths(far, (*visited, far), (*via, relation), around, hops - 1)


def _ends(relation: RelationView) -> tuple[tuple[UUID, str], tuple[UUID, str]]:
    return (
        (relation.source_id, relation.source),
        (relation.destination_id, relation.destination),
    )
