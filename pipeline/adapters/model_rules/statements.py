"""Reads sentences in the third person by the table of rules: as slots, and in canonical form.

The same reading serves clauses of messages, the canonical sentences that come of them, and stored
sentences by a language model or a person: "The user resides in Berlin".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import NamedTuple

from pipeline.adapters.model_rules import words as w
from pipeline.adapters.model_rules.clauses import FILLER, LIMITED, rewriter
from pipeline.adapters.model_rules.dates import lift
from pipeline.adapters.model_rules.relations import RELATIONS, RULES, Rule, traits_of
from pipeline.domain.facts import FactKind
from pipeline.text.equality import signed_words
from pipeline.text.terms import terms

# Most words of an item of a list, and of a subject. Most characters of a stored sentence that are
# read, and a day: its dates are absolute.
ITEM_WORDS, SUBJECT_WORDS, LONGEST_READ, ANY_DAY = 4, 6, 500, date(2000, 1, 1)

PLACE = re.compile(w.PARTS["place"], re.IGNORECASE)
# "Has lived in Leeds" since 2019, or for ten years: that is so still.
still = rewriter(
    (r"^has (live|work|play|own|collect)e?d\b", r"\1s"), (r"^has had\b", "has"),
    (r"^has taught\b", "teaches"), (r"^has studied\b", "studies"),
)  # fmt: skip
# Different ways to say "not any more", "has been" and "can", in the forms of the rules.
regular = rewriter(
    (r"^can(?:not| no longer) stand (?!(?:up|on|by|for|still|in|at|straight)\b)(.+?)"
     r"(?: any more)?$", r"hates \1"),
    (r"^does not care for (?!their )", "dislikes "),
    (rf"^married (?={w.CAP})", "is married to "),
    (rf"^(?:started|is) (?:dating|seeing|going out with) (?={w.CAP})", "is dating "),
    (r"^does (like|love|enjoy|eat|drink|speak|live|work|have|own)\b", lambda m: w.third(m[1])),
    (r"^is not (.+) any more$", r"is no longer \1"),
    (r"^does not (\w+)( .+)? any more$", lambda m: f"no longer {w.third(m[1])}{m[2] or ''}"),
    (r"^(?:has )?(?:stopped|quit|gave up|given up) (\w+ing)\b",
     lambda m: f"no longer {w.third(w.base_of_gerund(m[1]))}"),
    (r"^(speak|eat|drink|play)s no (?!longer\b)", r"does not \1 "),
    (r"^(?:can|knows how to) (speak|play) ", r"\1s "),
    ("^works for (?:themselves|himself|herself)$", "is self-employed"),
    (rf"^has been (?=\w+ing\b|(?:an? )?{w.DIETS}|married\b|with\b|an? )", "is "),
    (r"^is working (?=as|at|for|in)", "works "),
    (r"^(?:lives|resides|is (?:living|based)) (in|at)\b", lambda m: f"lives {m[1].lower()}"),
    (r"^has (\w{2,}ed|bought|sold|quit|left|lost|become|given)\b", r"\1"),
    (r"^(prefers (?!to ).+?) (?:to|rather than) ", r"\1 over "),
    (rf",? (?:called|whose name is) (?={w.CAP})", " named "),
)  # fmt: skip
# Some of what a person cannot do is a fact: not "cannot live in Berlin" or "cannot wait".
NEGATED = re.compile(
    r"(?:(?P<be>is|was) (?:not|no longer)|(?P<third>no longer|never)"
    r"|cannot(?= (?:eat|drink|smoke|drive|own|use|cook|swim|fly|watch|wear|speak|play)\b)"
    rf"|does not|used to) (?:{w.LIMITS} )?(?P<verb>\S+)(?P<rest>.*)",
    re.IGNORECASE,
)
# A name is no conjunction, and has no speaker in it: not "Before User lived".
SUBJECT = re.compile(
    r"(?:(?:the )?user|I|(?!(?:before|after|since|until|once|when|while|because|if|although)\b)"
    rf"{w.CAP}(?: (?!(?:User|I)\b){w.CAP}){{0,3}})(?:'s [\w' -]+)?",
    re.IGNORECASE,
)
SEVERAL = re.compile(rf".+'s {w.SEVERAL}", re.IGNORECASE)
ASIDES = re.compile(r" \([^)]*\)")
SEPARATOR = re.compile(r",? (?:and|&|or|as well as) |, ")
# "A son, Max" and "walks with Tom and Ann" are one thing.
DETERMINED = re.compile(rf"(?:an?|the|their|one|{w.COUNT})\b", re.IGNORECASE)
LEADS_ON = re.compile(r"^to \w+ |\b(?:with|between|of|from|for|about|in|at|on|who|that|which)\b")
# Different ways to travel somewhere are the same plan.
TRIP = re.compile(
    r"^(?:(?:an? |the |their )?(?:flights?|trip|holiday|visit)(?: to)?"
    r"|(?:fly|go|travel|drive|head)(?: back| over)? to|visit|to)\b"
)


@dataclass(frozen=True, slots=True)
class Slot:
    """One statement about one subject, in lower case: "user" for the speaker.

    `relation`: in snake_case. `value`: as written, "" for any value. `when`: its date.
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
    def ends(self) -> Sequence[str]:
        """The relations whose values it ends if it is negative."""
        return traits_of(self.relation).ends or (self.relation,)

    @property
    def of_kind(self) -> bool:
        """True if it may replace another value: "Oslo", but not "a small flat"."""
        named = self.relation not in ("lives_in", "works_at")
        return named or PLACE.fullmatch(self.value) is not None


