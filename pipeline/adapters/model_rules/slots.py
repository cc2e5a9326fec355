"""Slots of a stored sentence: (subject, relation, value, polarity). Decisions compare them.

Understands the canonical sentences of `extract`, and similar ones that a language model or a person
may have stored ("The user resides in Berlin", "Lives in Berlin").
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from pipeline.adapters.model_rules import words as w
from pipeline.adapters.model_rules.dates import ABSOLUTE
from pipeline.adapters.model_rules.words import ADVERBS
from pipeline.text.terms import stem


@dataclass(frozen=True, slots=True)
class Slot:
    """One statement about one subject.

    `subject`: lower case, "user" for the speaker. `value`: as written, "" for any value.
    `relation`: in snake_case. `when`: the date of a plan, else "".
    """

    subject: str
    relation: str
    value: str
    positive: bool = True
    when: str = ""

    @property
    def key(self) -> frozenset[str]:
        """The stems of the value without small words; values with the same key are equal."""
        return stems(self.value)

    @property
    def core(self) -> frozenset[str]:
        """The key of the value's head: "cricket" for "playing cricket with friends"."""
        return core_of(self.value)

    @property
    def of_kind(self) -> bool:
        """True if the value is of the relation's kind: only such a value replaces another one."""
        pattern = VALUES.get(self.relation.split("_", maxsplit=1)[0]) or VALUES.get(self.relation)
        return pattern is None or pattern.match(self.value) is not None


# A proper name with at most one word before it: "Berlin", "the BBC", "downtown Leeds". Not "a
# small flat", "constant fear", "home" or "night".
PROPER = re.compile(r"(?:(?!an? |their |his |her )[a-z]+ )?[^\W\d_a-z]")
VALUES = {
    "lives_in": PROPER,
    "is_from": PROPER,
    "works_at": PROPER,
    "attribute": re.compile(r"(?!(?:on|in|at|to|by|for|from|with|about|under|near|the same)\b)"),
}

# Relations with one value at a time: a new value replaces the old one.
SINGLE = frozenset(
    [
        "named",
        "lives_in",
        "born_in",
        "is_from",
        "works_as",
        "works_at",
        "follows_diet",
        "relationship_status",
        "is_aged",
        "has_birthday",
        "drives",
    ]
)
# Relations that a negative statement of a relation may end.
ENDS: dict[str, frozenset[str]] = {
    "owns": frozenset({"owns", "drives"}),
    "drives": frozenset({"owns", "drives"}),
    "works": frozenset({"works", "works_as", "works_at", "works_in"}),
    "left": frozenset({"works_at", "lives_in", "studies"}),
}
WORK = frozenset({"works", "works_as", "works_at", "works_in"})

SMALL = w.words("a an the of to is are their his her user's in at on and very really own")
TAIL = re.compile(
    r",? \b(?:with|at|in|on|for|near|named|called|from|every|by|since)\b.*$", re.IGNORECASE
)
LEAD = re.compile(
    r"^(?:to )?(?:play(?:ing)?|doing|do|watch(?:ing)?|listen(?:ing)? to|eat(?:ing)?|drink(?:ing)?"
    r"|go(?:ing)?"
    r"|read(?:ing)?|mak(?:e|ing)|the|an?|their) ",
    re.IGNORECASE,
)
PLACE_TAIL = re.compile(r" (?:with|for|since|near|because|together|alone)\b.*$", re.IGNORECASE)
BRITISH = (("favorite", "favourite"), ("color", "colour"), ("mum", "mother"), ("mom", "mother"),
           ("dad", "father"))  # fmt: skip


# Cached, because a batch compares each fact with each stored sentence.
@lru_cache(maxsize=4096)
def stems(text: str) -> frozenset[str]:
    """The stems of a text's words, without small words."""
    tokens = re.findall(r"[\w'+#-]+", text.lower())
    return frozenset(stem(word) for word in tokens if word not in SMALL)


@lru_cache(maxsize=4096)
def core_of(value: str) -> frozenset[str]:
    """The stems of a value's head, without its leading verb and its tail."""
    return stems(TAIL.sub("", LEAD.sub("", value)) or value)


@lru_cache(maxsize=4096)
def same_text(text: str) -> str:
    """A key that is equal for texts that differ in case, quotes, the final stop or "the user"."""
    text = re.sub(r"[\u2018\u2019]", "'", text.casefold())
    text = re.sub(r"^the user\b", "user", re.sub(r"[^\w' -]+", " ", text).strip())
    return re.sub(r"\s+", " ", text).strip()


