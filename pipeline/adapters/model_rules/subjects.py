"""Turns clauses into facts: finds the subject, and changes the first person to the third.

Each reader knows one kind of subject ("I", "my sister Anna", "she", "Anna"); the first reader that
recognizes the clause's subject reads it. A pronoun without a known subject gives no facts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import date

from pipeline.adapters.model_rules import words as w
from pipeline.adapters.model_rules.clauses import trim
from pipeline.adapters.model_rules.dates import (
    Anchor,
    absolute,
    day_and_month,
    lift,
    looks_back,
    since_span,
)
from pipeline.adapters.model_rules.statements import Claim, Subject, statements
from pipeline.adapters.model_rules.verbs import in_third_person

CAP = r"(?-i:[A-Z\u00c0-\u00de])[\w-]+"
NAMED = rf"{CAP}(?: {CAP}){{0,2}}"
SHADE = rf"(?:{w.KIN_SHADE} )*"
OWNER = r"(?:my|our)"

SPEAKER = re.compile(r"^(?:I|(?:both of )?[Ww]e(?: both)?) (?P<p>.+)$")
PET = re.compile(
    rf"^{OWNER} (?P<kind>(?:\w+ )?{w.PETS})(?P<name>,? {NAMED})?,? (?P<p>(?-i:[a-z]).*)$",
    re.IGNORECASE,
)
KIN = re.compile(
    rf"^{OWNER} (?P<kin>{SHADE}{w.KIN})\b(?:,? (?P<name>{NAMED}),?)?(?: "
    rf"(?P<p>.+))?$",
    re.IGNORECASE,
)
NAME_OF = re.compile(
    rf"^(?P<of>{OWNER} .+?|his|her|their|its)(?:'s)? name is (?P<x>[\w' -]+)$|"
    rf"^(?P<of2>{OWNER} .+?) is (?:called|named) (?P<x2>{NAMED})$",
    re.IGNORECASE,
)
KIN_IS = re.compile(
    rf"^(?P<owner>{OWNER}(?: \w+'s)?|{NAMED}'s|his|her|their) (?P<kin>{SHADE}{w.KIN}) is "
    rf"(?P<x>{NAMED})$",
    re.IGNORECASE,
)
ATTRIBUTE = re.compile(
    rf"^(?P<owner>{OWNER}(?: {SHADE}{w.KIN}'s)?|{NAMED}'s) (?P<what>{w.ATTRIBUTES}"
    rf"|(?:new |current )?favourite (?:\w+ ){{0,2}}\w+|(?:new |current )(?:job|car|address|email)"
    r") (?:is|are|has always been) (?P<x>.+)$",
    re.IGNORECASE,
)
FAVOURITE = re.compile(
    rf"^(?P<x>.+?) (?:is|are) {OWNER} (?P<what>favourite (?:\w+ )?\w+)$", re.IGNORECASE
)
BIRTHDAY = re.compile(
    rf"^(?P<owner>{OWNER}(?: {SHADE}{w.KIN}'s)?|{NAMED}'s) birthday is (?P<x>.+)$", re.IGNORECASE
)
SCHEDULED = re.compile(
    rf"^(?P<owner>{OWNER}) (?P<what>(?:[\w']+ ){{0,3}}[\w']+) (?:is|starts|begins|leaves|ends)$",
    re.IGNORECASE,
)
# Words that are capitalised at the start of a sentence but are not names.
NO_NAME = (
    "I|We|You|He|She|They|It|This|That|These|Those|The|An?|My|Our|Your|His|Her|Their|There|Here"
    "|Some|Someone|Everyone|Everybody|Nobody|People|Most|Many|All|One|No|Not|Never|If|When|While|As|Can"
    "|Let|Please|Got|Need|Want|Just|What|How|Which|Who|Where|Why|Both|Every|Each|Any"
)
# "My name is on the list", "... is misspelled": words that are not names.
NO_NAME_VALUE = re.compile(
    r"^(?:on|in|at|not|to|the|an?|for|spelled|hard|too|so|still) |^[a-z]+(?:ed|ing)$"
)
PRONOUN = re.compile(r"^(?P<who>he|she|they) (?P<p>.+)$", re.IGNORECASE)
OTHER = re.compile(rf"^(?!(?:{NO_NAME})\b)(?P<name>{NAMED}) (?P<p>[a-z].+)$")
PRONOUN_OF = {"his": "he", "her": "she", "their": "they", "its": "it"}

# Replacements of the first person inside a predicate whose subject is the speaker.
OWN_WORDS: tuple[tuple[str, str], ...] = (
    (r"\b(?:my|our)\b", "their"), (r"\b(?:mine|ours)\b", "theirs"), (r"\bmyself\b", "themselves"),
    (r"\bourselves\b", "themselves"), (r"\b(?:I|we) (?:am|are)\b", "they are"),
    (r"\bI was\b", "they were"), (r"\b(?:I|we)\b", "they"), (r"\b(?:me|us)\b", "them"),
)  # fmt: skip


@dataclass(slots=True)
class Listener:
    """People and pets that one speaker has mentioned so far, to resolve pronouns.

    `met`: the last subject that each pronoun can refer to.
    """

    name: str
    day: date
    met: dict[str, Subject] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)

    @property
    def me(self) -> Subject:
        """The speaker as a subject."""
        return Subject(self.name, me=True)

    def owner(self, words: str) -> str:
        """The owner in the third person: "User's" for "my", "User's wife's" for "my wife's"."""
        return re.sub(rf"^{OWNER}\b", self.me.possessive, words, flags=re.IGNORECASE)

    def meet(self, subject: Subject, kin: str) -> Subject:
        """Remember a subject under the pronouns for its kind, such as "sister"; returns it."""
        word = kin.lower().split()[-1]
        for pronoun in _pronouns(word):
            self.met[pronoun] = subject
        self.names.add(subject.text)
        return subject


def _pronouns(kin: str) -> tuple[str, ...]:
    if kin in w.SHE:
        return ("she",)
    if kin in w.HE:
        return ("he",)
    # Any pronoun can refer to a pet, or to a person of unknown gender.
    return ("she", "he", "they", "it")


def in_voice(text: str, listener: Listener) -> str:
    """A statement about the speaker in the third person: "my code is 1" to "User's code is 1"."""
    match = SPEAKER.match(text)
    if match:
        return f"{listener.name} {_predicate(match['p'], listener.me, listener)}"
    text = re.sub(r"\b(?:my|our)\b", listener.me.possessive, text, flags=re.IGNORECASE)
    return re.sub(r"\b(?:I|me|we|us)\b", listener.name, text)


def _predicate(words: str, subject: Subject, listener: Listener) -> str:
    """A predicate as in facts: in the third person, without I, me or my."""
    if subject.me:
        for pattern, new in OWN_WORDS:
            words = re.sub(pattern, new, words)
    else:
        words = re.sub(r"\b(?:my|our)\b", f"{listener.name}'s", words)
        words = re.sub(r"\b(?:I|me|us|we)\b", listener.name, words)
    return in_third_person(words) if subject.me else words


def clause_facts(clause: str, listener: Listener) -> list[str]:
    """The canonical sentences of one clause; people whom it introduces are remembered."""
    if BIRTHDAY.match(clause):
        return _birthday(clause, listener)
    back = looks_back(clause)
    if re.search(r"\b(?:have|has)\b", clause):
        clause = since_span(clause, listener.day)
    text, when = lift(absolute(clause, Anchor(listener.day, back)))
    text = trim(text)
    for reader in READERS:
        facts = reader(text, when, listener)
        if facts is not None:
            return facts
    return []


def _claims(words: str, subject: Subject, when: str, listener: Listener) -> list[str]:
    """The canonical sentences of a predicate, without "Anna's name is Anna"."""
    dates = re.findall(r"\d{4}(?:-\d\d)*", when)
    ahead = (
        bool(dates)
        and not when.startswith("since")
        and dates[0] >= listener.day.isoformat()[: len(dates[0])]
    )
    facts = statements(Claim(subject, _predicate(words, subject, listener), when, ahead))
    return [text for text in facts if text != f"{subject.possessive} name is {subject.text}"]


def _read_attribute(text: str, when: str, listener: Listener) -> list[str] | None:
    """Attributes and favourites: "My favourite colour is blue"; None for other clauses."""
    match = ATTRIBUTE.match(text) or FAVOURITE.match(text)
    if match is None or re.match(
        r"(?:to be|that|not|it|this|your|what|how|why)\b", match["x"], re.IGNORECASE
    ):
        return None
    owner = listener.owner(match.groupdict().get("owner") or "my")
    value = _predicate("is " + match["x"], Subject("", known=False), listener).removeprefix("is ")
    what = re.sub(r"^(?:new|current) ", "", match["what"].lower())
    if what in ("name", "full name"):
        if NO_NAME_VALUE.search(value):
            return []
        value = value.title() if value.islower() else value
        return [] if value == listener.name else [f"{owner} {what} is {value}"]
    plural = "are" if what == "hobbies" else "is"
    return [f"{owner} {what} {plural} {value} {when}".strip()]


def _read_kin_name(text: str, _: str, listener: Listener) -> list[str] | None:
    """Names of relatives: "My sister is Anna", "Anna's husband is Lars", "her husband is Lars"."""
    match = KIN_IS.match(text)
    if match is None or match["x"].lower() in w.NATIONALITIES:
        return None
    owner = match["owner"].lower()
    if owner in PRONOUN_OF:
        known = listener.met.get(PRONOUN_OF[owner])
        if known is None:
            return []
        possessive = known.possessive
    else:
        possessive = listener.owner(match["owner"])
    listener.meet(Subject(match["x"]), match["kin"])
    return [f"{possessive} {match['kin'].lower()} is {match['x']}"]


def _read_name_of(text: str, when: str, listener: Listener) -> list[str] | None:
    """Names: "My dog's name is Bruno", "my sister is called Anna", "his name is ..."."""
    match = NAME_OF.match(text)
    if match is None:
        return None
    who, name = match["of"] or match["of2"], match["x"] or match["x2"]
    name = name.title() if name.islower() else name
    if who.lower() in PRONOUN_OF:
        known = listener.met.get(PRONOUN_OF[who.lower()])
        who = known.text if known else ""
    what = re.sub(
        rf"^(?:{OWNER}|{re.escape(listener.me.possessive)}) ", "", who, flags=re.IGNORECASE
    )
    return _introduce(what.lower(), name, listener)


def _introduce(what: str, name: str, listener: Listener) -> list[str]:
    """The sentence that names a pet or a relative, who is remembered."""
    if re.fullmatch(rf"(?:\w+ )?{w.PETS}", what):
        listener.meet(Subject(name), "pet")
        article = "an" if what[0] in "aeiou" else "a"
        return [f"{listener.name} has {article} {what} named {name}"]
    if re.fullmatch(rf"{SHADE}{w.KIN}", what):
        listener.meet(Subject(name), what)
        return [f"{listener.me.possessive} {what} is {name}"]
    return []


def _read_pet(text: str, when: str, listener: Listener) -> list[str] | None:
    """Statements about a pet of the speaker: "my dog Bruno is ill"."""
    match = PET.match(text)
    if match is None:
        return None
    kind, name = match["kind"].lower(), (match["name"] or "").strip(" ,")
    dead = re.match(r"died|passed away|has died", match["p"])
    naming = _introduce(kind, name, listener) if name and not dead else []
    subject = Subject(f"{listener.me.possessive} {kind} {name}".strip())
    listener.meet(subject, "pet")
    return naming + _claims(match["p"], subject, when, listener)


def _read_kin(text: str, when: str, listener: Listener) -> list[str] | None:
    """Statements about a relative of the speaker: "my sister Anna lives in Rome"."""
    match = KIN.match(text)
    if match is None:
        return None
    kin, name = match["kin"].lower(), match["name"] or ""
    naming = _introduce(kin, name, listener) if name else []
    subject = Subject(name or f"{listener.me.possessive} {kin}")
    listener.meet(subject, kin)
    return naming + (_claims(match["p"], subject, when, listener) if match["p"] else [])


def _read_schedule(text: str, when: str, listener: Listener) -> list[str] | None:
    """A noun of the speaker, followed by nothing but a date: "My exam is on Friday"."""
    match = SCHEDULED.match(text)
    if match is None or not when:
        return None
    return [f"{listener.me.possessive} {match['what']} is {when}"]


def _read_speaker(text: str, when: str, listener: Listener) -> list[str] | None:
    match = SPEAKER.match(text)
    if match is None:
        return None
    facts = _claims(match["p"], listener.me, when, listener)
    for fact in facts:
        _meet_in(fact, listener)
    return facts + (_named_inside(match["p"], listener) if facts else [])


def _named_inside(words: str, listener: Listener) -> list[str]:
    """Names mentioned in passing: "... with my husband Tom"."""
    inside = re.finditer(rf"\b{OWNER} ({w.KIN}) ({NAMED})", words, re.IGNORECASE)
    return [fact for match in inside for fact in _introduce(match[1].lower(), match[2], listener)]


def _meet_in(fact: str, listener: Listener) -> None:
    """Remember the person or pet of "User's sister is Anna" or "User has a dog"."""
    kin = re.fullmatch(rf"{re.escape(listener.me.possessive)} (.+) is ({NAMED})", fact)
    if kin:
        listener.meet(Subject(kin[2]), kin[1])
    pet = re.search(
        rf" (?:has|adopted|bought) an? ((?:\w+ )?{w.PETS})\b(?: named ({NAMED}))?", fact
    )
    if pet:
        listener.meet(Subject(pet[2] or f"{listener.me.possessive} {pet[1]}"), "pet")
    relative = re.search(rf" has an? ({w.KIN})$", fact)
    if relative:
        listener.meet(Subject(f"{listener.me.possessive} {relative[1]}"), relative[1])


def _read_pronoun(text: str, when: str, listener: Listener) -> list[str] | None:
    match = PRONOUN.match(text)
    if match is None:
        return None
    subject = listener.met.get(match["who"].lower())
    return _claims(match["p"], subject, when, listener) if subject else []


def _read_other(text: str, when: str, listener: Listener) -> list[str] | None:
    match = OTHER.match(text)
    if match is None:
        return None
    known = match["name"] in listener.names
    return _claims(match["p"], Subject(match["name"], known=known), when, listener)


# The first reader that recognizes the clause's subject reads it.
READERS = (
    _read_speaker, _read_kin_name, _read_name_of, _read_attribute, _read_schedule, _read_pet,
    _read_kin, _read_pronoun, _read_other,
)  # fmt: skip


def _birthday(clause: str, listener: Listener) -> list[str]:
    """A birthday as month and day, without the year of the next one."""
    match = BIRTHDAY.match(clause)
    text = absolute(match["x"] if match else "", Anchor(listener.day, past=False))
    day = re.search(r"\d{4}-\d\d-\d\d", text)
    if match is None or not day:
        return []
    return [f"{listener.owner(match['owner'])} birthday is {day_and_month(day[0])}"]
