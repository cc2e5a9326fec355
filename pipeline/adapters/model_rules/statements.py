"""Reads sentences in the third person by the table of rules: as slots, and in canonical form.

The same reading serves clauses of messages, the canonical sentences that come of them, and stored
sentences by a language model or a person: "The user resides in Berlin".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from functools import lru_cache
from typing import NamedTuple

from pipeline.adapters.model_rules import words as w
from pipeline.adapters.model_rules.clauses import rewriter, without_filler
from pipeline.adapters.model_rules.dates import lift
from pipeline.adapters.model_rules.relations import PLAN, RELATIONS, RULES, Rule, relation_of
from pipeline.adapters.model_rules.verbs import base_of_gerund, is_past, third
from pipeline.text.equality import signed_words
from pipeline.text.terms import terms

# Most words of an item of a list, and of a subject. Most characters of a stored sentence that are
# read, and a day: its dates are absolute.
ITEM_WORDS, SUBJECT_WORDS, LONGEST_READ, ANY_DAY = 4, 6, 500, date(2000, 1, 1)

PATTERNS = tuple((re.compile(rule.pattern, re.IGNORECASE), rule) for rule in RULES)
# Different ways to say "not any more", "has been" and "can", in the forms of the rules.
regular = rewriter(
    (rf"^can(?:not| no longer) stand (?!{w.POSTURES}\b)(.+?)(?: any more)?$", r"hates \1"),
    (r"^does not care for (?!their )", "dislikes "),
    (r"^does (like|love|enjoy|eat|drink|speak|live|work|have|own)\b", lambda m: third(m[1])),
    (r"^is not (.+) any more$", r"is no longer \1"),
    (r"^does not (\w+)( .+)? any more$", lambda m: f"no longer {third(m[1])}{m[2] or ''}"),
    (r"^(?:has )?(?:stopped|quit|gave up|given up) (\w+ing)\b",
     lambda m: f"no longer {third(base_of_gerund(m[1]))}"),
    (r"^(speak|eat|drink|play)s no (?!longer\b)", r"does not \1 "),
    (r"^(?:can|knows how to) (speak|play) ", r"\1s "),
    (rf"^has been (?=\w+ing\b|(?:an? )?{w.DIETS}|married\b|with\b|an? )", "is "),
    (r"^has (\w{2,}ed|bought|sold|quit|left|lost|become|given)\b", r"\1"),
    (r"^(prefers (?!to ).+?) (?:to|rather than) ", r"\1 over "),
    (rf",? (?:called|whose name is) (?={w.CAP})", " named "),
)  # fmt: skip
# "Has lived in Leeds", if it has a "since": that is so still.
STILL = {
    "lived": "lives", "worked": "works", "played": "plays", "owned": "owns", "had": "has",
    "studied": "studies", "taught": "teaches", "collected": "collects", "driven": "drives",
}  # fmt: skip
SO_FAR = re.compile(rf"has ({'|'.join(STILL)})\b")
# Some of what a person cannot do is a fact: not "cannot live in Berlin" or "cannot wait".
NEGATED = re.compile(
    r"(?:(?P<be>is|was) (?:not|no longer)|(?P<third>no longer|never)|can no longer"
    r"|cannot(?= (?:eat|drink|smoke|drive|own|use|cook|swim|celebrate|fly|watch|wear|speak|play)\b)"
    rf"|does not|used to) (?:(?P<limit>{w.LIMITS}) )?(?P<verb>\S+)(?P<rest>.*)",
    re.IGNORECASE,
)
LIMIT = re.compile(rf"\b{w.LIMITS}\b", re.IGNORECASE)
# "No beer, just tea" and "no cats, but dogs": the negation ends before what is affirmed, and "cats,
# not dogs" before what is denied.
NEGATIVE = re.compile(
    r"(?:(?:is|was|does) not|cannot|can no longer|(?:is )?no longer|never|hates|dislikes|detests"
    r"|despises|(?:has )?(?:stopped|quit|gave up)|(?:speak|eat|drink|play)s no)\b",
    re.IGNORECASE,
)
CONTRAST = re.compile(
    rf"(?:,? but|,? and not|, (?:not|rather|though|although|unlike|{w.LIMITERS})) .*",
    re.IGNORECASE,
)
DENIED = re.compile(r"(?:,? and not|, not) .*", re.IGNORECASE)
EXCEPTED = re.compile(r"\b(?:except|unless|apart from|other than)\b", re.IGNORECASE)
# A name is no conjunction, and has no speaker in it: not "Before User lived".
SUBJECT = re.compile(
    rf"(?:(?:the )?user|I|(?!{w.CONJUNCTIONS}\b){w.CAP}(?: (?!(?:User|I)\b){w.CAP}){{0,3}})"
    r"(?:'s [\w' -]+)?",
    re.IGNORECASE,
)
# A name, or a relative: not "User's savings".
PERSON = re.compile(rf"(?:.*'s {w.KIN}(?: {w.CAP})*|(?:(?!'s ).)*)", re.IGNORECASE)
ASIDES = re.compile(r" \([^)]*\)")
SEPARATOR = re.compile(r",? (?:and|&|or|as well as) |, ")
EMPHASIS = re.compile(r"^(?:especially|particularly|mostly|mainly|including|above all) ")
PAIR = re.compile(rf"\b{w.PAIRS}\b", re.IGNORECASE)
# "A son, Max" and "walks with Tom and Ann" are one thing.
DETERMINED = re.compile(rf"(?:an?|the|their|one|{w.COUNT})\b", re.IGNORECASE)
LEADS_ON = re.compile(r"\b(?:with|between|of|from|for|about|in|at|on|who|that|which)\b")

# A proper name with at most one word before it: "Berlin", "the BBC", "downtown Leeds". Not "a
# small flat", "constant fear", "home" or "night".
PROPER = re.compile(r"(?:(?!an? |their |his |her )[a-z]+ )?[^\W\d_a-z]")
VALUES = {
    "lives_in": PROPER,
    "is_from": PROPER,
    "works_at": PROPER,
    "attribute": re.compile(r"(?!(?:on|in|at|to|by|for|from|with|about|under|near|the same)\b)"),
}
# The words around the head of a value: "playing cricket with friends" is about cricket.
TAIL = re.compile(r",? (?:with|at|in|on|for|near|named|from|every|by|since|because|alone)\b.*$")
LEAD = re.compile(
    r"^(?:to )?(?:(?:play|do|watch|eat|drink|go|read)(?:ing)?|listen(?:ing)? to|mak(?:e|ing)|the"
    r"|an?|their) "
)
# Different ways to travel somewhere are the same plan.
TRIP = re.compile(
    r"^(?:(?:an? |the |their )?(?:flights?|trip|holiday|visit)(?: to)?"
    r"|(?:fly|go|travel|drive|head)(?: back| over)? to|visit|to)\b"
)


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

    def renamed(self, names: Mapping[str, str]) -> Slot:
        """The slot with another name of its subject, if there is one."""
        return replace(self, subject=names[self.subject]) if self.subject in names else self

    @property
    def key(self) -> frozenset[str]:
        """The stems of the value without small words; values with the same key are equal."""
        return stems(self.value)

    @property
    def core(self) -> frozenset[str]:
        """The key of the value's head: "cricket" for "playing cricket with friends"."""
        return stems(TAIL.sub("", LEAD.sub("", self.value)) or self.value)

    @property
    def of_kind(self) -> bool:
        """True if the value is of the relation's kind: only such a value replaces another one."""
        pattern = VALUES.get(self.relation.partition("_")[0]) or VALUES.get(self.relation)
        return pattern is None or pattern.match(self.value) is not None


