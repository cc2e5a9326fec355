"""Decisions by slot: one value for each slot, polarity flips, retractions, repeats.

Facts are decided in order, against a working copy of the store. A fact that reverses an earlier one
of the batch replaces it: the earlier decision becomes NOOP, so no memory is changed twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations
from uuid import UUID

from pipeline.adapters.model_rules.clauses import NOT_STATED
from pipeline.adapters.model_rules.relations import is_single, traits_of
from pipeline.adapters.model_rules.statements import Slot, aliases, slots_of, stems
from pipeline.domain.consolidation.conservation import matter, same_statement
from pipeline.domain.curation import CuratedMemory, CurationRequest, Proposal
from pipeline.domain.facts import Decision, Fact, Neighbour, Outcome
from pipeline.domain.suggestions import SuggestionKind
from pipeline.text.equality import same_text
from pipeline.text.statements import polarity, slots
from pipeline.text.statements.endings import is_requested
from pipeline.text.statements.forget_requests import asks_to_forget
from pipeline.text.statements.values import stated

# Most memories that the facts of a batch are compared with, nearest first.
MOST_COMPARED = 200
# The words before the head of a value: "playing cricket with friends" is about cricket.
LEAD = re.compile(
    r"^(?:to )?(?:(?:play|do|watch|eat|drink|go|read)(?:ing)?|listen(?:ing)? to|mak(?:e|ing)) "
)
# The end of a job that is not named.
NO_JOB = re.compile(
    r" (?:their|his|her) (?:job|position)\b"
    r"| (?:was )?(?P<how>(?:fired|laid off|made redundant|(?<!was )resigned)(?: (?:on|in) .+)?)$"
)
_key = lru_cache(maxsize=4096)(same_text)
NEWS = "not known yet, and contradicts nothing stored"
# Effect of a fact on a memory: its rank, of which the highest wins, its reason, the text to store.
Effect = tuple[int, str, str]
DETAIL, CHANGE, FLIP, KNOWN = range(4)


@dataclass(frozen=True, slots=True)
class Entry:
    """A memory of the working store, or (`memory_id` None, `fact` set) one that the batch adds.

    `fact`: number of the fact that wrote the text. `before`: the entry as it was stored.
    """

    text: str
    memory_id: UUID | None = None
    fact: int | None = None
    before: Entry | None = None


# Outcome, reason and text of a decision, and the entry that it changes.
Judgement = tuple[Outcome, str, str | None, Entry | None]


def decide_facts(facts: Sequence[Fact], neighbours: Sequence[Neighbour]) -> tuple[Decision, ...]:
    """One decision for each fact, in order; targets from `neighbours`, each changed only once."""
    nearest = sorted(neighbours, key=lambda n: (-n.similarity, str(n.memory_id)))
    batch = _Batch([Entry(memory.text, memory.memory_id) for memory in nearest[:MOST_COMPARED]])
    for number, fact in enumerate(facts):
        batch.take(number, fact.text)
    return tuple(batch.decisions[number] for number in range(len(facts)))


@dataclass(slots=True)
class _Batch:
    """The working store, and the decisions so far."""

    entries: list[Entry]
    decisions: dict[int, Decision] = field(default_factory=dict)

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
        _, extracted, what = text.partition(" asks to forget: ")
        if extracted or asks_to_forget(text):
            return self._forget(text, what)
        stored = (slot for entry in self.entries for slot in slots_of(entry.text)[:1])
        names = aliases((slot.subject, slot.relation, slot.value) for slot in stored)
        effects = ((self._effect_on(text, entry, names), entry) for entry in self.entries)
        known = [(effect, entry) for effect, entry in effects if effect]
        if not known:
            single = [slot for slot in slots_of(text)[:1] if is_single(slot.relation)]
            about = [_label(slot.relation) for slot in single if slot.of_kind]
            reason = f"nothing stored yet about the {about[0]}" if about else NEWS
            return Outcome.ADD, reason, text, None
        (rank, reason, written), entry = max(known, key=lambda pair: pair[0][0])
        if rank == KNOWN:
            return Outcome.NOOP, reason, None, entry
        return Outcome.UPDATE, reason, written, entry

    def _effect_on(self, text: str, entry: Entry, names: Mapping[str, str]) -> Effect | None:
        """Effect of a statement on one entry, or on the text that the batch replaced in it."""
        effect = _effect(text, entry.text, names)
        if effect or not entry.before:
            return effect
        # "I left Munich. I live in Vienna now." is one change of residence, not an end and a start.
        effect = _effect(text, entry.before.text, names)
        return effect if effect and effect[0] == CHANGE else None

    def _forget(self, text: str, what: str) -> Judgement:
        """Delete the memory that a request names, or that has all of its words."""
        words = stems(what) - {"user"}
        named = [entry for entry in self.entries if is_requested(text, entry.text)]
        named += [entry for entry in self.entries if words and words <= stems(entry.text)]
        # "What I like" names a memory only if there is no other.
        if named and not (NOT_STATED.match(what) and len(set(map(id, named))) > 1):
            return Outcome.DELETE, f"asked to forget: {what or text}", None, named[0]
        reason = f"nothing stored matches the request to forget: {what or text}"
        return Outcome.NOOP, reason, None, None


def _effect(text: str, old_text: str, names: Mapping[str, str]) -> Effect | None:
    """Effect of a statement on a stored one; None if they are unrelated."""
    if _key(text) == _key(old_text):
        return (KNOWN, "already known", text)
    new, old = slots_of(text), slots_of(old_text)
    who = {slot.subject: names.get(slot.subject, slot.subject) for slot in (*new, *old)}
    pairs = [(n, o) for n in new for o in old if who[n.subject] == who[o.subject]]
    flip = next((n for n, o in pairs if _flips(n, o)), None)
    if flip:
        start = "true again, after" if flip.positive else "no longer true"
        match = NO_JOB.search(text) if flip.relation == "works" and not flip.value else None
        subject, verb, rest = old_text.rstrip(".").partition(" works ")
        if match and verb:
            # "Quit their job" names the job that is stored.
            aside = f" ({match['how']})" if match["how"] else ""
            text = f"{subject} no longer{verb}{rest}{aside}"
        return (FLIP, f"{start}: {old_text}", text)
    met = [(n, o) for n, o in pairs if n.relation == o.relation and n.positive is o.positive]
    bearings = [_bearing(n, o) for n, o in met]
    is_known = set(bearings) == {KNOWN}
    if is_known and len(met) == len(new):
        return (KNOWN, "already known", text)
    job = _whole_job(text, new, old) if pairs else None
    if CHANGE in bearings:
        n, o = met[bearings.index(CHANGE)]
        values = (o.when, n.when) if n.relation == "plans" else (o.value, n.value)
        bare = [re.sub(r"^(?:an?|the|on|in|around) ", "", value) for value in values]
        change = f"{_label(n.relation)} changed from {bare[0]} to {bare[1]}"
        return (CHANGE, change, job or text)
    if job or is_known or (DETAIL in bearings and len(old) <= len(new)):
        return (DETAIL, f"adds detail to: {old_text}", job or text)
    return None


def _label(relation: str) -> str:
    """Name of a relation in a reason: "residence", "favourite colour", "sister"."""
    plain = re.sub(r"^(?:has|attribute|scheduled)_", "", relation)
    name = slots.attribute_name(plain) if plain == relation else plain
    return traits_of(relation).label or name.replace("_", " ")


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
    more = "(promoted" in text or known.get("works_as", title).key <= title.key
    joins = employer.of_kind if len(known) == 1 else title is new[0] and more
    aside = "".join(text.partition(" (")[1:])
    return f"{who} works as {title.value} at {employer.value}{aside}" if joins else None


def _flips(new: Slot, old: Slot) -> bool:
    """True for opposite polarity about the same value.

    A negative statement without a value is about any value; "dislikes pizza with ham" is not about
    "pizza".
    """
    positive, negative = (new, old) if new.positive else (old, new)
    if new.positive is old.positive or positive.relation not in negative.ends:
        return False
    brief = negative is new and traits_of(new.relation).brief and new.key <= old.key
    return brief or not negative.key or negative.key == positive.key


def _bearing(new: Slot, old: Slot) -> int | None:
    """Effect of a value on a stored value of the same subject, relation and polarity."""
    within, beyond = new.key <= old.key, old.key <= new.key
    if new.relation == "plans" and new.when not in ("", old.when):
        return (CHANGE if old.when else DETAIL) if within and beyond else None
    if within and beyond:
        # Tea over coffee, coffee over tea.
        first, known = (stems(slot.value.split(" over ")[0]) for slot in (new, old))
        turned = new.relation == "prefers" and first != known
        return CHANGE if turned else KNOWN
    single = is_single(new.relation)
    if within or beyond:
        # "A dog named Rollo" is more about "a dog", but "green tea" is another thing than "tea".
        short, long = sorted((LEAD.sub("", slot.value.lower()) for slot in (new, old)), key=len)
        is_same = single or long.startswith(f"{short} ".lstrip())
        return (KNOWN if within else DETAIL) if is_same else None
    clash = single and new.positive and new.of_kind and old.of_kind
    return CHANGE if clash else None


def curate(request: CurationRequest) -> tuple[Proposal, ...]:
    """Proposals in the order of the groups; each memory is named at most once."""
    used: set[int] = set()
    proposals = []
    for group in request.groups:
        for proposal in _of_group(request.memories, sorted(group)):
            if used.isdisjoint(proposal.targets):
                used.update(proposal.targets)
                proposals.append(proposal)
    return tuple(proposals)


def _of_group(memories: Sequence[CuratedMemory], group: Sequence[int]) -> Iterator[Proposal]:
    """Yield the proposals about the memories of one group."""
    for pair in combinations(group, 2):
        this, that = sorted((memories[at] for at in pair), key=lambda memory: memory.said_at)
        cardinality = that.cardinality or this.cardinality
        single = slots.single_valued(that.slot, cardinality) and this.said_at != that.said_at
        taken_back = any(polarity.takes_back(memory.text) for memory in (this, that))
        if same_statement(this.text, that.text):
            text, reason = memories[pair[0]].text, "The same statement twice."
            yield Proposal(SuggestionKind.COMBINE, pair, text, reason)
        elif single and not taken_back and (this.slot, this.speaker) == (that.slot, that.speaker):
            reason = "The later statement gives the attribute another value."
            yield Proposal(SuggestionKind.UPDATE, pair, that.text, reason)
    for at in group:
        text = memories[at].text
        if not matter(text) and not stated(text).values:
            yield Proposal(SuggestionKind.DELETE, (at,), None, "It states nothing.")
