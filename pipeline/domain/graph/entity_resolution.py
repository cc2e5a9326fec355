"""Entity resolution by name: the stored node of an entity in a model's answer. Pure functions.

    the same plain name, of the same family of types      the same node
    the same name with a role that excludes the other     another node: "my brother Sam" is not
                                                          "my colleague Sam"
    a similar name, by its vector and without a            a node of its own, merged into the other
    difference that tells two things apart
    any other name                                        a new node

A name without a role means the namesake that was mentioned last.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from uuid import UUID

from pipeline.domain.graph.values import Entity, Merge, Node, name_key, node_id
from pipeline.domain.scope import Scope
from pipeline.text.edit_distance import one_letter_apart
from pipeline.text.names import is_self, plain_name
from pipeline.text.relations.entity_types import entity_type, same_family
from pipeline.text.relations.names import one_person
from pipeline.text.word_lists import words_of

USER = "User"
# Least cosine of two names of one thing.
SIMILAR = 0.9
_NUMBER = re.compile(r"\d")
# Words that make a name that of another thing: New York is not York.
_TELLING = words_of(
    """
    new old north south east west upper lower inner outer first second third little great junior
    senior jr sr ii iii iv non no not anti ex former sub neu alt nord süd ost ober unter klein groß
    nicht kein ohne ehemalig nuevo nueva viejo vieja norte sur este oeste alto baja no sin ex
    """
)
# Words in front of a person's name that are no part of it.
_TITLES = words_of("mr mrs ms miss dr prof professor herr frau señor señora sr sra don doña")


class NodeSet:
    """The nodes of a scope that a batch may mean, and those that it adds."""

    def __init__(
        self,
        scope: Scope,
        known: Iterable[Node],
        own_types: Iterable[str] = (),
        similar: Mapping[str, Node] | None = None,
        roots: Mapping[UUID, UUID] | None = None,
    ) -> None:
        """Start with the known nodes, in the order of their last mention.

        `similar`: for new names, the stored node that names the same thing. `roots`: the roots of
        other nodes that are merged.
        """
        self._scope = scope
        self._own_types = frozenset(own_types)
        self._similar = similar or {}
        self._roots = dict(roots or {})
        # The order is that of the last mention.
        self._by_id = {node.id: node for node in known}
        self._mentioned: dict[UUID, None] = {}
        self.merges: list[Merge] = []

    @property
    def mentioned(self) -> list[Node]:
        """The nodes that the batch names."""
        return [self._by_id[node_id] for node_id in self._mentioned]

    def root(self, of: UUID) -> UUID:
        """The node under which the relations of a node are shown."""
        node = self._by_id.get(of)
        root = node.root_id if node else self._roots.get(of, of)
        return next((merge.into for merge in self.merges if merge.node_id == root), root)

    def has_namesake(self, of: UUID) -> bool:
        """True if another thing has the name of this node."""
        node = self._by_id[of]
        return any(
            other.plain == node.plain and self.root(other.id) != self.root(of)
            for other in self._by_id.values()
        )

    def find(
        self,
        entity: Entity,
        *,
        speaker: str | None,
        role: str | None,
        likely: Collection[UUID] = (),
    ) -> Node:
        """The node of an entity; a new one if there is none. `role`: stated by the same fact.

        `likely`: nodes that the entity may be in spite of another type.
        """
        entity = self._named(entity, speaker)
        plain = plain_name(entity.name) or name_key(entity.name)
        namesakes = [
            node
            for node in self._by_id.values()
            if node.plain == plain and (node.id in likely or same_family(node.kind, entity.kind))
        ]
        node = _chosen(namesakes, role)
        if node is None:
            node = self._new(entity, plain, role)
        if role and node.qualifier is None:
            node = replace(node, qualifier=role)
        return self._mention(node)

    def alias(self, entity: Entity, of: Node) -> Node:
        """The node of another name of `of`, merged into it unless it is another thing already."""
        plain = plain_name(entity.name) or name_key(entity.name)
        entity = Entity(entity.name, of.kind)
        same = [node for node in self._by_id.values() if node.plain == plain]
        ours = [node for node in same if node.root_id == of.root_id]
        free = [
            node
            for node in same
            if node.root is None and node.qualifier is None and same_family(node.kind, of.kind)
        ]
        node = (ours or free or [self._new(entity, plain, None)])[-1]
        if node.root_id != of.root_id:
            node = self._merge(node, of.root_id, "The fact says that it is another name.")
        return self._mention(node)

    def _named(self, entity: Entity, speaker: str | None) -> Entity:
        """The entity with its type in normal form; the speaker by name, or as the user."""
        if is_self(entity.name):
            return Entity(speaker or USER, "person")
        return Entity(entity.name, entity_type(entity.kind, self._own_types))

    def _new(self, entity: Entity, plain: str, role: str | None) -> Node:
        key = name_key(entity.name)
        taken = {node.key for node in self._by_id.values()}
        if key in taken:
            key = f"{key} ({role or entity.kind})"
        node = Node(node_id(self._scope, key), entity.name, key, plain, entity.kind, role)
        similar = self._similar.get(plain)
        if similar is not None and role is None and same_family(similar.kind, entity.kind):
            return self._merge(node, similar.root_id, "The names are similar.")
        return node

    def _merge(self, node: Node, into: UUID, reason: str) -> Node:
        self.merges.append(Merge(node.id, into, reason))
        members = [other for other in self._by_id.values() if other.root == node.id]
        for member in members:
            self._by_id[member.id] = replace(member, root=into)
        return replace(node, root=into)

    def _mention(self, node: Node) -> Node:
        self._by_id.pop(node.id, None)
        self._by_id[node.id] = node
        self._mentioned[node.id] = None
        return node


def _chosen(namesakes: Sequence[Node], role: str | None) -> Node | None:
    """The namesake that a mention means; None if it is another person."""
    if not namesakes or role is None:
        return namesakes[-1] if namesakes else None
    exact = [node for node in namesakes if node.qualifier == role]
    fits = [node for node in namesakes if node.qualifier and one_person(node.qualifier, role)]
    free = [node for node in namesakes if node.qualifier is None]
    return next((nodes[-1] for nodes in (exact, fits, free) if nodes), None)


def may_be_same(name: str, other: Node, kind: str) -> bool:
    """True if a plain name and a node may name one thing, so that their vectors are compared.

    One has all words of the other, in any order, and the difference is no number, no single letter
    and no word that tells things apart. Names of persons also begin with the same word, titles
    apart.
    """
    if name == other.plain or not same_family(other.kind, kind):
        return False
    person = kind == "person"
    first, second = (_without_title(words.split(), person) for words in (name, other.plain))
    if not (set(first) <= set(second) or set(second) <= set(first)):
        return False
    difference = set(first) ^ set(second)
    if _NUMBER.search("".join(difference)) or one_letter_apart(name, other.plain):
        return False
    # A longer name of a person can be that of a relative: Maya Lopez is not Lopez.
    return difference.isdisjoint(_TELLING) and (not person or first[0] == second[0])


def _without_title(words: list[str], person: bool) -> list[str]:
    """The words of a name; of a person's name those behind a title."""
    return words[1:] if person and len(words) > 1 and words[0] in _TITLES else words
