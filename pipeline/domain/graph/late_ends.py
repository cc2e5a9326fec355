"""Ends of relations that arrive before their beginnings.

"Hana left the Red Foxes" of June is stored, and then "Hana is a member of the Red Foxes" of May
arrives: the relation has ended in June. No model relates the two, so the words of the stored
statement decide (pipeline/text/relations/ends), and in doubt nothing ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pipeline.domain.graph.names import compared_name
from pipeline.domain.graph.values import LaterStatement
from pipeline.text.names import is_self
from pipeline.text.relations.ends import SaidEnd, said_ends
from pipeline.text.relations.names import is_symmetric

_Key = tuple[str, str, str]
# Names of the speaker that stand alone: "Mine" may be a person's name.
_SPEAKER = frozenset({"user", "the user", "i", "ich", "yo", "用户", "我"})


class LateEnd(NamedTuple):
    """A statement that ends a relation. `owner`: if it does so only if this one owns the thing."""

    statement: LaterStatement
    owner: str | None


class LateEnds:
    """Stored statements that end a relation, by the relation and its names.

    Each statement is read once, however many relations are looked up.
    """

    def __init__(self, statements: Iterable[LaterStatement] = ()) -> None:
        self._by_edge: dict[_Key, list[LateEnd]] = {}
        for statement in statements:
            for end in said_ends(statement.text):
                # Not if the words give another date than the time since when it holds.
                if end.when is None or end.when.first <= statement.since.date() <= end.when.last:
                    self._add(statement, end)

    def of(self, relation: str, names: tuple[str, str]) -> Sequence[LateEnd]:
        """The statements that end the relation between two names."""
        source, destination = map(compared_name, names)
        ends = self._by_edge.get((relation, source, destination), [])
        if is_symmetric(relation):
            ends = ends + self._by_edge.get((relation, destination, source), [])
        return ends

    def _add(self, statement: LaterStatement, end: SaidEnd) -> None:
        """Index a statement. Its "I" is the person who said it, if that one has a name."""
        names = (end.source, end.destination, *([end.owner] if end.owner else []))
        if any(is_self(name) and name.lower() not in _SPEAKER for name in names):
            return
        source, destination, *owner = [
            compared_name(statement.speaker if statement.speaker and is_self(name) else name)
            for name in names
        ]
        if not (source and destination and all(owner)):
            return
        late = LateEnd(statement, owner[0] if owner else None)
        for relation in end.relations:
            self._by_edge.setdefault((relation, source, destination), []).append(late)
