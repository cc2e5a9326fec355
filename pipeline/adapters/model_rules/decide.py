"""Decisions by slot: one value for each slot, polarity flips, retractions, repeats.

Facts are decided in order, against a working copy of the store. If a fact reverses an earlier fact
of the batch, it replaces that one: the earlier decision becomes NOOP, so no memory is the target of
two changes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from uuid import UUID

from pipeline.adapters.model_rules.slots import (
    WORK,
    Slot,
    ends_of,
    is_single,
    same_text,
    slots_of,
    stems,
)
from pipeline.domain.facts import Decision, Fact, Neighbour, Outcome

# Names of slots in reasons.
LABELS = {
    "lives_in": "residence", "works_as": "job", "works_at": "employer", "works_in": "field of work",
    "named": "name", "follows_diet": "diet", "relationship_status": "relationship status",
    "is_aged": "age", "has_birthday": "birthday", "is_from": "origin", "drives": "car",
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


class Bearing(IntEnum):
    """Effect of a fact on a memory; a higher value wins over a lower one."""

    DETAIL = 1
    CHANGE = 2
    FLIP = 3
    KNOWN = 4
    EQUAL = 5


@dataclass(frozen=True, slots=True)
class Entry:
    """A memory of the working store, or (`memory_id` None, `fact` set) one that the batch adds.

    `fact`: number of the fact that wrote the text. `before`: the entry as it was stored.
    """

    text: str
    similarity: float = 0.0
    memory_id: UUID | None = None
    fact: int | None = None
    before: Entry | None = None


@dataclass(frozen=True, slots=True)
class Judgement:
    """Outcome of one fact: the reason, the text to store, and the entry that it changes."""

    outcome: Outcome
    reason: str
    text: str | None = None
    entry: Entry | None = None


Found = tuple[Bearing, str, str]
Aliases = dict[str, str]


def decide_facts(facts: Sequence[Fact], neighbours: Sequence[Neighbour]) -> tuple[Decision, ...]:
    """One decision for each fact, in order; targets from `neighbours`, each changed only once.

    Facts beyond MOST_PAIRS comparisons are added without one, and their reason says so.
    """
    batch = _Batch(neighbours)
    for number, fact in enumerate(facts):
        if batch.pairs < MOST_PAIRS:
            batch.take(number, fact.text)
        else:
            batch.add(number, fact.text)
    return tuple(batch.decisions[number] for number in range(len(facts)))


class _Batch:
    """The working store, and the decisions so far."""

    def __init__(self, neighbours: Sequence[Neighbour]) -> None:
        # Nearest first: similarity decides only between memories with the same bearing.
        nearest = sorted(neighbours, key=lambda n: (-n.similarity, str(n.memory_id)))
        self.entries = [Entry(n.text, n.similarity, n.memory_id) for n in nearest]
        self.decisions: dict[int, Decision] = {}
        # Comparisons so far.
        self.pairs = 0

    def add(self, number: int, text: str) -> None:
        """Add one fact without a comparison; a request to forget is kept as a turn only."""
        forget = any(slot.relation == "forget" for slot in slots_of(text))
        if forget:
            self.decisions[number] = Decision(number, Outcome.NOOP, NOT_SOUGHT)
        else:
            self.decisions[number] = Decision(number, Outcome.ADD, NOT_COMPARED, text)

    def take(self, number: int, text: str) -> None:
        """Decide one fact; first reverse every earlier decision of the batch that it overturns."""
        judgement = self._judge(text)
        while (
            judgement.outcome is not Outcome.NOOP
            and judgement.entry
            and judgement.entry.fact is not None
        ):
            self._take_back(judgement.entry, text)
            # A text merged from both ("a nurse" and "at Charité") replaces the earlier fact.
            merged = judgement.text if judgement.outcome is Outcome.UPDATE else None
            judgement = self._judge(merged or text)
        self._apply(number, judgement)

    def _judge(self, text: str) -> Judgement:
        self.pairs += len(self.entries)
        return judge(text, self.entries)

    def _take_back(self, entry: Entry, by: str) -> None:
        """Make the earlier fact's decision a NOOP, and restore the entry that it changed."""
        assert entry.fact is not None
        self.decisions[entry.fact] = Decision(
            entry.fact, Outcome.NOOP, f"superseded later in the same batch: {by}"
        )
        self._replace(entry, entry.before)

    def _apply(self, number: int, judgement: Judgement) -> None:
        """Record the decision, and apply it to the working store."""
        entry = judgement.entry
        target = entry.memory_id if entry else None
        reason = judgement.reason
        if judgement.outcome is Outcome.NOOP and entry and entry.fact is not None:
            reason, target = f"same as fact {entry.fact} of this batch", None
        self.decisions[number] = Decision(number, judgement.outcome, reason, judgement.text, target)
        match judgement.outcome:
            case Outcome.ADD:
                self.entries.append(Entry(judgement.text or "", fact=number))
            case Outcome.UPDATE if entry:
                after = Entry(
                    judgement.text or "", entry.similarity, entry.memory_id, number, entry
                )
                self._replace(entry, after)
            case Outcome.DELETE if entry:
                self._replace(entry, None)

    def _replace(self, entry: Entry, other: Entry | None) -> None:
        at = next(i for i, known in enumerate(self.entries) if known is entry)
        self.entries[at : at + 1] = [other] if other else []


