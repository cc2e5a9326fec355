"""Slots: one key for the attribute of a subject, such as `maya · residence`.

Facts with the same slot are about the same thing. Only a slot that has one value at a time lets a
newer statement replace an older one without a model. Which slots those are is known from the
project's list, from a table of common attributes, and from the extraction's own word.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from enum import StrEnum

from pipeline.text.word_lists import groups_in

SEPARATOR = " · "
USER = "user"
# Maximum characters of a slot; an index entry has at most 2,700 bytes.
LONGEST_SLOT = 300

# Names of attributes, each with the one that stands for all its synonyms.
_ATTRIBUTES = {
    synonym: attribute
    for attribute, words in groups_in("attributes.txt").items()
    for synonym in words.split()
}
# Attributes of which a subject has one value at a time.
_SINGLE_VALUED = {
    "residence", "employer", "job_title", "name", "age", "birthday", "birthplace", "marital_status",
    "partner", "phone", "email", "address", "diet", "native_language", "height", "weight",
    "blood_type",
}  # fmt: skip
# Attributes of which a subject has several values at a time.
_MANY_VALUED = {
    "likes", "dislikes", "hobbies", "allergies", "pets", "languages", "visited", "children",
    "siblings", "friends", "medication", "skill", "friend", "child", "sibling",
}  # fmt: skip
# Plural nouns of which a subject has one value at a time.
_SINGLE_PLURALS = {"pronouns", "initials", "hours", "glasses", "earnings"}
# Verbs of the third person that are no plurals.
_VERBS = {
    "studies", "works", "lives", "resides", "attends", "weighs", "earns", "costs", "commutes",
    "follows",
}  # fmt: skip
_FAVOURITE = "favourite_"
_THE_USER = {
    "user", "speaker", "i", "me", "self", "benutzer", "nutzer", "nutzerin",
    "benutzerin", "usuario", "usuaria", "用户",
}  # fmt: skip


class Cardinality(StrEnum):
    """Number of values that an attribute of one subject has at a time."""

    ONE = "one"
    SEVERAL = "several"


def slot(subject: str | None, attribute: str | None) -> str | None:
    """The key of a subject's attribute, equal for all spellings; None if either is missing."""
    if not subject or not attribute:
        return None
    about, name = subject_key(subject), attribute_name(attribute)
    return f"{about}{SEPARATOR}{name}"[:LONGEST_SLOT] if about and name else None


def attribute_name(attribute: str) -> str:
    """An attribute in snake_case, with one name for all its synonyms."""
    words = re.findall(r"\w+", _folded(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", attribute)))
    name = re.sub(r"_+", "_", "_".join(words)).strip("_")
    name = re.sub(r"^(?:favorite|preferred|fav)_", _FAVOURITE, name)
    name = re.sub(r"(?<![^_])color(?![^_])", "colour", name)
    name = re.sub(r"^(?:current|present|new)_(?=.)", "", name)
    return _ATTRIBUTES.get(name, name)


def single_valued(key: str | None, known: Cardinality | None = None) -> bool:
    """True if the slot's attribute has one value at a time, so that a newer one replaces it.

    `known`: what is known about it beside the table.
    """
    if key is None:
        return False
    return known is Cardinality.ONE if known else _listed(key) is Cardinality.ONE


def many_valued(key: str | None, known: Cardinality | None = None) -> bool:
    """True if the slot's attribute has several values, so that a newer one adds.

    Those are the known ones, and English plurals: `medications`, `bank_accounts`.
    """
    if key is None:
        return False
    return known is Cardinality.SEVERAL if known else _listed(key) is Cardinality.SEVERAL


def cardinality(
    key: str | None, claimed: Cardinality | None, own: Mapping[str, str] | None
) -> Cardinality | None:
    """The cardinality of a slot where the table does not say it; None if nothing else does.

    `own`: the project's list, which comes first. `claimed`: the extraction's word, for attributes
    that neither list has.
    """
    if key is None:
        return None
    listed = (own or {}).get(key.rpartition(SEPARATOR)[2])
    if listed is not None:
        return Cardinality(listed)
    return claimed if _listed(key) is None else None


def is_listed(key: str) -> bool:
    """True if the table says how many values the slot's attribute has."""
    return _listed(key) is not None


def _listed(key: str) -> Cardinality | None:
    """The cardinality of a common attribute or an English plural."""
    attribute = key.rpartition(SEPARATOR)[2]
    if attribute in _SINGLE_VALUED or attribute.startswith(_FAVOURITE):
        return Cardinality.ONE
    noun = attribute.rpartition("_")[2]
    ends_as_plural = re.fullmatch(r"[a-z]{2,}[^suia\W]s", noun) and attribute not in _VERBS
    plural = ends_as_plural and noun not in _SINGLE_PLURALS
    return Cardinality.SEVERAL if attribute in _MANY_VALUED or plural else None


def is_the_user(subject: str) -> bool:
    """True for the words that stand for a user without a name."""
    return subject_key(subject) == USER


def subject_key(subject: str) -> str:
    """A subject or a name without case, articles and possessive endings; `user` for the user."""
    text = " ".join(re.sub(r"['’`´]s?(?=\s|$)", "", _folded(subject)).split())
    text = re.sub(r"^(?:the|der|die|das|el|la) (?=.)", "", text).strip(" .,:;")
    return USER if text in _THE_USER else text


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()