@lru_cache(maxsize=4096)
def stems(text: str) -> frozenset[str]:
    """The terms of a text: stems of its words without function words, and its signed words."""
    signed, rest = signed_words(text)
    return signed.union(terms(rest))


class Reading(NamedTuple):
    """A sentence: its subject, its predicate, such as "'s name is Ann", its date, and its rule."""

    subject: str
    predicate: str
    when: str
    rule: Rule
    groups: Mapping[str, str]
    negated: bool


def statement(text: str, when: str = "") -> Reading | None:
    """The statement of a sentence without its date `when`; None if it has no rule."""
    words = text.split()
    for at in range(min(len(words), SUBJECT_WORDS + 1)):
        subject, rest = " ".join(words[:at]), " ".join(words[at:])
        if subject.endswith("'s"):
            subject, rest = subject[:-2], f"'s {rest}"
        if at == 0 or SUBJECT.fullmatch(subject):
            rest = w.in_third_person(rest) if SEVERAL.fullmatch(subject) else rest
            rest = still(rest) if when.startswith("since") else rest
            read = _read(subject, regular(rest).strip(), when)
            if read is not None:
                return read
    return None


def _read(subject: str, predicate: str, when: str) -> Reading | None:
    """The statement of the first rule that matches the affirmed predicate."""
    text, negation = predicate, NEGATED.fullmatch(predicate)
    if negation:
        verb, be = negation["verb"], negation["be"]
        verb = f"{be} {verb}" if be else verb if negation["third"] else w.third(verb)
        text = verb + negation["rest"]
    # "Cannot play today" is no contrary of "plays"; a plan has a time of its own.
    past = when.startswith("since") or predicate.startswith(("no l", "is no l", "used to", "was "))
    for_a_time = negation and when and not past
    for rule in RULES:
        match = rule.pattern.fullmatch(text)
        if match:
            groups = {name: text.strip(" ,") for name, text in match.groupdict("").items()}
            day = re.search(r"\d{4}-\d\d-\d\d", when)
            if rule.relation == "has_birthday" and day:
                groups["x"] = f"{date.fromisoformat(day[0]):%B %-d}"
            elif rule.relation == "scheduled":
                groups["x"] = when
            read = Reading(subject, predicate, when, rule, groups, negation is not None)
            if _fits(read):
                is_plan = traits_of(rule.relation).kind is FactKind.PLAN
                return read if is_plan or not for_a_time else None
    return None


def _fits(read: Reading) -> bool:
    """True if a statement fulfils the conditions of its rule."""
    groups, when = read.groups, read.when
    what = (groups.get("x") or groups.get("what") or "").lower()
    # "I have a question", "I lost my mind": no possessions.
    possession = not w.NOT_HELD & set(what.split()[:4])
    verb = groups.get("past", "").lower()
    happened = w.is_past(verb) and verb not in w.CHATTER
    of_life = verb in w.LIFE_EVENTS and (what != "" or verb == "graduated")
    lasts = bool(groups.get("works_at")) or "retired" in read.predicate
    fulfilled = {
        "held": possession,
        "dated": when != "" and not when.startswith("since"),
        "day": re.fullmatch(r"on \d{4}-\d\d-\d\d", when) is not None,
        # "Was fired in 2015": a job of today may be a later one.
        "recent": lasts or re.fullmatch(r"in \d{4}(?:-\d\d)?", when) is None,
        "job": bool(groups.get("works_as") or groups.get("works_at")),
        "negated": read.negated,
        # "We are four" states no age.
        "other": read.subject != "User",
        "event": happened and possession and (when != "" or of_life),
    }
    return all(fulfilled[need] for need in read.rule.needs.split())


