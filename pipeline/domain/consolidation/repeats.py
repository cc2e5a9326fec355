"""Repeats: facts that a memory states already. A NOOP on any other memory would lose its fact."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from pipeline.domain.consolidation.conservation import (
    NEAR,
    Replacement,
    is_of_another_subject,
    matter,
)
from pipeline.text.equality import signed_words
from pipeline.text.statements import polarity
from pipeline.text.statements.endings import ends
from pipeline.text.statements.relatives import relative
from pipeline.text.statements.values import stated
from pipeline.text.times.past import is_past

# Cached, because each fact of a batch can be compared with each memory that was shown.
_matter = lru_cache(maxsize=4096)(matter)


def can_state(text: str, fact: str, *, similarity: float = 0.0) -> bool:
    """Tell if a text can state a fact: nothing in it shows that it does not.

    It is about the fact's subject, in its tense, has its names, numbers, dates and words with a
    sign, and a word about its matter or a near meaning; and neither takes back or ends the other.
    `similarity`: their cosine, or 0 if it is not known.
    """
    about, of_text = _matter(fact), _matter(text)
    if similarity < NEAR and about and about.isdisjoint(of_text):
        return False
    # In other words, "is allergic to nuts" can state "cannot eat nuts".
    in_its_words = about <= of_text or of_text <= about
    if in_its_words and polarity.takes_back(fact) != polarity.takes_back(text):
        return False
    values = [value for value in stated(fact).values if not value.leads]
    return (
        not _is_of_another_person(text, fact)
        and all(map(stated(text).keeps, values))
        and signed_words(fact)[0] <= signed_words(text)[0]
        and is_past(fact) == is_past(text)
        and not ends(fact, text)
    )


def takes_back_nothing(fact: str, texts: Sequence[str]) -> bool:
    """Tell if a fact takes back what none of the texts is about."""
    about = _matter(fact)
    return polarity.takes_back(fact) and all(about.isdisjoint(_matter(text)) for text in texts)


def _is_of_another_person(text: str, fact: str) -> bool:
    """Tell if two texts are about different persons, by their names or as relatives."""
    person, other = relative(fact), relative(text)
    is_other_relative = bool(person and other) and person != other
    return is_other_relative or is_of_another_subject(Replacement(text, fact, fact))
