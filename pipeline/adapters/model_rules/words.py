"""Words of the rules, read from the lists of words.toml, and forms of verbs."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib import resources
from typing import Any

from pipeline.text.word_lists import IRREGULAR


def tables(name: str) -> dict[str, dict[str, Any]]:
    """The tables of a data file of this folder."""
    file = resources.files("pipeline.adapters.model_rules") / f"{name}.toml"
    return tomllib.loads(file.read_text("utf-8"))


_LISTS = tables("words")


def phrases(text: str) -> list[str]:
    """The phrases of a list, which commas divide."""
    return [" ".join(phrase.split()) for phrase in text.split(",")]


def word_set(name: str) -> frozenset[str]:
    """A list as a set."""
    return frozenset(phrases(_LISTS["words"][name]))


@cache
def either(*names: str) -> str:
    """A regex group that matches any phrase of the lists, the longest first."""
    alternatives = [phrase for name in names for phrase in phrases(_LISTS["words"][name])]
    return f"(?:{'|'.join(sorted(alternatives, key=len, reverse=True))})"


def pattern(form: str) -> str:
    """The regex of a form; its notation is explained in relations.toml."""
    regex = re.sub(r"(?<!\\)\((?!\?)", "(?:", form)
    regex = re.sub(r"<(\w+)(?::([^>]*))?>", lambda m: f"(?P<{m[1]}>{m[2] or '.+'})", regex)
    return re.sub(r"\{([a-z_]+)\}", lambda m: PARTS.get(m[1]) or either(m[1]), regex)


# A capitalized word, and a name of up to three words.
CAP = r"(?-i:[A-Z\u00c0-\u00de])[\w'&.-]*"
NAME = rf"{CAP}(?: (?:(?:van|von|de|der|la|del|bin) )*{CAP}){{0,2}}"
COUNT, ADVERBS = either("counts"), either("adverbs")
OPENERS, PAUSED, CLOSERS = either("openers"), either("paused"), either("closers")
LIMITS = rf"(?:{either('limits')}|(?!{either('ly_nouns')}\b)(?-i:[a-z])[a-z]+ly)"
SHE, HE, SINGLE_KIN = word_set("women"), word_set("men"), word_set("single_kin")
KIN = (
    "(?:(?:older|younger|elder|big|little|twin|best|oldest|youngest|old|new|close|late|ex) )*"
    rf"(?:step|grand)?{either('women', 'men', 'anyone')}(?:-in-law)?"
)
SEVERAL = rf"(?:{COUNT} )?(?:(?:older|younger) )?{either('several')}"
PETS = either("pets")
NOT_HELD, FOODS = word_set("not_held"), word_set("foods")
PAIRS, COUNTABLE = either("pairs"), word_set("countable")
JOBS, BEINGS, TRAITS = either("jobs"), either("beings"), either("traits")
DIETS = either("diets")
LANGUAGES, NATIONALITY = either("languages"), either("nationalities", "languages")
NO_NAME = either("nationalities", "languages", "traits", "diets", "not_names")
ATTRIBUTES = either("attributes")
CARRIED = either("carried")
# Words before a noun: not "a friend of a teacher".
UP_TO_THREE = r"(?:(?!of\b)[\w-]+ ){0,3}?"
PARTS = {"up_to_three": UP_TO_THREE, "cap": CAP, "name": NAME, "kin": KIN, "no_name": NO_NAME}
for _name, _form in _LISTS["parts"].items():
    PARTS[_name] = pattern(_form)
# Words before a verb.
ADVERBIAL = re.compile(pattern("({often}|never|no longer) "), re.IGNORECASE)
LIFE_EVENTS, CHATTER = word_set("life_events"), word_set("chatter")
SPELLINGS = _LISTS["spellings"]
CATEGORIES = {name: frozenset(phrases(text)) for name, text in _LISTS["categories"].items()}
# Verb forms, as far as the rules need them: "live" to "lives", "flying" to "fly".
PAST = word_set("past") | IRREGULAR.keys() - {"children", "people"}
NOT_PAST, UNCHANGED = word_set("not_past"), word_set("unchanged")
THIRD = {"have": "has", "do": "does", "am": "is", "are": "is", "be": "is", "were": "was"}
PLURAL = {"has": "have", "does": "do", "is": "are", "was": "were"}
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
    if low in THIRD or low in UNCHANGED or is_past(low) or re.search("[^aisu]s$", low):
        return THIRD.get(low, low)
    if low.endswith("y") and low[-2:-1] not in tuple("aeiou"):
        return low[:-1] + "ies"
    return low + ("es" if low.endswith(("s", "sh", "ch", "x", "z", "o")) else "s")


# Not "discuss" and "pass", which are bases.
BASE_ENDING = re.compile("(?<=[oxz])es$|(?<=[sc]h)es$|(?<=ss)es$|(?<!s)s$")


def of_several(predicate: str) -> str:
    """A predicate in the third person with its verb in the plural: "live in Rome", "are vegan"."""
    before, verb, rest = _parts(predicate)
    base = re.sub("ies$", "y", verb) if verb.endswith("ies") else BASE_ENDING.sub("", verb)
    return f"{before}{PLURAL.get(verb, base)} {rest}".strip()


def base_of_gerund(gerund: str) -> str:
    """The base of an -ing form: `flying` to `fly`, `running` to `run`, `moving` to `move`."""
    stem = gerund.lower().removesuffix("ing")
    return stem[:-1] if DOUBLED.search(stem) else stem + "e" * bool(SILENT_E.fullmatch(stem))


def in_third_person(predicate: str) -> str:
    """A first-person predicate in the third person: "usually goes climbing", "does not eat"."""
    before, verb, rest = _parts(predicate)
    return f"{before.lower()}{third(verb)} {rest}".strip()


def _parts(predicate: str) -> tuple[str, str, str]:
    """The words before the verb, such as "never ", the verb, and the rest."""
    before = ADVERBIAL.match(predicate)
    at = before.end() if before else 0
    verb, _, rest = predicate[at:].partition(" ")
    return predicate[:at], verb, rest
