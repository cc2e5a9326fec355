"""Extraction of facts from messages, sentence by sentence; also requests to remember or forget.

Only explicit statements in user messages count. Questions, wishes, hypotheses and small talk give
no facts.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from itertools import islice
from typing import NamedTuple

from pipeline.adapters.model_rules.clauses import clauses, sentences, trim
from pipeline.adapters.model_rules.dates import Anchor, absolute, looks_back
from pipeline.adapters.model_rules.slots import same_text
from pipeline.adapters.model_rules.structure import structured
from pipeline.adapters.model_rules.subjects import Listener, clause_facts, in_voice
from pipeline.adapters.model_rules.topics import topics
from pipeline.domain.facts import Fact
from pipeline.domain.messages import Role, SourcedMessage
from pipeline.ports import ExtractionRequest

REMEMBER = re.compile(
    r"^(?:can you |could you )?(?:please )?(?:remember|note|keep in mind|bear in mind|make a note"
    r"|don't forget|do not forget|for future reference|save)\b[,:]? ?(?P<that>that\b)?[,:]? ?"
    r"(?P<body>.+)$",
    re.IGNORECASE,
)
FORGET = re.compile(
    r"^(?:you can |can you |could you |I want you to )?(?:please )?(?:forget|delete|erase"
    r"|stop remembering)"
    r"(?: (?:everything|anything|what) (?:I|you) (?:said|told you|know)| the fact)?"
    r"(?: (?:that|about))? (?P<body>.+)$",
    re.IGNORECASE,
)
NOTHING = re.compile(r"^(?:it|that|this|about it|everything|all|me|to .+|how .+)$", re.IGNORECASE)

# Limits of the input. 20,000 characters take 0.3 s for short sentences and 1.2 s in the worst known
# case (24 ms for a sentence of 400 characters); `decide` compares each pair of facts.
MOST_MESSAGE_CHARS = 20_000
MOST_BATCH_FACTS = 200
MOST_CPU_S = 2.0

ADVICE = "The turn is kept and searchable; set MEMLANE_LLM__MODEL to have a language model read it."
NOT_UNDERSTOOD = f"local/rules reads plain English statements only, and found none here. {ADVICE}"
TOO_LONG = (
    f"Too long for local/rules: it reads messages of up to {MOST_MESSAGE_CHARS:,} characters, and"
    f" {MOST_BATCH_FACTS} facts at a time. {ADVICE}"
)


class Budget:
    """CPU time limit of one batch.

    `exceeded`: True once text was skipped because of it. `event`: the event whose message is read,
    None for the context. `left_out`: the events with skipped text.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._ends_at = clock() + MOST_CPU_S
        self.exceeded = False
        self.event: int | None = None
        self.left_out: set[int] = set()

    def allows(self, content: str) -> bool:
        """True if the text may be read: it is short enough, and there is CPU time left."""
        if len(content) > MOST_MESSAGE_CHARS or self._clock() > self._ends_at:
            self.exceeded = True
            if self.event is not None:
                self.left_out.add(self.event)
            return False
        return True


class Extraction(NamedTuple):
    """Facts, the reason why a message gave none, and the events of which text was not read."""

    facts: tuple[Fact, ...]
    note: str
    left_out: tuple[int, ...] = ()


def extract_facts(
    request: ExtractionRequest, clock: Callable[[], float] = time.thread_time
) -> Extraction:
    """The facts of the user messages, in order and unique within an event; and a note.

    The note explains why a message gave no facts. `instructions.excludes` (comma-separated words)
    drops facts that contain one of them. Apart from it, only the list of categories is used.
    """
    budget = Budget(clock)
    facts = tuple(islice(_facts(request, budget), MOST_BATCH_FACTS + 1))
    left_out = budget.left_out
    if len(facts) > MOST_BATCH_FACTS:
        cut = facts[-1].source.event
        left_out |= {m.source.event for m in request.messages if m.source.event >= cut}
    too_long = budget.exceeded or len(facts) > MOST_BATCH_FACTS
    note = TOO_LONG if too_long else NOT_UNDERSTOOD
    return Extraction(facts[:MOST_BATCH_FACTS], note, tuple(sorted(left_out)))


def _facts(request: ExtractionRequest, budget: Budget) -> Iterator[Fact]:
    """The facts of all user messages, one after the other, as long as the budget allows."""
    seen: set[tuple[int, str]] = set()
    listeners: dict[str, Listener] = {}
    heard = [m.content for m in request.context if m.role is Role.USER]
    for sourced in request.messages:
        if sourced.message.role is not Role.USER:
            continue
        listener = _listener(listeners, sourced, heard, budget)
        budget.event = sourced.source.event
        for text in _canonical_sentences(sourced.message.content, listener, budget):
            key = (sourced.source.event, same_text(text))
            if key not in seen and not _excluded(text, request.instructions.excludes):
                seen.add(key)
                about = topics(text, request.instructions)
                name = sourced.message.name
                fact = Fact(text, sourced.source, Role.USER, about, speaker=name)
                yield structured(fact, sourced.said_at)


def _listener(
    known: dict[str, Listener], sourced: SourcedMessage, heard: list[str], budget: Budget
) -> Listener:
    """The speaker's listener, at the time of the message. A new one first reads the context."""
    name = " ".join((sourced.message.name or "").split()) or "User"
    day = sourced.said_at.date()
    if name not in known:
        budget.event = None
        known[name] = Listener(name, day)
        for content in heard:
            list(
                _canonical_sentences(content, known[name], budget)
            )  # only for the people it mentions; its facts are known already
    known[name].day = day
    return known[name]


def _excluded(text: str, excludes: str | None) -> bool:
    terms = [term.strip().lower() for term in re.split(r"[,;\n]", excludes or "")]
    return any(term and term in text.lower() for term in terms)


def _canonical_sentences(content: str, listener: Listener, budget: Budget) -> Iterator[str]:
    """The canonical sentences of one message, as long as the budget allows."""
    if not budget.allows(content):
        return
    for sentence in sentences(content):
        if not budget.allows(sentence.text):
            return
        for pattern, reader in ((FORGET, _forgotten), (REMEMBER, _remembered)):
            match = pattern.match(sentence.text)
            if match:
                yield from reader(match, listener)
                break
        else:
            if sentence.stated:
                yield from _stated(sentence.text, listener)


def _stated(text: str, listener: Listener) -> Iterator[str]:
    for clause in clauses(text):
        yield from clause_facts(clause, listener)


def _remembered(match: re.Match[str], listener: Listener) -> Iterator[str]:
    """The facts of a request to remember; the statement itself if no rule recognizes it."""
    body = trim(match["body"])
    if not match["that"] and re.match(
        r"(?:to|when|how|the time|me|it|this)\b", body, re.IGNORECASE
    ):
        return
    facts = list(_stated(body, listener))
    plain = in_voice(absolute(body, Anchor(listener.day, looks_back(body))), listener)
    if facts or not match["that"] or len(body.split()) < 3:
        yield from facts
    else:
        yield plain[:1].upper() + plain[1:]


def _forgotten(match: re.Match[str], listener: Listener) -> Iterator[str]:
    """A request to forget as a fact: "User asks to forget: likes jazz"."""
    body = trim(match["body"])
    if NOTHING.match(body):
        return
    facts = list(_stated(body, listener)) or [in_voice(body, listener)]
    for text in facts:
        what = text.removeprefix(listener.name + " ").strip()
        if what:
            yield f"{listener.name} asks to forget: {what}"