# Cached, because a batch compares each fact with each stored sentence.
@lru_cache(maxsize=4096)
def stems(text: str) -> frozenset[str]:
    """The terms of a text: stems of its words without function words, and its signed words."""
    signed, rest = signed_words(text)
    return signed.union(terms(rest))


class Reading(NamedTuple):
    """A sentence: its subject, predicate and date, its rule, and its groups.

    `predicate`: "'s name is Ann" for an attribute. `when`: "", or such as "on 2026-03-13".
    `limited`: the negation is not of the whole statement, so it is no contrary of it.
    """

    subject: str
    predicate: str
    when: str
    rule: Rule
    groups: Mapping[str, str]
    negated: bool
    limited: bool = False

    @property
    def value(self) -> str:
        """The value of the relation: group x, or the date; a birthday has no year."""
        relation, day = self.rule.relation, re.search(r"\d{4}-\d\d-\d\d", self.when)
        if relation == "has_birthday" and day:
            born = date.fromisoformat(day[0])
            return f"{born:%B} {born.day}"
        return self.when if relation == "scheduled" else self.groups.get("x", "")


def statement(text: str, when: str = "") -> Reading | None:
    """The statement of a sentence without its date `when`; None if it has no rule."""
    words = text.split()
    for at in range(min(len(words), SUBJECT_WORDS + 1)):
        subject, rest = " ".join(words[:at]), " ".join(words[at:])
        if subject.endswith("'s"):
            subject, rest = subject[:-2], f"'s {rest}"
        if at == 0 or SUBJECT.fullmatch(subject):
            if when.startswith("since"):
                rest = SO_FAR.sub(lambda match: STILL[match[1]], rest, count=1)
            rest = (CONTRAST if NEGATIVE.match(rest) else DENIED).sub("", rest)
            read = _read(subject, regular(rest).strip(), when)
            if read is not None:
                return read
    return None