def judge(text: str, entries: Sequence[Entry]) -> Judgement:
    """Effect of one statement on a store: the highest bearing wins, then the nearest entry."""
    aliases = _aliases(entries)
    new = _resolved(slots_of(text), aliases)
    if new and new[0].relation == "forget":
        return _forget(new[0], entries, aliases)
    best: tuple[Found, Entry] | None = None
    for entry in entries:
        effect = _effect_on(text, new, entry, aliases)
        if effect and (best is None or effect[0] > best[0][0]):
            best = (effect, entry)
    if best is None:
        return Judgement(Outcome.ADD, _news(new), text)
    (bearing, reason, written), entry = best
    if bearing >= Bearing.KNOWN:
        return Judgement(Outcome.NOOP, reason, None, entry)
    return Judgement(Outcome.UPDATE, reason, written, entry)


def _effect_on(text: str, new: Sequence[Slot], entry: Entry, aliases: Aliases) -> Found | None:
    """Effect of a statement on one entry, or on the text that the batch replaced in it."""
    effect = compare(text, new, entry.text, _resolved(slots_of(entry.text), aliases))
    if effect or not entry.before:
        return effect
    # "I left Munich. I live in Vienna now." is one change of residence, not an end and a start.
    stored = entry.before.text
    effect = compare(text, new, stored, _resolved(slots_of(stored), aliases))
    return effect if effect and effect[0] is Bearing.CHANGE else None


def _news(slots: Sequence[Slot]) -> str:
    if slots and is_single(slots[0].relation) and slots[0].of_kind:
        return f"nothing stored yet about the {label(slots[0].relation)}"
    return "not known yet, and contradicts nothing stored"


def label(relation: str) -> str:
    """Name of a relation in a reason: "residence", "favourite colour", "sister"."""
    plain = relation.removeprefix("has_").removeprefix("attribute_").removeprefix("scheduled_")
    return LABELS.get(relation, plain.replace("_", " "))


