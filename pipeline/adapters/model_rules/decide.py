"""Decisions by slot: one value for each slot, polarity flips, retractions, repeats.

Facts are decided in order, against a working copy of the store. If a fact reverses an earlier fact
of the batch, it replaces that one: the earlier decision becomes NOOP, so no memory is the target of
two changes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple
from uuid import UUID

from pipeline.adapters.model_rules.relations import ENDS, relation_of
from pipeline.adapters.model_rules.statements import Slot, slots_of, stems
from pipeline.domain.facts import Decision, Fact, Neighbour, Outcome
from pipeline.text.endings import is_requested
from pipeline.text.equality import same_text
from pipeline.text.forget_requests import asks_to_forget

# Names of slots in reasons.
LABELS = {
    "lives_in": "residence", "works_as": "job", "works_at": "employer", "named": "name",
    "follows_diet": "diet", "relationship_status": "relationship status", "is_aged": "age",
    "has_birthday": "birthday", "is_from": "origin", "drives": "car",
    "plans": "date of the plan", "prefers": "preference",
}  # fmt: skip
# Most comparisons of a fact with a stored or earlier one in a batch: about 0.6 s of CPU.
MOST_PAIRS = 50_000
NOT_COMPARED = (
    f"Added without a comparison: local/rules compares at most {MOST_PAIRS:,} pairs of facts and"
    " memories in a batch."
)
NOT_SOUGHT = (
    "Not carried out: local/rules had already made its comparisons of this batch. Ask again in an"
    " add of its own."
)
NEWS = "not known yet, and contradicts nothing stored"
# A request to forget in the words of `extract`.
REQUEST = re.compile(r"(?P<who>.+?) asks to forget: (?P<what>.+)")
# "What I like" names a memory only if there is no other.
QUESTION = re.compile(r"(?:what|where|who|whom|how|when|why|which)\b", re.IGNORECASE)
# Negative values that may be shorter than what they end: "sold the Tesla" ends "a red Tesla".
NARROW = ("owns", "drives", "works_at", "works_as", "lives_in", "left")


class Bearing(IntEnum):
    """Effect of a fact on a memory; a higher value wins over a lower one."""

    DETAIL = 1
    CHANGE = 2
    FLIP = 3
    KNOWN = 4
    EQUAL = 5


class Comparison(NamedTuple):
    """A bearing, its reason, and the text to store."""

    bearing: Bearing
    reason: str
    text: str


@dataclass(frozen=True, slots=True)
class Entry:
    """A memory of the working store, or (`memory_id` None, `fact` set) one that the batch adds.

    `fact`: number of the fact that wrote the text. `before`: the entry as it was stored.
    """

    text: str
    memory_id: UUID | None = None
    fact: int | None = None
    before: Entry | None = None


Aliases = dict[str, str]
# A decision without its number, and the entry that it changes.
Judgement = tuple[Outcome, str, str | None, Entry | None]
# Cached, because a batch compares each fact with each stored sentence.
_key = lru_cache(maxsize=4096)(same_text)
# The end of a job that is not named.
_NO_JOB = re.compile(
    r" (?:their|his|her) (?:job|position)\b"
    r"| (?:was )?(?P<how>(?:fired|laid off|made redundant|(?<!was )resigned)(?: (?:on|in) .+)?)$"
)


def decide_facts(facts: Sequence[Fact], neighbours: Sequence[Neighbour]) -> tuple[Decision, ...]:
    """One decision for each fact, in order; targets from `neighbours`, each changed only once.

    Facts beyond MOST_PAIRS comparisons are added without one, and their reason says so.
    """
    nearest = sorted(neighbours, key=lambda n: (-n.similarity, str(n.memory_id)))
    batch = _Batch([Entry(memory.text, memory.memory_id) for memory in nearest])
    for number, fact in enumerate(facts):
        if batch.pairs < MOST_PAIRS:
            batch.take(number, fact.text)
        elif _asks(fact.text):
            batch.decisions[number] = Decision(number, Outcome.NOOP, NOT_SOUGHT)
        else:
            batch.decisions[number] = Decision(number, Outcome.ADD, NOT_COMPARED, fact.text)
    return tuple(batch.decisions[number] for number in range(len(facts)))


@dataclass(slots=True)
class _Batch:
    """The working store, and the decisions so far. `pairs`: comparisons so far."""

    entries: list[Entry]
    decisions: dict[int, Decision] = field(default_factory=dict)
    pairs: int = 0

    def take(self, number: int, text: str) -> None:
        """Decide one fact; first reverse every earlier decision of the batch that it overturns."""
        outcome, reason, written, entry = self._judge(text)
        while outcome is not Outcome.NOOP and entry and entry.fact is not None:
            by = f"superseded later in the same batch: {text}"
            self.decisions[entry.fact] = Decision(entry.fact, Outcome.NOOP, by)
            self._replace(entry, entry.before)
            # A text merged from both ("a nurse" and "at Charité") replaces the earlier fact.
            outcome, reason, written, entry = self._judge(written or text)
        target = entry.memory_id if entry else None
        if outcome is Outcome.NOOP and entry and entry.fact is not None:
            reason, target = f"same as fact {entry.fact} of this batch", None
        self.decisions[number] = Decision(number, outcome, reason, written, target)
        if outcome is not Outcome.NOOP:
            after = Entry(written, target, number, entry) if written else None
            self._replace(entry, after)

    def _judge(self, text: str) -> Judgement:
        self.pairs += len(self.entries)
        return _judgement(text, self.entries)

    def _replace(self, entry: Entry | None, other: Entry | None) -> None:
        """Put another entry, or none, in the place of one; without one, at the end."""
        at = next((i for i, known in enumerate(self.entries) if known is entry), len(self.entries))
        self.entries[at : at + 1] = [other] if other else []


def _judgement(text: str, entries: Sequence[Entry]) -> Judgement:
    """Effect of one statement on a store: the highest bearing wins, then the nearest entry."""
    aliases = _aliases(entries)
    if _asks(text):
        return _forget(text, entries, aliases)
    new = _resolved(slots_of(text), aliases)
    effects = ((_effect_on(text, new, entry, aliases), entry) for entry in entries)
    known = ((effect, entry) for effect, entry in effects if effect)
    best = max(known, key=lambda pair: pair[0].bearing, default=None)
    if best is None:
        single = new and relation_of(new[0].relation).single and new[0].of_kind
        reason = f"nothing stored yet about the {_label(new[0].relation)}" if single else NEWS
        return Outcome.ADD, reason, text, None
    effect, entry = best
    if effect.bearing >= Bearing.KNOWN:
        return Outcome.NOOP, effect.reason, None, entry
    return Outcome.UPDATE, effect.reason, effect.text, entry


def _effect_on(text: str, new: Sequence[Slot], entry: Entry, aliases: Aliases) -> Comparison | None:
    """Effect of a statement on one entry, or on the text that the batch replaced in it."""
    effect = _effect(text, new, entry.text, _resolved(slots_of(entry.text), aliases))
    if effect or not entry.before:
        return effect
    # "I left Munich. I live in Vienna now." is one change of residence, not an end and a start.
    stored = entry.before.text
    effect = _effect(text, new, stored, _resolved(slots_of(stored), aliases))
    return effect if effect and effect.bearing is Bearing.CHANGE else None


def _label(relation: str) -> str:
    """Name of a relation in a reason: "residence", "favourite colour", "sister"."""
    plain = re.sub(r"^(?:has|attribute|scheduled)_", "", relation)
    return LABELS.get(relation, plain.replace("_", " "))


def _effect(
    text: str, new: Sequence[Slot], old_text: str, old: Sequence[Slot]
) -> Comparison | None:
    """Effect of a statement on a stored one; None if they are unrelated."""
    pairs = [(n, o) for n in new for o in old if n.subject == o.subject]
    if _key(text) == _key(old_text):
        return Comparison(Bearing.EQUAL, "already known", text)
    for n, o in pairs:
        if _flips(n, o):
            start = "true again, after" if n.positive else "no longer true"
            return Comparison(Bearing.FLIP, f"{start}: {old_text}", _flip_text(text, n, old_text))
    met = [(n, o) for n, o in pairs if n.relation == o.relation and n.positive is o.positive]
    if met and len({n.relation for n, _ in met}) == len(new) and all(_knows(n, o) for n, o in met):
        return Comparison(Bearing.KNOWN, "already known", text)
    for n, o in met:
        if _changes(n, o):
            before, after = (o.when, n.when) if n.relation == "plans" else (o.value, n.value)
            change = f"changed from {_in_words(before)} to {_in_words(after)}"
            written = _with_employer(text, new, old)
            return Comparison(Bearing.CHANGE, f"{_label(n.relation)} {change}", written)
    detailed = _detailed(text, new, old)
    return Comparison(Bearing.DETAIL, f"adds detail to: {old_text}", detailed) if detailed else None


def _flips(new: Slot, old: Slot) -> bool:
    """True for opposite polarity about the same value.

    A negative statement without a value is about any value; "dislikes pizza with ham" is not about
    "pizza".
    """
    if new.positive is old.positive:
        return False
    positive, negative = (new, old) if new.positive else (old, new)
    if positive.relation not in ENDS.get(negative.relation, (negative.relation,)):
        return False
    if not negative.key or negative.key == positive.key:
        return True
    alike = negative.relation in NARROW or negative.core == positive.core
    return negative is new and alike and negative.key <= positive.key


def _flip_text(text: str, new: Slot, old_text: str) -> str:
    """The text to store after a flip: "quit their job" names the job that is stored."""
    match = _NO_JOB.search(text) if new.relation == "works" and not new.value else None
    subject, verb, rest = old_text.rstrip(".").partition(" works ")
    if not match or not verb:
        return text
    aside = f" ({match['how']})" if match["how"] else ""
    return f"{subject} no longer{verb}{rest}{aside}"


def _knows(new: Slot, old: Slot) -> bool:
    """True if the stored value includes the new one, with its date."""
    if new.relation == "plans":
        return new.key <= old.key and (not new.when or new.when == old.when)
    if new.key == old.key:
        return not _turned(new, old)
    alike = relation_of(new.relation).single or new.core == old.core or not new.key
    return alike and new.key < old.key


def _alike(new: Slot, old: Slot) -> bool:
    """True for the same plan in more or fewer words."""
    return new.core == old.core and (new.key <= old.key or old.key <= new.key)


def _changes(new: Slot, old: Slot) -> bool:
    """True if the new value replaces the stored one."""
    if new.relation == "plans":
        return _alike(new, old) and "" not in (new.when, old.when) and new.when != old.when
    if new.relation == "prefers":
        return _turned(new, old)
    clash = new.positive and not (new.key <= old.key or old.key <= new.key)
    return clash and relation_of(new.relation).single and new.of_kind and old.of_kind


def _turned(new: Slot, old: Slot) -> bool:
    """True for the same two things in reverse order: tea over coffee, coffee over tea."""
    first, known = (stems(slot.value.split(" over ")[0]) for slot in (new, old))
    return new.relation == "prefers" and new.key == old.key and first != known


def _in_words(value: str) -> str:
    """A value inside a sentence: without article or "on"; "meat" as the diet that it means."""
    bare = re.sub(r"^(?:an?|the|on|in|around) ", "", value)
    return "eating meat" if bare == "meat" else bare


def _detailed(text: str, new: Sequence[Slot], old: Sequence[Slot]) -> str:
    """The text to store if a statement is more detailed, or the other half of a job; else ""."""
    pairs = ((n, o) for n in new for o in old if n.subject == o.subject)
    met = [(n, o) for n, o in pairs if n.relation == o.relation and n.positive is o.positive]
    fuller = [n for n, o in met if _fuller(n, o)]
    if fuller and (len(old) <= len(new) or fuller[0].relation == "works_as"):
        return _with_employer(text, new, old)
    longer = met and len(new) > len(old) and all(_knows(n, o) for n, o in met)
    return text if longer else _joined_work(text, new, old)


def _fuller(new: Slot, old: Slot) -> bool:
    """True if the new value has all words of the stored one, and more."""
    if new.relation == "plans":
        return _alike(new, old) and bool(new.when) and not old.when
    alike = relation_of(new.relation).single or new.core == old.core or not old.key
    return alike and old.key < new.key


def _with_employer(text: str, new: Sequence[Slot], old: Sequence[Slot]) -> str:
    """The text with the stored employer, for a promotion or a more detailed job title."""
    jobs = {slot.relation: slot for slot in old if slot.positive}
    if [slot.relation for slot in new] != ["works_as"] or set(jobs) != {"works_as", "works_at"}:
        return text
    if "(promoted" not in text and not jobs["works_as"].key <= new[0].key:
        return text
    head, aside, rest = text.partition(" (")
    return f"{head} at {jobs['works_at'].value}{aside}{rest}"


def _joined_work(text: str, new: Sequence[Slot], old: Sequence[Slot]) -> str:
    """The full text for a half of a job: "works at Charité" next to "works as a nurse"."""
    if len(new) != 1 or len(old) != 1 or new[0].subject != old[0].subject:
        return ""
    parts = {slot.relation: slot for slot in (*old, *new) if slot.positive and slot.value}
    if set(parts) != {"works_as", "works_at"} or not parts["works_at"].of_kind:
        return ""
    who = text.partition(" works ")[0]
    return f"{who} works as {parts['works_as'].value} at {parts['works_at'].value}"


def _asks(text: str) -> bool:
    return REQUEST.fullmatch(text) is not None or asks_to_forget(text)


def _forget(text: str, entries: Sequence[Entry], aliases: Aliases) -> Judgement:
    """Delete the memory that a request names: by its slot, else by all words of the request."""
    request = REQUEST.fullmatch(text)
    who, what = (request["who"].lower(), request["what"]) if request else ("user", "")
    wanted = _resolved(slots_of(what), {**aliases, "user": who})
    words = frozenset() if wanted else stems(what) - stems(f"user {who}")
    vague = QUESTION.match(what)
    named = [entry for entry in entries if is_requested(text, entry.text)]
    if what:
        same = f" {same_text(what)}"
        says = [e for e in entries if _says(_resolved(slots_of(e.text), aliases), wanted)]
        named += [entry for entry in entries if _key(entry.text).endswith(same)] + says
        named += [entry for entry in entries if words and words <= stems(entry.text)]
    if named and not (vague and len(set(map(id, named))) > 1):
        return Outcome.DELETE, f"asked to forget: {what or text}", None, named[0]
    reason = f"nothing stored matches the request to forget: {what or text}"
    return Outcome.NOOP, reason, None, None


def _says(slots: Sequence[Slot], wanted: Sequence[Slot]) -> bool:
    return bool(wanted) and all(
        any(w.relation == h.relation and w.subject == h.subject and w.positive is h.positive
            and w.key <= h.key for h in slots)
        for w in wanted
    )  # fmt: skip


def _aliases(entries: Sequence[Entry]) -> Aliases:
    """Names that mean another subject: "User's sister is Anna" makes the two one.

    If there are two sisters, neither name is an alias.
    """
    aliases: dict[str, set[str]] = {}
    for slot in (slot for entry in entries for slot in slots_of(entry.text)[:1] if slot.value):
        if slot.relation == "named":
            aliases.setdefault(slot.value.lower(), set()).add(slot.subject)
        elif slot.relation.startswith("has_") and relation_of(slot.relation).far == "person":
            kin = slot.relation.removeprefix("has_").replace("_", " ")
            aliases.setdefault(f"{slot.subject}'s {kin}", set()).add(slot.value.lower())
    return {name: min(same) for name, same in aliases.items() if len(same) == 1}


def _resolved(slots: Sequence[Slot], aliases: Aliases) -> tuple[Slot, ...]:
    return tuple(
        replace(slot, subject=aliases[slot.subject]) if slot.subject in aliases else slot
        for slot in slots
    )
