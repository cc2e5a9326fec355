"""Names of relations and entities as the plan of the graph compares them."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.domain.facts import Fact
from pipeline.domain.graph import GraphTypes, Relation
from pipeline.text import polarity
from pipeline.text.names import is_self, plain_name, says
from pipeline.text.relation_names import attribute_of, canonical, role_in, role_of
from pipeline.text.slots import slot


def still_says(text: str, name: str) -> bool:
    """True if a later statement names the destination too, and takes nothing back."""
    return says(text, name) and not polarity.takes_back(text)


def is_of_its_slot(fact: Fact, source: str, relation: str) -> bool:
    """True if a relation of this source is the fact's single-valued attribute."""
    ours = slot(subject_of(source), attribute_of(relation))
    return ours is not None and ours == fact.slot and fact.single_valued


def subject_of(name: str) -> str:
    """The subject of a slot about this entity."""
    return "user" if is_self(name) else name


def compared_name(name: str) -> str:
    """A name as it is compared; one word for all names of the speaker."""
    return plain_name("user" if is_self(name) else name)


def is_loop(row: Relation) -> bool:
    """True for a relation of a thing with itself."""
    return compared_name(row.source.name) == compared_name(row.destination.name)


def is_proper(name: str) -> bool:
    """True for a name with a capital letter or a digit, or in a script without capitals."""
    return any(not letter.islower() for letter in name if letter.isalnum())


def roles_of(stated: Sequence[Relation], fact: Fact, types: GraphTypes) -> dict[str, str]:
    """The roles that a fact gives persons, by plain name."""
    roles: dict[str, str] = {}
    for relation in stated:
        for end in (relation.source, relation.destination):
            if not is_self(end.name) and (role := role_of(fact.text, end.name)):
                roles.setdefault(plain_name(end.name), role)
        name, exchanged = canonical(relation.relation, types.relations)
        person = relation.source if exchanged else relation.destination
        if (role := role_in(name)) and not is_self(person.name):
            roles.setdefault(plain_name(person.name), role)
    return roles