CAP = r"(?-i:[A-Z\u00c0-\u00de])[\w'-]*"
SUBJECT = (
    rf"(?:(?P<s>(?:the )?user(?:'s? [\w'-]+(?: [\w'-]+){{0,3}}?)?|I|{CAP}(?: {CAP}){{0,3}}?"
    rf"(?:'s [\w'-]+(?: [\w'-]+){{0,2}}?)?) )?"
)
POSSESSOR = rf"(?:(?P<s>(?:the )?user|{CAP}(?: {CAP}){{0,3}}?|(?:the )?user's [\w-]+|my)(?:'s?)? )?"
X = r"(?P<x>.+)"
JOB_SPLIT = r"works? as (?P<works_as>(?:an? |the )?.+?)(?: (?:at|for|with) (?P<works_at>.+))?"


@dataclass(frozen=True, slots=True)
class Row:
    """A pattern for a whole sentence. Named groups other than s, x and when are relations."""

    relation: str
    positive: bool
    pattern: re.Pattern[str]


def _row(relation: str, pattern: str, *, positive: bool = True, head: str = SUBJECT) -> Row:
    return Row(relation, positive, re.compile(rf"{head}(?:{pattern})", re.IGNORECASE))


def _of(relation: str, pattern: str) -> Row:
    return _row(relation, pattern, head=POSSESSOR)


def _both(relation: str, verb: str, value: str = "") -> tuple[Row, Row]:
    """The rows of a verb, negated and plain."""
    negated = rf"(?:no longer|does not|cannot|never) {verb}"
    return (
        _row(relation, f"{negated} {value}".strip(), positive=False),
        _row(relation, f"{verb} {value}".strip()),
    )