def compare(text: str, new: Sequence[Slot], old_text: str, old: Sequence[Slot]) -> Found | None:
    """Bearing of a statement on a stored one, reason, and text to store; None if unrelated."""
    if same_text(text) == same_text(old_text):
        return Bearing.EQUAL, "already known", text
    pairs = [(n, o) for n in new for o in old if n.subject == o.subject]
    flip = next(((n, o) for n, o in pairs if _flips(n, o)), None)
    if flip:
        return Bearing.FLIP, _flip_reason(flip[0], old_text), _flip_text(text, flip[0], old_text)
    met = [(n, o) for n, o in pairs if n.relation == o.relation and n.positive is o.positive]
    if met and len({n.relation for n, _ in met}) == len(new) and all(_knows(n, o) for n, o in met):
        return Bearing.KNOWN, "already known", text
    change = next(((n, o) for n, o in met if _changes(n, o)), None)
    if change:
        return Bearing.CHANGE, _change_reason(*change), _with_employer(text, new, old)
    return _detail(text, new, old_text, old, met)


def _flips(new: Slot, old: Slot) -> bool:
    """True for opposite polarity about the same value.

    A negative statement without a value is about any value.
    """
    if new.positive is old.positive:
        return False
    positive, negative = (new, old) if new.positive else (old, new)
    if positive.relation not in ends_of(negative.relation):
        return False
    if not negative.key or negative.key == positive.key:
        return True
    # "sold the Tesla" is about "a red Tesla"; "dislikes pizza with ham" is not about "pizza".
    narrow = negative.relation in ("owns", "drives", "works_at", "works_as", "lives_in", "left")
    fits = negative.key <= positive.key and (narrow or negative.core == positive.core)
    return fits and negative is new


def _flip_reason(new: Slot, old_text: str) -> str:
    return f"{'true again, after' if new.positive else 'no longer true'}: {old_text}"


def _flip_text(text: str, new: Slot, old_text: str) -> str:
    """The text to store after a flip.

    "quit their job" names the job if "works as a nurse" is stored.
    """
    if new.relation == "works" and not new.value and " their job" in text:
        subject, verb, rest = old_text.rstrip(".").partition(" works ")
        return f"{subject} no longer{verb}{rest}" if verb else text
    return text


def _knows(new: Slot, old: Slot) -> bool:
    """True if the stored value includes the new one, with its date."""
    if new.relation == "plans":
        return new.key <= old.key and (not new.when or new.when == old.when)
    if new.key == old.key:
        return not _turned(new, old)
    return bool(new.key < old.key) and (
        is_single(new.relation) or new.core == old.core or not new.key
    )


def _alike(new: Slot, old: Slot) -> bool:
    """True for the same plan in more or fewer words."""
    return new.core == old.core and (new.key <= old.key or old.key <= new.key)


def _changes(new: Slot, old: Slot) -> bool:
    """True if the new value replaces the stored one."""
    if new.relation == "plans":
        moved = bool(old.when) and bool(new.when) and new.when != old.when
        return _alike(new, old) and moved
    if new.relation == "prefers":
        return _turned(new, old)
    clash = not (new.key <= old.key or old.key <= new.key)
    return new.positive and is_single(new.relation) and clash and new.of_kind and old.of_kind


def _turned(new: Slot, old: Slot) -> bool:
    """True for the same two things in reverse order: tea over coffee, coffee over tea."""
    first, known = (stems(re.split(r" (?:over|to) ", slot.value)[0]) for slot in (new, old))
    return new.relation == "prefers" and new.key == old.key and first != known


def _change_reason(new: Slot, old: Slot) -> str:
    before, after = (old.when, new.when) if new.relation == "plans" else (old.value, new.value)
    return f"{label(new.relation)} changed from {_in_words(before)} to {_in_words(after)}"


def _in_words(value: str) -> str:
    """A value inside a sentence: without article or "on"; "meat" as the diet that it means."""
    bare = re.sub(r"^(?:an?|the|on|in|around) ", "", value)
    return "eating meat" if bare == "meat" else bare


