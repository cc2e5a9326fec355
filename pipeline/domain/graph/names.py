"""Names of relations and entities as the plan of the graph compares them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pipeline.domain.facts import Fact
from pipeline.domain.graph.values import GraphTypes, Relation
from pipeline.text.names import is_self, plain_name, says
from pipeline.text.relations.names import attribute_of, canonical, role_in, role_of, words_about
from pipeline.text.statements import polarity
from pipeline.text.statements.endings import ending
from pipeline.text.statements.slots import attribute_name, slot
from pipeline.text.terms import terms
from pipeline.text.times.past import is_past
from pipeline.text.word_lists import words_of

# Relations whose destination has a proper name: "a small flat" is no residence that ends another.
PROPER = frozenset({"lives_in", "works_at", "is_from", "born_in"})
# Statuses that are no partnership.
ALONE = words_of(
    """
    single divorced widowed separated geschieden ledig verwitwet getrennt soltero soltera
    divorciado divorciada separado separada viudo viuda 单身 离婚 离异 丧偶
    """
)

_AGAIN = frozenset(terms("user again still wieder noch sigue vez 用户"))
# Longest clause that is read before a name, in characters.
_CLAUSE = 100
_ALSO = re.compile(
    r"(?i)(?:\b(?:also|additionally|auch|außerdem|zusätzlich|zudem|también|además)\b|也)"
    r"(?:(?!\b(?:and|but|und|aber|y|e|pero)\b)[^,;:.，；。和])*$"
)
# Questions, wishes, and verbs in the past tense; not complete, since other verbs have other terms.
_NOT_NOW = re.compile(
    r"(?i)\?|\b(?:will|would|may|might|could|should|\w{2,}ed|was|were|had|did|drove|ate|drank|quit|\w{2,}te|\w+aba|\w+[íi]a|\w+[óé])\b"
)


def still_says(text: str, name: str) -> bool:
    """True if a later statement names the destination too, and takes nothing back."""
    return says(text, name) and not polarity.takes_back(text)


def still_gives(before: str, after: str, name: str) -> bool:
    """True if a new text of a memory names a destination as the former text does.

    In a clause that denies or ends it ("does not like chess"), or in one that does not.
    """
    return not _senses(before, name).isdisjoint(_senses(after, name))


def affirms_denied(denied: str, text: str, name: str) -> bool:
    """True if a statement says of a name what an earlier one denies ("no longer likes chess")."""
    return _senses(denied, name) == {True} and _senses(text, name) == {False}


def _senses(text: str, name: str) -> set[bool]:
    """True for each clause that names something and denies or ends it, False for others."""
    naming = [clause for clause in polarity.clauses(text) if says(clause, name)]
    if not naming and says(text, name):  # "Oslo, Norway"
        naming = [text]
    return {polarity.takes_back(clause) or ending(clause) is not None for clause in naming}


def says_only(text: str, names: tuple[str, str], relation: str) -> bool:
    """True if a statement has no other words than both names, "again", and words of the relation.

    In the present: "Edda plays squash again".
    """
    if not still_says(text, names[1]) or is_past(text) or _NOT_NOW.search(text):
        return False
    words = set(terms(text)).difference(terms(" ".join(names)), _AGAIN)
    return bool(words) and words <= words_about(relation)


def stands_beside(text: str, name: str) -> bool:
    """True if a statement gives this value beside others: "also works at Tidewater".

    "also" stands before the name, in the same clause.
    """
    if name not in text:
        return False
    before = text.partition(name)[0]
    return bool(_ALSO.search(before[-_CLAUSE:]))


def is_of_its_slot(fact: Fact, source: str, relation: str) -> bool:
    """True if a relation of this source is the fact's single-valued attribute."""
    ours = slot(subject_of(source), attribute_of(relation))
    return ours is not None and ours == fact.slot and fact.single_valued


def is_of_its_attribute(fact: Fact, source: str, relation: str) -> bool:
    """True if a relation of this source is the fact's attribute, of one value or several."""
    if not fact.attribute or attribute_of(relation) != attribute_name(fact.attribute):
        return False
    return plain_name(subject_of(source)) == plain_name(subject_of(fact.subject or ""))


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
    """The roles that a fact gives persons beside its speaker, by plain name.

    A role beside another person tells no namesakes apart: Vera is Pavel's sister and Ana's wife.
    """
    roles: dict[str, str] = {}
    of_speaker: dict[str, str] = {}
    of_others = set()
    for relation in stated:
        for end in (relation.source, relation.destination):
            if not is_self(end.name) and (role := role_of(fact.text, end.name)):
                roles.setdefault(plain_name(end.name), role)
        name, exchanged = canonical(relation.relation, types.relations)
        ends = (relation.destination, relation.source) if exchanged else (
            relation.source, relation.destination,
        )  # fmt: skip
        owner, person = ends
        if (role := role_in(name)) is None or is_self(person.name):
            continue
        if is_self(owner.name) or plain_name(owner.name) == plain_name(fact.speaker or ""):
            of_speaker.setdefault(plain_name(person.name), role)
        else:
            of_others.add(plain_name(person.name))
    in_words = {name: role for name, role in roles.items() if name not in of_others}
    return of_speaker | in_words