def _read(subject: str, predicate: str, when: str) -> Reading | None:
    """The statement of the first rule that matches the affirmed predicate."""
    text, negation = predicate, NEGATED.fullmatch(predicate)
    if negation:
        verb, be = negation["verb"], negation["be"]
        verb = f"{be} {verb}" if be else verb if negation["third"] else third(verb)
        text = verb + negation["rest"]
    for pattern, rule in PATTERNS:
        match = pattern.fullmatch(text)
        if match:
            groups = {name: text.strip(" ,") for name, text in match.groupdict("").items()}
            limited = not rule.positive and EXCEPTED.search(predicate) is not None
            limited = _is_limited(negation, rule, when) if negation else limited
            read = Reading(subject, predicate, when, rule, groups, negation is not None, limited)
            if _fits(read):
                return read
    return None


def _is_limited(negation: re.Match[str], rule: Rule, when: str) -> bool:
    """True for a negation with a word that limits it, or for a time: "cannot play today".

    A plan has a time of its own, and "no longer" and "used to" are about the past.
    """
    for_good = negation[0].lower().startswith(("no longer", "is no longer", "used to", "was "))
    standing = relation_of(rule.relation).kind is not PLAN and not for_good
    for_a_time = standing and when != "" and not when.startswith("since")
    return for_a_time or negation["limit"] is not None or LIMIT.search(negation["rest"]) is not None


def _fits(read: Reading) -> bool:
    """True if a statement fulfils the conditions of its rule."""
    groups, when = read.groups, read.when
    what = (groups.get("x") or groups.get("what") or "").lower()
    # "I have a question", "I lost my mind": no possessions.
    possession = not w.NOT_HELD & set(what.split()[:4])
    verb = groups.get("past", "").lower()
    happened = is_past(verb) and verb not in w.CHATTER and possession
    of_life = verb in w.LIFE_EVENTS and (what != "" or verb == "graduated")
    fulfilled = {
        "held": possession,
        "dated": when != "" and not when.startswith("since"),
        "day": re.fullmatch(r"on \d{4}-\d\d-\d\d", when) is not None,
        "negated": read.negated,
        "job": bool(groups.get("works_as") or groups.get("works_at")),
        "person": PERSON.fullmatch(read.subject) is not None,
        "event": happened and (when != "" or of_life),
    }
    return all(fulfilled[need] for need in read.rule.needs.split())


def canonical(read: Reading) -> list[str]:
    """The canonical sentences of a statement: one for each item of a list."""
    listed = relation_of(read.rule.relation).listed and not read.limited
    return [_written(read, item) for item in (items(read.value) if listed else [read.value])]


def items(text: str) -> list[str]:
    """The items of a list: three in "chess, tea and jazz", one in "walks with Tom and Ann"."""
    text = text.removeprefix("both ")
    parts = [part.strip() for part in SEPARATOR.split(text) if part.strip()]
    first, *others = [EMPHASIS.sub("", part) for part in parts] or [text]
    long = any(len(part.split()) > ITEM_WORDS for part in (first, *others))
    mixed = DETERMINED.match(first) and not all(map(DETERMINED.match, others))
    if long or mixed or LEADS_ON.search(first) or PAIR.search(text):
        return [text]
    if re.fullmatch(r"to \w+", first):
        others = [f"to {part.removeprefix('to ')}" for part in others]
    return [first, *others]