def _detail(
    text: str,
    new: Sequence[Slot],
    old_text: str,
    old: Sequence[Slot],
    met: Sequence[tuple[Slot, Slot]],
) -> Found | None:
    """The bearing of a more detailed text, or of the other half of a job; None otherwise."""
    fuller = [(n, o) for n, o in met if _fuller(n, o)]
    if fuller and (len(old) <= len(new) or fuller[0][0].relation == "works_as"):
        return Bearing.DETAIL, f"adds detail to: {old_text}", _with_employer(text, new, old)
    joined = _joined_work(new, old)
    if joined:
        part, whole = joined
        return Bearing.DETAIL, f"adds the {label(part.relation)}: {part.value}", whole
    if met and len(new) > len(old) and all(_knows(n, o) for n, o in met):
        return Bearing.DETAIL, f"adds detail to: {old_text}", text
    return None


def _with_employer(text: str, new: Sequence[Slot], old: Sequence[Slot]) -> str:
    """The text with the stored employer, for a promotion or a more detailed job title."""
    jobs = {slot.relation: slot for slot in old if slot.positive}
    if [slot.relation for slot in new] != ["works_as"] or set(jobs) != {"works_as", "works_at"}:
        return text
    if "(promoted" not in text and not jobs["works_as"].key <= new[0].key:
        return text
    head, aside, rest = text.partition(" (")
    return f"{head} at {jobs['works_at'].value}{aside}{rest}"


def _fuller(new: Slot, old: Slot) -> bool:
    """True if the new value has all words of the stored one, and more."""
    if new.relation == "plans":
        return _alike(new, old) and bool(new.when) and not old.when
    alike = is_single(new.relation) or new.core == old.core or not old.key
    return alike and old.key < new.key


def _joined_work(new: Sequence[Slot], old: Sequence[Slot]) -> tuple[Slot, str] | None:
    """The new half of a job ("works at Charité" next to "works as a nurse") and the full text."""
    if len(new) != 1 or len(old) != 1 or new[0].subject != old[0].subject:
        return None
    parts = {slot.relation: slot for slot in (*old, *new) if slot.positive and slot.value}
    if set(parts) != {"works_as", "works_at"} or not set(parts) <= WORK:
        return None
    subject = new[0].subject
    who = subject if subject.split("'")[0] != "user" else "User" + subject[4:]
    who = who[:1].upper() + who[1:]
    whole = f"{who} works as {parts['works_as'].value} at {parts['works_at'].value}"
    return new[0], whole


def _forget(ask: Slot, entries: Sequence[Entry], aliases: Aliases) -> Judgement:
    """Delete the memory that a retraction names: by its slot, else by all words of the request."""
    wanted = _resolved(slots_of(ask.value), {**aliases, "user": ask.subject})
    for entry in entries:
        slots = _resolved(slots_of(entry.text), aliases)
        if same_text(entry.text).endswith(f" {same_text(ask.value)}") or _says(slots, wanted):
            return Judgement(Outcome.DELETE, f"asked to forget: {ask.value}", None, entry)
    words = ask.key
    for entry in entries:
        if words and not wanted and words <= stems(entry.text):
            return Judgement(Outcome.DELETE, f"asked to forget: {ask.value}", None, entry)
    return Judgement(Outcome.NOOP, f"nothing stored matches the request to forget: {ask.value}")


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
    for entry in entries:
        for slot in slots_of(entry.text)[:1]:
            if slot.relation == "named" and slot.value:
                aliases.setdefault(slot.value.lower(), set()).add(slot.subject)
            elif (
                slot.relation.startswith("has_") and slot.value and slot.relation != "has_birthday"
            ):
                kin = slot.relation.removeprefix("has_").replace("_", " ")
                aliases.setdefault(f"{slot.subject}'s {kin}", set()).add(slot.value.lower())
    return {name: min(same) for name, same in aliases.items() if len(same) == 1}


def _resolved(slots: Sequence[Slot], aliases: Aliases) -> tuple[Slot, ...]:
    return tuple(
        replace(slot, subject=aliases[slot.subject]) if slot.subject in aliases else slot
        for slot in slots
    )