LIKE = "likes?|loves?|enjoys?|adores?"
# The first match wins. The value is group x, or "" in a row without that group.
ROWS: tuple[Row, ...] = (
    _row("forget", rf"asks? to forget: {X}"),
    _of("named", rf"(?:full )?names? is {X}"),
    _row("named", rf"(?:is|am) (?:called|named) {X}"),
    _of("has_birthday", rf"birthday is (?:on )?{X}"),
    _row("has_birthday", rf"(?:was|were) born on {X}"),
    _row("born_in", rf"was born in {X}"),
    _of("favourite", rf"favou?rite (?P<what>[\w ]+?) (?:is|are) {X}"),
    _of("kin", rf"(?P<kin>(?:{w.KIN_SHADE} )*{w.KIN})(?:'s name)? is (?:called |named )?"
         rf"(?P<x>{CAP}(?: {CAP}){{0,2}})"),
    _of("attribute", rf"(?P<what>{w.ATTRIBUTES}) (?:is|are) {X}"),
    _of("scheduled", r"(?P<what>[\w' ]+?) is (?P<x>(?:on|in|around) .*\d{4}.*)"),
    # Residence and origin
    _row("lives_in", rf"(?:no longer lives?|used to live|does not live) (?:in|at) {X}",
         positive=False),
    _row("lives_in", rf"(?:(?:has |have )?(?:lives?|is living|resides?|is based|is residing"
         rf"|lived now|moved|has moved"
         rf"|relocated|has relocated)) (?:in|to|at) {X}"),
    _row("is_from", rf"(?:(?:is|am) (?:originally )?from|comes from) {X}"),
    _row("grew_up_in", rf"grew up in {X}"),
    # Work
    _row("works", r"(?:no longer works?|does not work)(?: (?P<works_as>as .+?))?(?: (?:at|for) "
         r"(?P<works_at>.+))?", positive=False),
    _row("works", r"(?:quit|left|lost) (?:their|his|her|the) job|is (?:retired|unemployed)|was "
         r"(?:laid off|fired|made redundant)"
         r"(?: from (?P<works_at>.+))?", positive=False),
    _row("works", rf"(?:{JOB_SPLIT}|(?:is employed|works?|is working) (?:at|for|by) (?P<org>.+?)"
         rf"(?: as (?P<job>.+))?)"),
    _row("works", rf"(?:is|am) (?P<works_as>an? (?:[\w-]+ ){{0,3}}?"
         rf"(?:{'|'.join(sorted(w.JOBS))}))(?: (?:at|for) (?P<works_at>.+))?"),
    _row("works_in", rf"works? in {X}"),
    _row("left", rf"(?:left|quit) {X}", positive=False),
    # Diet
    _row("follows_diet", rf"(?:is|are) (?:no longer|not) (?:an? )?(?P<x>{w.DIETS})(?: any ?more)?",
         positive=False),
    _row("follows_diet", rf"(?:is|are|follows|eats|became) (?:an? |on an? )?(?:strict )?"
         rf"(?P<x>{w.DIETS})(?: diet)?"),
    _row("follows_diet", r"(?:does not eat|cannot eat|no longer eats?) (?P<x>meat)",
         positive=False),
    _row("follows_diet", r"eats? (?P<x>meat)(?: again)?"),
    _row("allergic_to", rf"(?:is|are) (?:no longer|not) allergic to {X}", positive=False),
    _row("allergic_to",
         rf"(?:is|are) (?:\w+ )?allergic to {X}|has an? allergy to (?P<allergic_to>.+)"),
    # Likes
    _row("prefers", r"prefers? (?P<x>.+? (?:over|to) .+)"),
    _row("likes", rf"(?:no longer (?:{LIKE}|prefers?)|(?:does|do) not (?:like|love|enjoy"
         rf"|care for)|dislikes?|hates?"
         rf"|detests?|despises?|(?:cannot|can't|can no longer) stand|used to (?:like|love|enjoy)"
         rf"|is not a fan of"
         rf"|(?:does|do)n't (?:like|love|enjoy)) {X}", positive=False),
    _row("likes", rf"(?:(?:{LIKE}|prefers?)|used to hate|no longer hates?|is a (?:big )?fan of"
         rf"|is (?:fond of|into|keen on)) {X}"),
    # Relationship
    _row("relationship_status", r"(?:is|are|got) (?P<x>(?:married|engaged|single|divorced"
         r"|widowed|dating|in a relationship)(?: .+)?)"),
    _row("relationship_status",
         r"is (?:not|no longer) (?P<x>married|engaged|single|in a relationship)",
         positive=False),
    _row("relationship_status", r"(?P<x>broke up with .+)"),
    _row("is_aged", r"(?:is|turned) (?P<x>\d{1,3})(?: years? old)?"),
    # Languages, learning, hobbies
    *_both("speaks", "speaks?", X),
    _row("learns", rf"(?:is (?:learning|studying)|learns?|studies) {X}"),
    *_both("plays", "plays?", X),
    # Possessions
    _row("owns", rf"(?:no longer (?:has|owns?)|sold|gave away|got rid of|lost|does not (?:have"
         rf"|own)) (?:their |his |her |the )?{X}",
         positive=False),
    _row("drives", rf"(?:no longer drives?|does not drive) (?=an? |their |the ){X}",
         positive=False),
    _row("drives", rf"drives? (?P<x>(?:an? |the )?(?:{CAP}|\w+ "
         rf"(?:{'|'.join(sorted(w.VEHICLES))})|{'|'.join(sorted(w.VEHICLES))}).*)"),
    _row("has_condition",
         rf"(?:has|was diagnosed with) (?P<x>(?:\w+ )?(?:{'|'.join(sorted(w.CONDITIONS))}))"),
    _row("kin", rf"has (?:an? )(?P<kin>{w.KIN})(?: (?:named|called) (?P<x>{CAP}.*))?"),
    _row("scheduled", r"has an? (?P<what>.+?) (?P<x>(?:on|in|around) (?:the week of )?\d{4}.*)"),
    _row("owns", rf"(?:has|have|owns?|bought|got|adopted|purchased) (?P<x>(?:an?|the|their|one"
         rf"|{w.COUNT}) .+)"),
    # Plans and habits
    _row("plans", r"(?:no longer plans? to|is (?:not|no longer) going (?=to )"
         rf"|cancelled (?:their|his|her|the|a)) {X}",
         positive=False),
    _row("plans", rf"(?:plans? to|intends? to|is planning to|is planning|is going to|booked) {X}"),
    _row("wants", rf"(?:wants? to|dreams? of|hopes? to) {X}"),
    *_both("eats", "eats?", X),
    *_both("drinks", "drinks?", X),
    *_both("smokes", "smokes?"),
    _row("is", r"(?:is|are) (?:no longer|not) (?P<x>.+)", positive=False),
    _row("is", rf"is {X}"),
)  # fmt: skip

ASIDES = re.compile(r" \([^)]*\)")
DEATH = re.compile(
    rf"(?:(?P<s>.+)'s (?P<x>(?:\w+ )?{w.PETS}(?: {CAP})?)|(?P<n>{CAP})) died\b.*", re.IGNORECASE
)


