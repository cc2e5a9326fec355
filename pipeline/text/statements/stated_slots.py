"""Slots read from the words of a statement, for statements that no model gave a slot.

    "User's favourite author is Toni Morrison."   user · favourite_author
    "Jonas ist nach Bonn umgezogen."              jonas · residence
    "La reunión es el martes a las 9:00."         reunión · time
    "用户的医生是陈医生。"                          user · 医生

Three forms are read, in English, German, Spanish and Chinese: an attribute with its owner, a verb
of a common attribute, and a thing with nothing but its time. Any other statement has no slot.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from pipeline.text.marks import bounded
from pipeline.text.statements import polarity
from pipeline.text.statements.slots import SEPARATOR, is_the_user, slot
from pipeline.text.statements.values import ValueKind, stated
from pipeline.text.terms import fold
from pipeline.text.word_lists import STOP_WORDS, groups_in

# Characters that are read: slots stand at the start of a statement.
MOST_CHARS = 200
# A subject, and a noun of an attribute.
_SUBJECT, _NOUN = r"[^,;.，；。]{1,60}", r"[^\W\d_][^\W\d_-]*"
_ADVERBS = re.compile(
    r"\b(?:now|currently|nowadays|these days|jetzt|nun|derzeit|aktuell|inzwischen|mittlerweile"
    r"|ahora|actualmente|ya)\b ?|现在|目前|如今|已经"
    r"|^(?:这学期|这个月|上个月|本月|上周|本周|最近|今年|去年|今天|昨天)，?",
    re.IGNORECASE,
)

# Verbs that give a noun its value.
_IS = r"(?:is|are|has been|has become|has changed|changed|went|rose|fell|varies)\b"
_IST = r"(?:ist|sind|heißt|heisst|lautet|beträgt|liegt|wurde|wechselt)\b"
_ES = r"(?:es|son|se llama|subió|bajó|pasó|cambió)\b"
_SHI = r"(?:是|叫|为|涨到|降到|改为|改到|改成|变成|换成)"
# An attribute with its owner. The first owner is part of the subject in "User's mother's phone".
_OWNED = tuple(
    re.compile(pattern)
    for pattern in (
        rf"(?P<subject>{_SUBJECT})['’]s? (?P<attribute>{_NOUN}(?: {_NOUN}){{0,3}}?) {_IS}",
        rf"(?!(?:Das|Es|Was|Als)\b)(?P<subject>{_SUBJECT}?)(?:s|['’])"
        rf" (?P<attribute>[A-ZÄÖÜ]{_NOUN}) {_IST}",
        rf"(?:[Dd](?:er|ie|as)) (?P<attribute>[A-ZÄÖÜ]{_NOUN}) (?:von|der|des)"
        rf" (?P<subject>{_SUBJECT}?) {_IST}",
        rf"(?:[Ee]l|[Ll][ao]s?) (?P<attribute>{_NOUN}(?: {_NOUN}){{0,2}}?)"
        rf" (?:del|de la|de los|de las|de) (?P<subject>{_SUBJECT}?) {_ES}",
        rf"(?P<subject>[^的，。；]{{1,12}})的新?(?P<attribute>[^的，。；是叫]{{1,12}}?){_SHI}",
        # Zoe's mother has the phone number
        rf"(?P<subject>{_SUBJECT}?) (?:has|hat|tiene) (?:the|die|den|das|el|la)"
        rf" (?P<attribute>{_NOUN}(?: {_NOUN})?)\b",
    )
)


def _patterns(file: str) -> dict[str, re.Pattern[str]]:
    """Patterns of a subject and the words behind it; a Chinese word may follow it directly."""
    start = rf"(?P<subject>{_SUBJECT}?) ?(?<![^\W\u4e00-\u9fff])"
    patterns = {}
    for attribute, verbs in groups_in(file).items():
        any_verb = "|".join(map(str.strip, verbs.strip().splitlines()))
        patterns[attribute] = re.compile(rf"{start}(?:{any_verb})", re.IGNORECASE)
    return patterns


_ABOUT = _patterns("attribute_verbs.txt")
_PLACES = {"place": _ABOUT.pop("place")}

# A thing with nothing but its time: "The standup is on Tuesday at 9:15."
_TIMED = re.compile(
    rf"(?P<subject>{_SUBJECT}?)"
    r"(?: (?:is(?: planned| due| scheduled)?|starts|ist|beginnt|findet|es|empieza|será|se ha)\b"
    r"|改到|改在|改为|在|是|(?=待定|推迟|延期|未定))"
    r"(?P<time>(?:(?!\b(?:and|und|y|e)\b)[^,;，；。])*)",
    re.IGNORECASE,
)
_BEFORE_TIMES = re.compile(
    r"\b(?:on|at|for|by|until|the|am|um|statt|uhr|ab|bis|el|la|las|a|de|en|para|p\.?m|a\.?m)\b"
    r"|[点在到于半号上下午]|\W",
    re.IGNORECASE,
)
_UNSETTLED = re.compile(
    r"\b(?:postponed|undecided|to be (?:decided|announced|confirmed)|tbd|tba|varies|open"
    r"|verschoben|offen|unbestimmt|aplazad[oa]|pendiente|por decidir)\b|待定|推迟|延期|没定|未定",
    re.IGNORECASE,
)
_ARTICLE = re.compile(r"(?:the|der|die|das|el|la|los|las)\s", re.IGNORECASE)
# Endings of a word for a woman or a man: Ärztin, médica.
_GENDER = re.compile(r"(?<=\w\w\w)(?:in|[aoe])$")


@lru_cache(maxsize=4096)
def stated_slot(text: str) -> str | None:
    """The slot that a statement is about, read from its words; None if it has another form."""
    text = _ADVERBS.sub("", bounded(text[:MOST_CHARS]).strip())
    return _of_verb(text, _ABOUT) or _of_owner(text) or _of_verb(text, _PLACES) or _of_time(text)


def same_slot(first: str, other: str) -> bool:
    """Tell if two slots are one attribute of one subject; an author of either gender is one."""
    subject, _, attribute = first.partition(SEPARATOR)
    other_subject, _, name = other.partition(SEPARATOR)
    return _without_gender(attribute) == _without_gender(name) and same_subject(
        subject, other_subject
    )


def of_other_subjects(first: str, other: str) -> bool:
    """Tell if two slots have different subjects: Zoe's phone, and her mother's.

    The standup of "the team's standup" and of "the standup is on Tuesday" is one subject.
    """
    subjects = [key.partition(SEPARATOR)[0] for key in (first, other)]
    things = [key.replace(SEPARATOR, " ") for key in (first, other)]
    return not (
        same_subject(*subjects)
        or same_subject(things[0], subjects[1])
        or same_subject(subjects[0], things[1])
    )


def same_subject(first: str, other: str) -> bool:
    """Tell if two subjects are equal, or one is the other with a role: "user sister mary jane".

    A thing is the same with its owner: "yoga", "yoga de lucía".
    """
    shorter, longer = sorted((first, other), key=len)
    if re.match(r" (?:del?|von|des) ", longer.removeprefix(shorter)):
        return True
    role, _, _ = longer.rpartition(f" {shorter}")
    if longer == shorter or not longer.endswith(f" {shorter}"):
        return longer == shorter
    # "The review of the release" is no release.
    return role.split()[-1] not in STOP_WORDS


def _of_owner(text: str) -> str | None:
    """The slot of an attribute with its owner: "User's phone number is"."""
    for pattern in _OWNED:
        if match := pattern.match(text):
            # A name behind it: "User's cat Tim is ten years old" is about Tim.
            if any(word[0].isupper() for word in match["attribute"].split()[1:]):
                return None
            subject, favourite, _ = match["subject"].partition("最喜欢")
            attribute = match["attribute"]
            return slot(subject, f"favourite_{attribute}" if favourite else attribute)
    return None


def _of_verb(text: str, patterns: Mapping[str, re.Pattern[str]]) -> str | None:
    """The slot of a verb that states a common attribute: "Nutzer wohnt in Kassel"."""
    for attribute, pattern in patterns.items():
        if (match := pattern.match(text)) and _is_subject(match["subject"]):
            return slot(match["subject"], attribute)
    return None


def _is_subject(text: str) -> bool:
    """Tell if text in front of a verb is a subject: "User likes the work" is none of "at"."""
    words = _ARTICLE.sub("", text).split()
    if polarity.adds(text) or polarity.takes_back(text) or not words:
        return False
    # "The exam was moved to Friday" has a verb in front of it.
    if words[-1].lower() in STOP_WORDS and not is_the_user(text):
        return False
    owned = re.search(r"['’]|s$", words[0]) is not None
    return owned or _ARTICLE.match(text) is not None or all(word[0].isupper() for word in words[1:])


def _of_time(text: str) -> str | None:
    """The time of a thing, if the statement says nothing else: "Der Termin ist offen"."""
    match = _TIMED.match(text)
    if match is None or is_the_user(match["subject"]):
        return None
    thing = re.sub("(?:时间|日期)$", "", match["subject"]) or match["subject"]
    values = stated(match["time"]).values
    if _UNSETTLED.search(match["time"]):
        return slot(thing, "time")
    if not any(value.kind is ValueKind.DATE for value in values):
        return None
    rest = match["time"]
    for value in values:
        if value.kind is not ValueKind.NAME:
            rest = rest.replace(value.text, " ")
    return None if _BEFORE_TIMES.sub("", rest) else slot(thing, "time")


def _without_gender(attribute: str) -> str:
    return "_".join(_GENDER.sub("", word) for word in fold(attribute).split("_"))
