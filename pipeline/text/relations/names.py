"""Names of relations: one name for all synonyms, in the direction in which it is stored.

    canonical("is_employed_by")   works_at, as it stands
    canonical("employs")          works_at, with source and destination exchanged

A name that is not listed stays, without auxiliary words: the vocabulary grows. A project can list
names of its own, which stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

from pipeline.text.terms import terms
from pipeline.text.times.dates import any_of
from pipeline.text.word_lists import groups_in, words_of

# Longest name; longer ones are sentences.
MOST_CHARS = 60

# The attribute of a relation, as facts name it; see pipeline/text/statements/slots.
_ATTRIBUTES: Mapping[str, str] = {
    "lives_in": "residence", "works_at": "employer", "works_as": "job_title", "named": "name",
    "married_to": "partner", "engaged_to": "partner", "dating": "partner", "has_birthday":
    "birthday", "born_in": "birthplace", "is_from": "origin", "follows_diet": "diet", "is_aged":
    "age", "has_status": "marital_status", "drives": "car", "owns": "pets", "likes": "likes",
    "dislikes": "dislikes", "speaks": "languages", "allergic_to": "allergies", "studies_at":
    "school", "visited": "visited",
}  # fmt: skip
# Relations of which a source has one destination at a time.
_SINGLE = words_of(
    """
    lives_in works_at works_as named married_to engaged_to has_birthday born_in is_aged
    has_status follows_diet has_mother has_father
    """
)
# Relations of which a source usually has several: a new one is no reason to end another.
_SEVERAL = words_of(
    """
    likes dislikes owns speaks learns plays allergic_to has_condition visited plans_to_visit
    plans_to member_of founded also_known_as divorced_from has_friend has_colleague has_neighbour
    has_roommate has_parent has_sibling has_sister has_brother has_son has_daughter has_uncle
    has_aunt has_cousin has_grandmother has_grandfather
    """
)
# Relations that hold in both directions.
_SYMMETRIC = words_of(
    """
    married_to engaged_to dating divorced_from has_sibling has_cousin has_friend has_colleague
    has_neighbour has_roommate
    """
)
# Relations that a new one ends, for any destination.
_PARTNERS = frozenset({"married_to", "engaged_to", "dating", "has_status"})
_ENDS: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(_PARTNERS, _PARTNERS),
    "divorced_from": frozenset({"married_to", "has_status"}),
}
# Relations that a new one between the same two things ends.
_OPPOSITES: Mapping[str, frozenset[str]] = {
    "likes": frozenset({"dislikes"}),
    "dislikes": frozenset({"likes"}),
    "divorced_from": frozenset({"married_to", "engaged_to", "dating"}),
    "visited": frozenset({"plans_to_visit"}),
}
# Relations that name their source.
NAMING = frozenset({"named", "also_known_as"})

_AUXILIARY = re.compile(
    r"^(?:(?:is|are|has_been|currently|now|still|presently|also|recently)_)+(?=.{3})"
)
_FAVOURITE = re.compile(r"^(?:(?:has_)?favou?rite|preferred)_")


class Canonical(NamedTuple):
    """A relation's name. `exchanged`: source and destination change places."""

    name: str
    exchanged: bool = False


def _read(file: str) -> dict[str, Canonical]:
    """The names in a file of words/, with their synonyms."""
    names: dict[str, Canonical] = {}
    for name, words in groups_in(file).items():
        same, _, other = words.partition("<")
        names[name] = Canonical(name)
        names |= dict.fromkeys(same.split(), Canonical(name))
        names |= dict.fromkeys(other.split(), Canonical(name, exchanged=True))
    return names


_CANONICAL = _read("relation_names.txt")
BUILT_IN = tuple(dict.fromkeys(canonical.name for canonical in _CANONICAL.values()))
# The names that a model is shown; it knows the pattern of the other has_… names from these.
OFFERED = tuple(
    name for name in BUILT_IN if not name.startswith("has_") or name in (
        "has_mother", "has_brother", "has_friend", "has_colleague", "has_boss", "has_condition",
    )
)  # fmt: skip


def snake(text: str) -> str:
    """The text in snake_case; "" if it has no letter or digit."""
    return re.sub(r"\W+", "_", text.casefold()).strip("_")


def canonical(name: str, own: Iterable[str] = ()) -> Canonical:
    """The stored name of a relation. `own`: names of the project, which stay as they are."""
    word = snake(name)
    if word in own:
        return Canonical(word)
    if known := _CANONICAL.get(word):
        return known
    bare = _AUXILIARY.sub("", word)
    if known := _CANONICAL.get(bare):
        return known
    return Canonical(_FAVOURITE.sub("favourite_", bare)[:MOST_CHARS] or "related_to")


