"""Turns a subject and a predicate into canonical sentences, by the table in `claims`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from pipeline.adapters.model_rules import words as w
from pipeline.adapters.model_rules.claims import NOT_NAMES, POINTING, REWRITES, RULES, TALK, Rule
from pipeline.adapters.model_rules.verbs import base, base_of_gerund, is_past, third

# A longer list item is not an item, but a phrase with an "and" inside.
LONGEST_ITEM_WORDS = 4

STILL = {
    "lived": "lives", "worked": "works", "played": "plays", "owned": "owns", "had": "has",
    "studied": "studies", "taught": "teaches", "collected": "collects",
}  # fmt: skip
MARKED = re.compile(r"\b(third|ing|base):(\w+)")
MARKS: dict[str, Callable[[str], str]] = {
    "third": third,
    "base": base,
    "ing": lambda word: third(base_of_gerund(word)),
}
ASIDE = re.compile(r"\[([^\]]*)\]")
FIELD = re.compile(r"\{(\w+)(?::(\w+))?\}")
SEPARATOR = re.compile(r",? (?:and|&|or|nor|as well as) |, ")
EMPHASIS = re.compile(r"^(?:especially|particularly|mostly|mainly|including|above all) ")
LEADS_ON = re.compile(
    r"\b(?:with|between|of|from|for|about|in|at|on|who|that|which)\b", re.IGNORECASE
)
DETERMINED = re.compile(rf"(?:an?|the|our|their|one|{w.COUNT})\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Subject:
    """The subject of a clause, as written in facts. `known`: it was introduced before."""

    text: str
    me: bool = False
    known: bool = True

    @property
    def possessive(self) -> str:
        """The possessive form: "Anna's"."""
        return f"{self.text}'s"


@dataclass(frozen=True, slots=True)
class Claim:
    """A subject, a predicate in the third person without its date, and the date.

    `when`: "", or such as "on 2026-03-13". `ahead`: True if it is today or later.
    """

    subject: Subject
    predicate: str
    when: str = ""
    ahead: bool = False


Groups = Mapping[str, str]


def statements(claim: Claim) -> list[str]:
    """The canonical sentences of a claim; none if no rule recognizes it."""
    predicate = rewritten(claim)
    if TALK.search(predicate):
        return []
    for rule in RULES:
        match = rule.pattern.fullmatch(predicate)
        if match is None:
            continue
        groups = {name: (value or "").strip(" ,") for name, value in match.groupdict().items()}
        if CONDITIONS[rule.needs](claim, groups) and not _empty_talk(groups):
            return [render(rule.template, claim, item) for item in _each(rule, groups)]
    return []


def rewritten(claim: Claim) -> str:
    """The predicate, with variants of "not any more" and "has been" in the forms of the table."""
    text = claim.predicate
    for pattern, new in REWRITES:
        text = pattern.sub(new, text)
    text = MARKED.sub(lambda m: MARKS[m[1]](m[2]), text)
    head, _, rest = text.partition(" ")
    verb, _, tail = rest.partition(" ")
    if head == "has" and claim.when.startswith("since") and verb in STILL:
        text = f"{STILL[verb]} {tail}"
    return re.sub(r" +", " ", text).strip()


def _empty_talk(groups: Groups) -> bool:
    """True if the object is about the conversation, such as "that" or "your idea"."""
    objects = [groups.get(name, "") for name in ("x", "y", "org", "job")]
    return any(POINTING.match(part) for part in objects if part)


def _each(rule: Rule, groups: Groups) -> list[Groups]:
    if not rule.each or not groups[rule.each]:
        return [groups]
    return [{**groups, rule.each: item} for item in items(groups[rule.each])]


def items(text: str) -> list[str]:
    """The items of a list: three in "chess, tea and jazz", one in "fish and chips"."""
    text = re.sub(r"^both ", "", text, flags=re.IGNORECASE)
    parts = [EMPHASIS.sub("", part.strip()) for part in SEPARATOR.split(text) if part.strip()]
    if parts and parts[0].startswith("to "):
        parts = [f"to {part.removeprefix('to ')}" for part in parts]
    cut = LEADS_ON.search(SEPARATOR.split(text)[0])
    if len(parts) < 2 or cut or any(len(part.split()) > LONGEST_ITEM_WORDS for part in parts):
        return [text]
    if any(_is_pair(left, right) for left, right in pairwise(parts)):
        return [text]
    if DETERMINED.match(parts[0]) and not all(DETERMINED.match(part) for part in parts):
        return [text]
    return parts


def _is_pair(left: str, right: str) -> bool:
    """True if two neighbouring words name one thing, such as "fish and chips"."""
    return f"{left.rsplit(maxsplit=1)[-1]}-{right.split(maxsplit=1)[0]}".lower() in w.PAIRS


def render(template: str, claim: Claim, groups: Groups) -> str:
    """The sentence of a template: values filled in, empty asides removed, the date at the end."""
    values = {
        **groups, "s": claim.subject.text, "p": claim.subject.possessive, "when": claim.when,
    }  # fmt: skip
    text = ASIDE.sub(lambda m: _aside(m[1], values), template)
    text = FIELD.sub(lambda m: _field(m, values), text)
    if claim.when and "{when" not in template:
        text += f" ({claim.when})" if claim.when.startswith("since") else f" {claim.when}"
    text = re.sub(r"\s+", " ", text).strip(" ,.!")
    return text[:1].upper() + text[1:]


def _aside(inner: str, values: Groups) -> str:
    forced = inner.endswith("!")
    inner = inner.removesuffix("!")
    if not forced and not values["when"] and not ("{from}" in inner and values.get("from")):
        return ""
    return "(" + FIELD.sub(lambda m: _field(m, values), inner) + ")"


def _field(match: re.Match[str], values: Groups) -> str:
    """The text of one `{name}` or `{name:form}` in a template."""
    name, form = match[1], match[2]
    value = values.get(name, "")
    if not value:
        return ""
    if name == "when":
        return " " + (re.sub(r"^(?:on|in|since|around)\b ", "", value) if form else value)
    if name == "ger":
        return base_of_gerund(value)
    if form == "s":
        return f" {value}s" if value.split()[-1].lower() in w.COUNTABLE else f" {value}"
    if form == "a":
        return f"{'an' if value[0].lower() in 'aeiou' else 'a'} {value}"
    return f" {form} {value}" if form else (f" {value}" if name == "x" else value)


def _always(_: Claim, __: Groups) -> bool:
    return True


def _dated(claim: Claim, groups: Groups) -> bool:
    return bool(claim.when) and not claim.when.startswith("since") and _is_possession(claim, groups)


def _is_possession(_: Claim, groups: Groups) -> bool:
    """True unless the object is not a possession: "has a question", "lost my mind"."""
    tokens = set(groups.get("x", "").lower().split()[:4])
    if "lost" in (groups.get("v"), groups.get("past")):
        return not tokens & w.NOT_LOST
    return not tokens & w.NOT_HELD


def _named(claim: Claim, _: Groups) -> bool:
    return "'s " not in claim.subject.text


def _is_name(claim: Claim, groups: Groups) -> bool:
    tokens = groups["x"].lower().split()
    common = NOT_NAMES | w.NATIONALITIES | w.LANGUAGES
    return claim.subject.me and not common & set(tokens)


def _event(claim: Claim, groups: Groups) -> bool:
    verb = (groups["past"] or groups["past2"]).lower()
    if not is_past(verb) or verb in w.CHATTER or not _is_possession(claim, groups):
        return False
    return bool(claim.when) or (
        verb in w.LIFE_EVENTS and bool(groups["past"] or verb == "graduated")
    )


# Conditions of rules besides their patterns, by `Rule.needs`.
CONDITIONS: dict[str, Callable[[Claim, Groups], bool]] = {
    "": _always,
    "date": _dated,
    "future": lambda claim, _: claim.ahead,
    "known": lambda claim, _: claim.subject.known,
    "habit": lambda claim, _: claim.subject.known,
    "held": _is_possession,
    "named": _named,
    "nationality": lambda _, groups: groups["x"].lower() in w.NATIONALITIES,
    "name": _is_name,
    "event": _event,
}
