"""English verb forms, as far as the rules need them: "live" to "lives", "flying" to "fly"."""

from __future__ import annotations

import re

from pipeline.adapters.model_rules.words import OFTEN, words
from pipeline.text.word_lists import IRREGULAR

NOUNS = words("children feet halves knives men mice people shelves teeth wives women")
PAST = (words("was were did had quit learnt") | IRREGULAR.keys()) - NOUNS
# Verbs that end in -ed but are not past forms.
NOT_PAST = words("need feed breed speed embed exceed succeed proceed bleed seed shed")
UNCHANGED = words("can cannot could will would should might may must used is has does no a the not")
THIRD = {"have": "has", "do": "does", "am": "is", "are": "is", "be": "is", "were": "was"}
# Stems before -ing that lose an e: of one syllable, such as "mov", and by their endings.
SILENT_E = re.compile(r"[^aeiou]*[aeiou][^aeiouwxy]|.*(?:[^eo]at|[cuv]|is|iz|[^aeioul]l)")
DOUBLED = re.compile(r"([bdgmnprt])\1$|(?<=trave)ll$")


def is_past(verb: str) -> bool:
    """True if `verb` is a past form, by the list or by -ed."""
    low = verb.lower()
    return low in PAST or (low.endswith("ed") and low not in NOT_PAST and len(low) > 3)


def third(verb: str) -> str:
    """The third person singular of a base verb; past forms and modals are unchanged."""
    low = verb.lower()
    if low in THIRD or low in UNCHANGED or is_past(low):
        return THIRD.get(low, low)
    if low.endswith("y") and low[-2:-1] not in tuple("aeiou"):
        return low[:-1] + "ies"
    return low + ("es" if low.endswith(("s", "sh", "ch", "x", "z", "o")) else "s")


def base_of_gerund(gerund: str) -> str:
    """The base of an -ing form: `flying` to `fly`, `running` to `run`, `moving` to `move`."""
    stem = gerund.lower().removesuffix("ing")
    if DOUBLED.search(stem):
        return stem[:-1]
    return stem + "e" if SILENT_E.fullmatch(stem) else stem


def in_third_person(predicate: str) -> str:
    """A first-person predicate in the third person: "usually goes climbing", "does not eat"."""
    before = re.match(rf"(?:{OFTEN}|never|no longer) ", predicate, re.IGNORECASE)
    if before:
        return before[0].lower() + in_third_person(predicate[before.end() :])
    head, _, rest = predicate.partition(" ")
    return f"{third(head)} {rest}".strip()