# Cached, because a batch needs each stored sentence once for each fact: 0.4 s for 20 facts and 100
# memories without the cache, a tenth with it (measured). Large enough for the maximum number of
# facts of `extract` and their nearest memories.
@lru_cache(maxsize=4096)
def slots_of(text: str) -> tuple[Slot, ...]:
    """All slots of a sentence: "works as a nurse at Charité" has two."""
    plain, when = _plain(text)
    death = DEATH.fullmatch(plain)
    if death:
        # A named animal belongs to the speaker: "Bruno died" ends "User has a dog named Bruno".
        return (Slot(subject_key(death["s"]), "owns", death["x"] or death["n"], positive=False),)
    for row in ROWS:
        for candidate in (plain, f"{plain} {when}".strip()) if row.relation in DATED else (plain,):
            match = row.pattern.fullmatch(candidate)
            if match:
                return _slots(row, match, when)
    return ()


DATED = frozenset({"scheduled", "has_birthday"})


def _plain(text: str) -> tuple[str, str]:
    """The sentence without asides, adverbs and its date; and the date."""
    text = re.sub(r"[\u2018\u2019]", "'", text[:500]).strip(" .!\n")
    text = re.sub(r"\b(?:anymore|any more|any longer)$", "", ASIDES.sub("", text)).strip()
    text = re.sub(rf"\b{ADVERBS} (?=\w)", "", text, flags=re.IGNORECASE)
    match = ABSOLUTE.search(text)
    when = match["when"] if match else ""
    return re.sub(r"\s+", " ", ABSOLUTE.sub("", text)).strip(" ,"), when


def subject_key(subject: str | None) -> str:
    """One form for each subject: "The user" and no subject are "user"; "Anna" is "anna"."""
    low = re.sub(r"^the ", "", (subject or "user").lower())
    low = "user" if low in ("i", "my", "user'") else low
    return _british(low)


def _british(text: str) -> str:
    for american, british in BRITISH:
        text = re.sub(rf"\b{american}\b", british, text)
    return text


def _slots(row: Row, match: re.Match[str], when: str) -> tuple[Slot, ...]:
    """The slots of a match: one for each relation group, else one of the row's relation."""
    groups = {name: value.strip(" ,") for name, value in match.groupdict().items() if value}
    subject = subject_key(groups.pop("s", None))
    relation = _named_relation(row.relation, groups)
    value = groups.pop("x", "")
    parts = [(RENAMED.get(name, name), text) for name, text in groups.items()]
    if not parts:
        parts = [(relation, value)]
    return tuple(
        Slot(subject, name, _value(name, text), row.positive, when) for name, text in parts
    )


RENAMED = {"org": "works_at", "job": "works_as"}


def _named_relation(relation: str, groups: dict[str, str]) -> str:
    """Name of a relation that contains a noun: favourite_colour, has_sister, scheduled_exam."""
    noun = groups.pop("what", "") or groups.pop("kin", "")
    if not noun:
        return relation
    prefix = {"kin": "has"}.get(relation, relation)
    return re.sub(r"\W+", "_", f"{prefix} {_british(noun.lower())}")


def _value(relation: str, value: str) -> str:
    if relation == "lives_in":
        value = PLACE_TAIL.sub("", re.sub(r" from .+$", "", value))
    if relation == "works_as":
        value = re.sub(r"^as ", "", value)
    if relation == "plans":
        value = TRIP.sub(r"travel to", value)
    return value.strip(" ,")


# Different ways to travel somewhere count as the same plan.
TRIP = re.compile(
    r"^(?:(?:an? |the |their )?(?:flight|trip|holiday|visit)(?: to)?"
    r"|(?:fly|go|travel|drive|head)(?: back| over)? to|visit|to)\b"
)


def is_single(relation: str) -> bool:
    """True if a subject has at most one value of `relation` at a time."""
    if relation.startswith("has_"):
        kin = relation.removeprefix("has_")
        return relation in SINGLE or kin in w.SINGLE_KIN or kin == "best_friend"
    return relation in SINGLE or relation.split("_", maxsplit=1)[0] in (
        "favourite",
        "attribute",
        "scheduled",
    )


def ends_of(relation: str) -> frozenset[str]:
    """The relations that a negative statement of `relation` may end."""
    return ENDS.get(relation, frozenset({relation}))
