"""Types of entities: one word for all synonyms, and the family that tells namesakes apart."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pipeline.text.word_lists import groups_in

BUILT_IN = (
    "person", "animal", "place", "organization", "event", "product", "food", "activity", "language",
    "occupation", "health", "work", "date", "concept",
)  # fmt: skip
MOST_CHARS = 40

_SYNONYMS = {
    word: name for name, words in groups_in("entity_types.txt").items() for word in words.split()
}
_FAMILIES = {"person": "living", "animal": "living", "place": "site", "organization": "site"}
# A model gives these for anything.
_ANY = frozenset({"concept", "product"})


def entity_type(word: str, own: Iterable[str] = ()) -> str:
    """The type of an entity in snake_case. `own`: types of the project, which stay as they are."""
    name = re.sub(r"\W+", "_", word.casefold()).strip("_")[:MOST_CHARS]
    return name if name in own else _SYNONYMS.get(name, name) or "concept"


def same_family(first: str, other: str) -> bool:
    """True if things of these types can be one thing, such as a place and an organization."""
    first, other = entity_type(first), entity_type(other)
    if first == other or {first, other} & _ANY:
        return True
    return _FAMILIES.get(first, first) == _FAMILIES.get(other, other)
