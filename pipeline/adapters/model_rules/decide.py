"""Decisions by slot: one value for each slot, polarity flips, retractions, repeats.

Facts are decided in order, against a working copy of the store. If a fact reverses an earlier fact
of the batch, it replaces that one: the earlier decision becomes NOOP, so no memory is the target of
two changes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple
from uuid import UUID

from pipeline.adapters.model_rules.relations import ENDS, relation_of
from pipeline.adapters.model_rules.statements import Slot, aliases, slots_of, stems
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
    aliases: Mapping[str, str] = field(default_factory=dict)

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
            self._replace(entry, Entry(written, target, number, entry) if written else None)

    def _replace(self, entry: Entry | None, other: Entry | None) -> None:
        """Put another entry, or none, in the place of one; without one, at the end."""
        at = next((i for i, known in enumerate(self.entries) if known is entry), len(self.entries))
        self.entries[at : at + 1] = [other] if other else []

    def _judge(self, text: str) -> Judgement:
        """Effect of one statement on the store: the highest bearing, then the nearest entry."""
        self.pairs += len(self.entries)
        self.aliases = aliases(
            (slot.subject, slot.relation, slot.value)
            for entry in self.entries
            for slot in slots_of(entry.text)[:1]
        )
        if _asks(text):
            return self._forget(text)
        effects = ((self._effect_on(text, entry), entry) for entry in self.entries)
        known = ((effect, entry) for effect, entry in effects if effect)
        best = max(known, key=lambda pair: pair[0].bearing, default=None)
        if best is None:
            new = slots_of(text)
            single = new and relation_of(new[0].relation).single and new[0].of_kind
            reason = f"nothing stored yet about the {_label(new[0].relation)}" if single else NEWS
            return Outcome.ADD, reason, text, None
        effect, entry = best
        if effect.bearing >= Bearing.KNOWN:
            return Outcome.NOOP, effect.reason, None, entry
        return Outcome.UPDATE, effect.reason, effect.text, entry

    def _effect_on(self, text: str, entry: Entry) -> Comparison | None:
        """Effect of a statement on one entry, or on the text that the batch replaced in it."""
        effect = _effect(text, self._slots(text), entry.text, self._slots(entry.text))
        if effect or not entry.before:
            return effect
        # "I left Munich. I live in Vienna now." is one change of residence, not an end and a start.
        stored = entry.before.text
        effect = _effect(text, self._slots(text), stored, self._slots(stored))
        return effect if effect and effect.bearing is Bearing.CHANGE else None

    def _forget(self, text: str) -> Judgement:
        """Delete the memory that a request names: by its slot, else by all words of the request."""
        request = REQUEST.fullmatch(text)
        who, what = (request["who"].lower(), request["what"]) if request else ("user", "")
        wanted = [slot.renamed({"user": who}).renamed(self.aliases) for slot in slots_of(what)]
        words = frozenset() if wanted else stems(what) - stems(f"user {who}")
        named = [entry for entry in self.entries if is_requested(text, entry.text)]
        if what:
            same = f" {same_text(what)}"
            named += [e for e in self.entries if _key(e.text).endswith(same)]
            named += [e for e in self.entries if wanted and _states(self._slots(e.text), wanted)]
            named += [e for e in self.entries if words and words <= stems(e.text)]
        if named and not (QUESTION.match(what) and len(set(map(id, named))) > 1):
            return Outcome.DELETE, f"asked to forget: {what or text}", None, named[0]
        reason = f"nothing stored matches the request to forget: {what or text}"
        return Outcome.NOOP, reason, None, None

    def _slots(self, text: str) -> list[Slot]:
        """The slots of a sentence, each with the name of its subject that the store knows."""
        return [slot.renamed(self.aliases) for slot in slots_of(text)]


def _asks(text: str) -> bool:
    return REQUEST.fullmatch(text) is not None or asks_to_forget(text)


def _states(slots: Sequence[Slot], wanted: Sequence[Slot]) -> bool:
    """True if each wanted slot is among the slots, with the same words or more."""

    def is_stated(sought: Slot, slot: Slot) -> bool:
        same = replace(sought, value="", when="") == replace(slot, value="", when="")
        return same and sought.key <= slot.key

    return all(any(is_stated(sought, slot) for slot in slots) for sought in wanted)


def _label(relation: str) -> str:
    """Name of a relation in a reason: "residence", "favourite colour", "sister"."""
    plain = re.sub(r"^(?:has|attribute|scheduled)_", "", relation)
    return LABELS.get(relation, plain.replace("_", " "))


def _effect(
    text: str, new: Sequence[Slot], old_text: str, old: Sequence[Slot]
) -> Comparison | None:
    """Effect of a statement on a stored one; None if they are unrelated."""
    if _key(text) == _key(old_text):
        return Comparison(Bearing.EQUAL, "already known", text)
    pairs = [(n, o) for n in new for o in old if n.subject == o.subject]
    flip = next((n for n, o in pairs if _flips(n, o)), None)
    if flip:
        start = "true again, after" if flip.positive else "no longer true"
        return Comparison(Bearing.FLIP, f"{start}: {old_text}", _flip_text(text, flip, old_text))
    met = [(n, o) for n, o in pairs if n.relation == o.relation and n.positive is o.positive]
    bearings = [_bearing(n, o) for n, o in met]
    is_known = set(bearings) == {Bearing.KNOWN}
    if is_known and len(met) == len(new):
        return Comparison(Bearing.KNOWN, "already known", text)
    job = _whole_job(text, new, old) if pairs else None
    if Bearing.CHANGE in bearings:
        n, o = met[bearings.index(Bearing.CHANGE)]
        before, after = (o.when, n.when) if n.relation == "plans" else (o.value, n.value)
        change = f"changed from {_in_words(before)} to {_in_words(after)}"
        return Comparison(Bearing.CHANGE, f"{_label(n.relation)} {change}", job or text)
    if job or is_known or (Bearing.DETAIL in bearings and len(old) <= len(new)):
        return Comparison(Bearing.DETAIL, f"adds detail to: {old_text}", job or text)
    return None


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


def _bearing(new: Slot, old: Slot) -> Bearing | None:
    """Effect of a value on a stored value of the same subject, relation and polarity."""
    single, same_core = relation_of(new.relation).single, new.core == old.core
    within, beyond = new.key <= old.key, old.key <= new.key
    if new.relation == "plans":
        if new.when in ("", old.when):
            return Bearing.KNOWN if within else None
        if not same_core or not (within or beyond):
            return None
        # The same plan, in more or fewer words, has a date or another one.
        return Bearing.CHANGE if old.when else Bearing.DETAIL
    if within and beyond:
        # Tea over coffee, coffee over tea.
        first, known = (stems(slot.value.split(" over ")[0]) for slot in (new, old))
        turned = new.relation == "prefers" and first != known
        return Bearing.CHANGE if turned else Bearing.KNOWN
    if within or beyond:
        alike = single or same_core or not new.key & old.key
        return (Bearing.KNOWN if within else Bearing.DETAIL) if alike else None
    clash = single and new.positive and new.of_kind and old.of_kind
    return Bearing.CHANGE if clash else None


def _in_words(value: str) -> str:
    """A value inside a sentence: without article or "on"; "meat" as the diet that it means."""
    bare = re.sub(r"^(?:an?|the|on|in|around) ", "", value)
    return "eating meat" if bare == "meat" else bare


def _whole_job(text: str, new: Sequence[Slot], old: Sequence[Slot]) -> str | None:
    """The text of a job with its stored other half; None if it is another job.

    The employer stays after a promotion, and for a title in more detail.
    """
    known = {slot.relation: slot for slot in old if slot.positive and slot.value}
    parts = known | {slot.relation: slot for slot in new if slot.positive and slot.value}
    who, works, _ = text.partition(" works ")
    if set(parts) != {"works_as", "works_at"} or len(new) != 1 or not works:
        return None
    title, employer = parts["works_as"], parts["works_at"]
    if len(known) == 2:
        is_same = title is new[0] and ("(promoted" in text or known["works_as"].key <= title.key)
    else:
        is_same = new[0] in (title, employer) and employer.of_kind
    aside = "".join(text.partition(" (")[1:])
    return f"{who} works as {title.value} at {employer.value}{aside}" if is_same else None