def items(read: Reading) -> list[str]:
    """The values of a statement: two in "chess and tea", one in "walks with Tom and Ann"."""
    value = read.groups.get("x", "")
    first, *others = parts = SEPARATOR.split(value.removeprefix("both "))
    long = any(not part or len(part.split()) > ITEM_WORDS for part in parts)
    mixed = DETERMINED.match(first) and not all(map(DETERMINED.match, others))
    is_one = long or mixed or LEADS_ON.search(first) or LIMITED.match(read.predicate)
    is_pair = re.search(rf"\b{w.PAIRS}\b", value, re.IGNORECASE)
    if is_one or is_pair or not traits_of(read.rule.relation).listed:
        return [value]
    return [f"to {part.removeprefix('to ')}" if first[:3] == "to " else part for part in parts]


def written(read: Reading, item: str) -> str:
    """The sentence of a statement with one item of its value, and with its date.

    The date is in brackets for a state, else at the end.
    """
    rule, when, text, aside = read.rule, read.when, read.predicate, ""
    x = read.groups.get("x", "")
    if rule.written and not read.negated:
        fields = {name: f" {text}" if text else "" for name, text in read.groups.items()}
        for role in ("works_as", "works_at"):
            fields[role] = f" {role[-2:]}{fields[role]}" if fields.get(role) else ""
        plural = rule.relation == "allergic_to" and item.lower() in w.COUNTABLE
        fields |= {"x": item + "s" * plural, "what": read.groups.get("what", "")}
        fields["base"] = w.base_of_gerund(read.groups.get("base", ""))
        text, aside = rule.written.format_map(fields).strip(), rule.aside.format_map(fields)
        when = "" if rule.relation == "has_birthday" else when
    elif x and text.endswith(x):
        text = text.removesuffix(x) + item
    if SEVERAL.fullmatch(read.subject):
        text = w.of_several(text)
    begun = re.match("(?:on|in|since) ", when)
    state = text.startswith(("is ", "are ", "no longer ")) or when.startswith("since")
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
    text = ASIDES.sub("", plain(text[:LONGEST_READ]))
    read = None if LIMITED.match(text) else statement(*lift(FILLER.sub("", text), ANY_DAY))
    if read and read.predicate in ("died", "passed away") and "'s" not in read.subject:
        # A named animal belongs to the speaker: "Rollo died" ends "User has a dog named Rollo".
        return (Slot("user", "owns", read.subject, positive=False),)
    if read is None or not read.rule.relation:
        return ()
    name = f"{read.rule.relation} {read.groups.get('what', '')}".strip().lower()
    name = re.sub(r"\W+", "_", name)
    value = read.groups.get("x", "")
    value = TRIP.sub("travel to", value) if name == "plans" else value
    values = {name: text for name, text in read.groups.items() if text and name in RELATIONS}
    subject = re.sub("^(?:the )?(?:user|i)?(?=$|'s)", "user", read.subject.lower())
    positive = read.rule.positive is not read.negated
    pairs = (values or {name: value}).items()
    return tuple(Slot(subject, name, value, positive, read.when) for name, value in pairs)


def aliases(statements: Iterable[tuple[str, str, str]]) -> dict[str, str]:
    """The names of relatives by their roles, from triples of a subject, a relation and a value.

    "User's sister is Ines" makes the two one; if there are two sisters, there is no alias.
    """
    names: dict[str, set[str]] = {}
    for subject, relation, value in statements:
        if relation.startswith("has_") and value:
            kin = relation.removeprefix("has_").replace("_", " ")
            names.setdefault(f"{subject}'s {kin}", set()).add(value.lower())
    return {role: min(same) for role, same in names.items() if len(same) == 1}


# Texts with one kind of quotes, and one spelling of some nouns: "mom" is "mother".
plain = rewriter(
    ("[\u2018\u2019]", "'"), (r"[\s.!]+$", ""), ("^(?=(?:name|birthday|favou?rite) )", "User's "),
    ("avorite", "avourite"), ("color", "colour"), (r"\bdad\b", "father"), (r"\bm[uo]m\b", "mother"),
)  # fmt: skip