def _written(read: Reading, item: str) -> str:
    """The sentence of a statement with one item of its value, and with its date.

    The date is in brackets for a state, else at the end.
    """
    rule, groups, when, aside = read.rule, read.groups, read.when, ""
    if rule.written and not read.negated:
        fields = {name: f" {text}" if text else "" for name, text in groups.items()}
        for name, role in (("as", "works_as"), ("at", "works_at")):
            fields[name] = f" {name}{fields[role]}" if fields.get(role) else ""
        fields["prep"] = fields.get("prep", "").lower()
        fields["base"] = base_of_gerund(groups.get("base", ""))
        plural = rule.relation == "allergic_to" and item.lower() in w.COUNTABLE
        fields |= {"x": f"{item}s" if plural else item, "what": groups.get("what", "")}
        text, aside = rule.written.format_map(fields).strip(), rule.aside.format_map(fields)
        text = re.sub(r"^has a (?=[aeiou])", "has an ", text)
        when = "" if rule.relation == "has_birthday" else when
    else:
        x = groups.get("x", "")
        listed = x != "" and read.predicate.endswith(x)
        text = read.predicate.removesuffix(x) + item if listed else read.predicate
    begun = None if read.limited else re.match("(?:on|in|since) ", when)
    state = text.startswith(("is ", "no longer ")) or when.startswith("since")
    state = state or rule.relation == "has_condition"
    if begun and state and not (aside or rule.relation == "plans" or "dated" in rule.needs):
        aside, when = "since", when[begun.end() :]
    text = read.subject + text if text.startswith("'s") else f"{read.subject} {text}"
    in_brackets = aside and (when or " " in aside or aside.endswith("!"))
    aside = f"{aside.removesuffix('!')} {when}".strip()
    return f"{text} ({aside})" if in_brackets else f"{text} {when}".strip()


# Cached, because a batch needs each stored sentence once for each fact: 0.4 s for 20 facts and 100
# memories without the cache, a tenth with it (measured).
@lru_cache(maxsize=4096)
def slots_of(text: str) -> tuple[Slot, ...]:
    """All slots of a sentence: "works as a nurse at Charité" has two."""
    text = _plain(text[:LONGEST_READ])
    read = statement(*lift(without_filler(ASIDES.sub("", text)), ANY_DAY))
    subject = read.subject.lower().removeprefix("the ") if read else ""
    if read and read.predicate in ("died", "passed away") and "'s" not in subject:
        # A named animal belongs to the speaker: "Rollo died" ends "User has a dog named Rollo".
        return (Slot("user", "owns", read.subject, positive=False),)
    if read is None or not read.rule.relation or read.limited or _is_former_job(read):
        return ()
    name = f"{read.rule.relation} {read.groups.get('what', '')}".strip().lower()
    name = re.sub(r"\W+", "_", name)
    whole = name != "lives_in" or read.negated
    value = read.value if whole else TAIL.sub("", read.value)
    value = TRIP.sub("travel to", value) if name == "plans" else value
    values = {name: text for name, text in read.groups.items() if text and name in RELATIONS}
    subject = "user" if subject in ("", "i") else subject
    positive = read.rule.positive is not read.negated
    pairs = (values or {name: value}).items()
    return tuple(Slot(subject, name, value, positive, read.when) for name, value in pairs)


def aliases(statements: Iterable[tuple[str, str, str]]) -> dict[str, str]:
    """Names that mean another subject, from triples of a subject, a relation and a value.

    "User's sister is Anna" makes the two one; if there are two sisters, neither name is an alias.
    """
    names: dict[str, set[str]] = {}
    for subject, relation, value in statements:
        kin = relation.removeprefix("has_").replace("_", " ")
        if relation == "named" and value:
            names.setdefault(value.lower(), set()).add(subject)
        elif relation.startswith("has_") and value and re.fullmatch(w.KIN, kin):
            names.setdefault(f"{subject}'s {kin}", set()).add(value.lower())
    return {name: min(same) for name, same in names.items() if len(same) == 1}


def _is_former_job(read: Reading) -> bool:
    """True for "was fired in 2015": the stored job may be a later one."""
    unnamed = read.rule.relation == "works" and not any(read.groups.values())
    ended = unnamed and "retired" not in read.predicate
    return ended and re.fullmatch(r"in \d{4}(?:-\d\d)?", read.when) is not None


def _plain(text: str) -> str:
    """A text with one kind of quotes, and one spelling of some nouns: "mom" is "mother"."""
    text = re.sub("[\u2018\u2019]", "'", text).strip(" .!\n")
    text = re.sub("^(?=(?:name|birthday|favou?rite) )", "User's ", text, flags=re.IGNORECASE)
    text = text.replace("favorite", "favourite").replace("color", "colour")
    return re.sub(r"\bdad\b", "father", re.sub(r"\bm[uo]m\b", "mother", text))