# Words of questions and facts about a relation, besides its synonyms.
_MATTER = groups_in("relation_words.txt")


_PLACE_WORDS = frozenset(
    ["in", "at", "from", "near", "location", "place", "city", "wohnt", "sitz", "en"]
)


@lru_cache(maxsize=1_000)
def words_about(relation: str) -> frozenset[str]:
    """The terms of a relation: of its name, of its synonyms, and of its matter."""
    synonyms = [word for word, known in _CANONICAL.items() if known.name == relation]
    text = " ".join((relation, *synonyms)).replace("_", " ")
    roles = " ".join(word for word, role in _ROLE_WORDS.items() if role == role_in(relation))
    return frozenset(terms(f"{text} {_MATTER.get(relation, '')} {roles}"))


def leads_to_place(relation: str) -> bool:
    """True if "where" may ask for the relation: lives_in, works_at, is_from."""
    return relation.rsplit("_", 1)[-1] in _PLACE_WORDS


def attribute_of(relation: str) -> str | None:
    """The attribute that the relation gives a value of; None if none is known."""
    return _ATTRIBUTES.get(relation)


def is_single(relation: str) -> bool:
    """True if a source has one destination at a time, so that a new one ends the former."""
    return relation in _SINGLE or relation.startswith("favourite_")


def has_several(relation: str) -> bool:
    """True if a source usually has several destinations, so that a new one is one more."""
    return relation in _SEVERAL


def is_symmetric(relation: str) -> bool:
    """True if the relation holds in both directions."""
    return relation in _SYMMETRIC


def ended_by(relation: str) -> frozenset[str]:
    """Relations of the same source that a new `relation` ends."""
    return _ENDS.get(relation) or (frozenset({relation}) if is_single(relation) else frozenset())


def opposites(relation: str) -> frozenset[str]:
    """Relations between the same two things that cannot hold together with `relation`."""
    return _OPPOSITES.get(relation, frozenset())


def ends_both(relation: str) -> bool:
    """True if the destination, too, has one such relation at a time: a marriage."""
    return relation in _PARTNERS and relation != "has_status"


# ── roles: the words that tell two persons of the same name apart ─────────────────────────────────

_KIN = words_of(
    """
    mother father parent sister brother sibling son daughter child grandmother grandfather
    uncle aunt cousin nephew niece grandson granddaughter
    """
)
_PARTNER_ROLES = words_of("wife husband spouse partner boyfriend girlfriend fiance fiancee")
_SOCIAL = words_of(
    """
    friend best_friend colleague coworker teammate boss manager neighbour neighbor roommate
    flatmate doctor teacher dentist therapist coach trainer landlord
    """
)


def role_in(relation: str) -> str | None:
    """The role that a relation gives a person: `brother` for has_brother; None for no role."""
    if relation in ("married_to", "engaged_to", "dating"):
        return "partner"
    role = relation.removeprefix("has_").rsplit("older_")[-1].rsplit("younger_")[-1]
    return role if relation.startswith("has_") and role in _KIN | _PARTNER_ROLES | _SOCIAL else None


def one_person(first: str, other: str) -> bool:
    """True if one person can have both roles, as a friend and colleague; no brother is an uncle."""
    if first == other or not _KIN & {first, other}:
        return True
    return {first, other} <= {"sibling", "sister"} or {first, other} <= {"sibling", "brother"}


_ROLE_WORDS = {
    word: role for role, words in groups_in("roles.txt").items() for word in (role, *words.split())
}
# Longest name whose role is read, in characters: a longer one is no name of a person.
LONGEST_PERSON = 100
_ROLES = any_of(_ROLE_WORDS)
_CALLED = r",? (?:is )?(?:named|called|namens|llamad[oa]) "
_OWNERS = (
    "my|his|her|their|the|user's|a|an|mein|meine|ihr|ihre|sein|seine|der|die|ein|eine|mi|su|el|la"
    "|un|una"
)


def role_of(text: str, name: str) -> str | None:
    """The role that stands in front of a name, or behind it, in a text; None without one.

    "User's colleague Sam", "Sam, their brother", "mein Bruder Sam", "我的同事小明".
    """
    if len(name) > LONGEST_PERSON:
        return None
    here = re.escape(name)
    before = rf"(?:\b|(?<=的))(?P<a>{_ROLES})(?:{_CALLED}|, | |叫|是)?"
    behind = rf",? (?:(?:is|ist|es|war) )?(?:(?:{_OWNERS}) )+(?P<b>{_ROLES})\b"
    match = re.search(rf"(?:{before}{here}|\b{here}{behind})", text, re.IGNORECASE)
    if match is None:
        return None
    return _ROLE_WORDS[(match["a"] or match["b"]).lower()]
