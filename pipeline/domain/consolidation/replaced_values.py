"""Values that the new value of a slot replaces of any class. Pure functions.

A slot with one value at a time has its value in the main part of a statement, behind the subject:

    User lives | in San Francisco, California | with 2 cats
    subject      value                          another part

If a fact gives the slot a new value, the old value goes as a whole: the further names of a place,
the model of a car, the year since when. What the other parts say stays.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.text.statements import polarity
from pipeline.text.statements.values import MOST_CHARS, Value, ValueKind, stated
from pipeline.text.terms import fold, terms
from pipeline.text.word_lists import words_of

# Least share of the words of another part that the new text keeps.
KEPT_PART = 0.5

_CLAUSE = (
    r"and|with|because|where|while|but|who|whom|whose|which|although|so"
    r"|und|mit|weil|wo|während|aber|sowie|obwohl|denn"
    r"|y|e|con|porque|donde|mientras|pero|aunque"
)
# Possible start of another part: punctuation, a conjunction, "with".
_BORDER = re.compile(
    rf"[;,，；、(（]|(?<=\w\w)(?<!\bdr)(?<!\bmr)(?<!\bms)(?<!\bst)(?<!\bmrs)(?<!\bprof)(?<!\bmed)(?<!\bjr)(?<!\bdra)[.!?]\s|。|\s[–—-]\s|\b(?:{_CLAUSE})\b|因为|并且|而且|还有|还",
    re.IGNORECASE,
)
# Lower-case words inside a list of names: "the University of Amsterdam".
_WITH = ("with", "mit", "con")
_JOINING = words_of("the of in at on near der die das dem den von am im an de del la las los el en")
_WORD = re.compile(r"[^\W_]+")

# Words before a date that bounds how long the value holds: "since 2019", "until Friday".
_HOLDS = re.compile(
    r"(?:\b(?:since|until|till|from|seit|bis|ab|desde|hasta)\s+(?:(?:el|la|den|dem)\s+)?|[从自到])$",
    re.IGNORECASE,
)
_CALLED = re.compile(
    r"(?:\b(?:named|called|namens|hei(?:ß|ss)t|genannt|llamad[oa]|se llama)\s+|名叫|叫)$",
    re.IGNORECASE,
)
_OPENING = re.compile(r"\s*(?:(?:the|der|die|das|el|la|los|las)\s+)?", re.IGNORECASE)
# Words between a thing and its year: "Seat Ibiza del 2012".
_YEAR_OF = re.compile(r"\s*(?:(?:del?|von|of|from|aus)\s+)?")
# A clause about the name in front of it.
_RELATIVE = re.compile(r",? (?:who|whose|whom)\b[^,.;]*", re.IGNORECASE)
_IS = re.compile(r"\b(?:is|are|was)\s+$", re.IGNORECASE)
_OF_USER = re.compile(r"\b(?:user|them|their)\b", re.IGNORECASE)
# A verb behind a name makes the name a subject: "Tim is ill".
_VERB = re.compile(
    r"\s+(?:is|was|has|had|will|lives?|works?|goes|plays?|stud(?:y|ies)|likes?|loves|wants"
    r"|ist|war|hat|wird|wohnt|lebt|arbeitet|spielt|mag|es|está|era|tiene|vive|trabaja|juega)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Parts:
    """A statement: its main part, and what else it says."""

    main: str
    others: tuple[str, ...] = ()


def parts(text: str) -> Parts:
    """Split a statement into its main part and others.

    A list of names goes on behind a comma or an "and"; anything else there is another part.
    """
    text = text[:MOST_CHARS]
    values = fold(" ".join(value.text for value in stated(text).values))
    split: list[str] = []
    start, border_at = 0, 0
    borders = [(match.start(), match.end()) for match in _BORDER.finditer(text)]
    for at, (begin, end) in enumerate(borders):
        following = text[end : borders[at + 1][0] if at + 1 < len(borders) else len(text)]
        if begin < border_at or _goes_on(text[begin:end], following, values):
            continue
        split.append(text[start:begin])
        start = border_at = end
    split.append(text[start:])
    main, *others = split
    return Parts(main, tuple(part for part in others if _WORD.search(part)))


def _goes_on(border: str, following: str, values: str) -> bool:
    """Tell if the words behind a border only name more of the same value.

    Behind a "with" one word more may stand: "mit Anna verheiratet", and no number of things.
    """
    words = _WORD.findall(following)
    others = [
        word
        for word in words
        if word.lower() not in _JOINING and fold(word) not in values and not word[0].isdigit()
    ]
    if border.strip().lower() in _WITH:
        counts = bool(words) and any(v.kind is ValueKind.NUMBER for v in stated(words[0]).values)
        return len(others) <= 1 and not counts
    return not others and border not in ("(", "（")


def gives_another_value(old: str, new: str, fact: str) -> bool:
    """Tell if a fact puts another value in the place of the old one.

    Its words are in the new text and not in the old one, and it states no value of the old main
    part that the new text keeps, unless it puts that aside.
    """
    if polarity.adds(fact):
        return False
    before, cause, after = stated(old), stated(fact), stated(new)
    words = set(terms(new)) & set(terms(fact)) - set(terms(old))
    values = [value for value in cause.values if after.keeps(value) and not before.keeps(value)]
    return bool(words or values) and not any(
        cause.keeps(value) and after.keeps(value) for value in _values_of_slot(old)
    )


def replaced(old: str, missing: Sequence[Value], matched: Sequence[Value]) -> set[Value]:
    """The missing values that go with the old value of the slot.

    `matched`: the missing values that a value of their own class replaces. A name takes all names
    and numbers of the main part with it, a date only how long the value held. A new value without
    any class takes the whole main part.
    """
    main = parts(old).main
    places = {value: at for value, at in _values_of_slot(old).items() if value in missing}
    gone = {value for value in matched if value in places}
    if not matched:
        return set(places)
    names = any(value.kind is ValueKind.NAME for value in gone)
    for value, at in places.items():
        holds = value.kind is ValueKind.DATE and bool(_HOLDS.search(main[:at]))
        part_of_name = any(_is_joined(main, value, at, other, places[other]) for other in gone)
        if gone and (holds or part_of_name or (names and value.kind is not ValueKind.DATE)):
            gone.add(value)
    return gone


def _is_joined(main: str, value: Value, at: int, other: Value, other_at: int) -> bool:
    """Tell if two values name one thing: the year of a name ("2019 MacBook"), or "Mate 40"."""
    year = value.kind is ValueKind.DATE and value.text.isdigit() and other.kind is ValueKind.NAME
    model = value.kind is ValueKind.NAME and other.kind is ValueKind.NUMBER
    (first, begin), (_, end) = sorted([(value, at), (other, other_at)], key=lambda pair: pair[1])
    between = main[begin + len(first.text) : end]
    return (year and bool(_YEAR_OF.fullmatch(between))) or (model and between in ("", " "))


def opens(text: str, value: Value) -> bool:
    """Tell if a statement opens with a name behind an article: "Der Kursbeginn wurde"."""
    at = text.find(value.text)
    return at > 0 and bool(_OPENING.fullmatch(text[:at]))


def without_relative(old: str, new: str) -> str:
    """A statement without the relative clause of a name that the new text does not have.

    "User's manager is Priya, who sits in Toronto" says of a manager that goes where that one sits.
    A clause with a date, a number, several names, or the user says more than that, and stays.
    """
    match = _RELATIVE.search(old)
    before = old[: match.start()] if match else ""
    named = [value for value in stated(before).values if before.endswith(value.text)]
    is_value = any(_IS.search(before[: -len(value.text)]) for value in named)
    if match is None or not is_value or any(map(stated(new).keeps, named)):
        return old
    clause = stated(match.group()).values
    if len(clause) > 1 or any(value.kind is not ValueKind.NAME for value in clause):
        return old
    if _OF_USER.search(match.group()):
        return old
    return before + old[match.end() :]


def is_companion(value: Value, text: str) -> bool:
    """Tell if a value stands behind a "with": "lives in Bern with Tom" says two things."""
    before = text[: max(text.find(value.text), 0)].split()
    return bool(before) and before[-1].lower() in _WITH


def companions_of_value(text: str) -> list[Value]:
    """The values that stand behind a "with" and behind the value of the slot.

    "Maya lives in Bern with Tom" has Tom; "Jonas ist mit Anna verheiratet" has none.
    """
    places = _values_of_slot(text)
    first = min(places.values(), default=0)
    return [value for value, at in places.items() if at > first and is_companion(value, text)]


def lost_parts(old: str, new: str) -> tuple[str, ...]:
    """Other parts of a statement of which the new text keeps less than half of the words."""
    after = set(terms(new))
    gone = []
    for part in parts(old).others:
        words = set(terms(part))
        if words and len(words & after) < KEPT_PART * len(words):
            gone.append(part.strip(" .,;，。"))
    return tuple(gone)


def _values_of_slot(text: str) -> dict[Value, int]:
    """The values of the main part with their positions, without the subject's names.

    A name is the subject's if it opens the statement, stands before a verb, or behind "named".
    """
    main = parts(text).main
    places = {value: main.find(value.text) for value in stated(text).values if not value.leads}
    return {
        value: at
        for value, at in places.items()
        if at >= 0
        and not _OPENING.fullmatch(main[:at])
        and not _CALLED.search(main[:at])
        and not _VERB.match(main[at + len(value.text) :])
    }
