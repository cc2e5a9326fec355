"""Extraction of facts from messages, sentence by sentence; also requests to remember or forget.

Only explicit statements in user messages count. Questions, wishes, hypotheses and small talk give
no facts.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from pipeline.adapters.model_rules.clauses import clauses, sentences, trim
from pipeline.adapters.model_rules.dates import lift
from pipeline.adapters.model_rules.fill import topics
from pipeline.adapters.model_rules.relations import relation_of
from pipeline.adapters.model_rules.statements import slots_of
from pipeline.adapters.model_rules.subjects import USER, Listener, clause_facts, in_voice, signed
from pipeline.domain.facts import Fact, MemoryType, memory_type
from pipeline.domain.messages import Role, SourcedMessage
from pipeline.domain.usage import Answer, Usage
from pipeline.ports import ExtractionRequest
from pipeline.text.equality import same_text
from pipeline.text.slots import attribute_name, is_the_user
from pipeline.text.when import dated

# A request, and what it is about.
ASKED = re.compile(
    r"(?:(?:you can|can you|could you|I want you to) )?(?:please )?"
    r"(?:(?P<forget>forget|delete|erase|stop remembering)(?: (?:everything|anything|what) (?:I|you)"
    r" (?:said|told you|know)| the fact)?(?: (?:that|about))?"
    r"|(?:remember|note|keep in mind|bear in mind|make a note|don't forget|do not forget|save"
    r"|for future reference)\b[,:]?(?P<that> that\b)?)[,:]? (?P<body>.+)",
    re.IGNORECASE,
)
# Objects of requests that name nothing: "forget it", "remember to buy milk".
NOTHING = re.compile("(?:about )?it|that|this|everything|all|me|(?:to|how|when) .+", re.IGNORECASE)

# No call and no cost: receipts show zeros instead of empty fields.
USAGE = Usage(model="local/rules", calls=0)
# Limits of the input. 20,000 characters take 0.3 s for short sentences and 1.2 s in the worst known
# case; `decide` compares each pair of facts. The context only names people, and has less time.
MOST_MESSAGE_CHARS = 20_000
MOST_BATCH_FACTS = 200
MOST_CPU_S, MOST_CONTEXT_CPU_S = 2.0, 0.5

ADVICE = "The turn is kept and searchable; set MEMLANE_LLM__MODEL to have a language model read it."
NOT_UNDERSTOOD = f"local/rules reads plain English statements only, and found none here. {ADVICE}"
TOO_LONG = (
    f"Too long for local/rules: it reads messages of up to {MOST_MESSAGE_CHARS:,} characters, and"
    f" {MOST_BATCH_FACTS} facts at a time. {ADVICE}"
)


@dataclass(slots=True)
class Budget:
    """CPU time of a batch, up to `ends_at` of `clock`; `context_s` of it are for the context.

    `is_cut`: the last text was not read to its end.
    """

    clock: Callable[[], float]
    ends_at: float
    context_s: float = MOST_CONTEXT_CPU_S
    is_cut: bool = False

    def sentences(self, content: str) -> Iterator[tuple[str, bool]]:
        """The sentences of a text; none, or no more, if it is too long or the time is up."""
        self.is_cut = len(content) > MOST_MESSAGE_CHARS
        for sentence in () if self.is_cut else sentences(content):
            self.is_cut = self.clock() > self.ends_at
            if self.is_cut:
                return
            yield sentence

    def hear(self, context: Sequence[str], listener: Listener) -> None:
        """Meet the people that the context mentions, in time of its own; its facts are known."""
        started = self.clock()
        own = Budget(self.clock, started + self.context_s)
        for content in context:
            for sentence in own.sentences(content):
                list(_texts(*sentence, listener))
        spent = self.clock() - started
        self.ends_at, self.context_s = self.ends_at + spent, self.context_s - spent


def extract_facts(
    request: ExtractionRequest, clock: Callable[[], float] = time.thread_time
) -> Answer[tuple[Fact, ...]]:
    """The facts of the user messages, in order and unique within an event; and a note.

    The note explains why a message gave no facts. `instructions.excludes` (comma-separated words)
    drops facts that contain one of them. Apart from it, only the list of categories is used.
    """
    left_out: set[int] = set()
    facts = tuple(islice(_facts(request, clock, left_out), MOST_BATCH_FACTS + 1))
    if len(facts) > MOST_BATCH_FACTS:
        cut = facts[-1].source.event
        left_out |= {m.source.event for m in request.messages if m.source.event >= cut}
    note = TOO_LONG if left_out else NOT_UNDERSTOOD
    return Answer(facts[:MOST_BATCH_FACTS], USAGE, note, tuple(sorted(left_out)))


def _facts(
    request: ExtractionRequest, clock: Callable[[], float], left_out: set[int]
) -> Iterator[Fact]:
    """The facts of all user messages, one after the other, within the limits of length and time."""
    seen: set[tuple[int, str]] = set()
    listeners: dict[str | None, Listener] = {}
    excludes = (request.instructions.excludes or "").lower()
    excluded = [word.strip() for word in re.split(r"[,;\n]", excludes)]
    context = [message.content for message in request.context if message.role is Role.USER]
    budget = Budget(clock, clock() + MOST_CPU_S)
    for sourced in request.messages:
        message, event = sourced.message, sourced.source.event
        if message.role is not Role.USER:
            continue
        if message.name not in listeners:
            listener = listeners[message.name] = Listener(sourced.said_at.date())
            budget.hear(context, listener)
        name, listener = " ".join((message.name or USER).split()), listeners[message.name]
        listener.day = sourced.said_at.date()
        read = budget.sentences(message.content)
        for text in (text for sentence in read for text in _texts(*sentence, listener)):
            fact = signed(text, name)
            key = (event, same_text(fact))
            dropped = any(word and word in fact.lower() for word in excluded)
            if key not in seen and not dropped and fact != f"{name}'s name is {name}":
                seen.add(key)
                yield _fact(fact, sourced, request)
        if budget.is_cut:
            left_out.add(event)


def _texts(text: str, is_stated: bool, listener: Listener) -> Iterator[str]:
    """The canonical sentences of one sentence."""
    request = ASKED.fullmatch(text)
    body = trim(request["body"]) if request else text
    if NOTHING.fullmatch(body) if request else not is_stated:
        return
    facts = [fact for clause in clauses(body) for fact in clause_facts(clause, listener)]
    if request and request["forget"]:
        # "Forget that and" names nothing.
        for fact in filter(None, facts or [in_voice(body).strip()]):
            yield f"{USER} asks to forget: {fact.removeprefix(f'{USER} ')}"
    elif request and request["that"] and not facts and len(body.split()) > 2:
        # The user asks to remember a sentence that no rule reads: store its own words.
        plain, when = lift(body, listener.day)
        plain = f"{in_voice(plain)} {when}".strip()
        yield plain[:1].upper() + plain[1:]
    else:
        yield from facts


def _fact(text: str, sourced: SourcedMessage, request: ExtractionRequest) -> Fact:
    """The fact of a sentence, with the structure of its first slot if it has one."""
    _, valid_from = dated(text, sourced.said_at)
    speaker, about = sourced.message.name, topics(text, request.instructions)
    fact = Fact(text, sourced.source, Role.USER, about, speaker, valid_from=valid_from)
    slot = next(iter(slots_of(text)), None)
    if slot is None:
        return fact
    kind = relation_of(slot.relation).kind
    # "Quit their job" is about the employer and about the occupation.
    attribute = "" if slot.relation == "works" else slot.relation.removeprefix("attribute_")
    return replace(
        fact,
        kind=kind,
        memory_type=memory_type(kind, valid_from),
        subject=speaker if speaker and is_the_user(slot.subject) else slot.subject,
        attribute=attribute_name(attribute) if attribute else None,
    )


def procedure_log(request: ExtractionRequest) -> tuple[Fact, ...]:
    """The log of an agent's work as one fact: the first message as the objective, then actions."""
    log = [m for m in request.messages if m.message.role is not Role.SYSTEM]
    log = [sourced for sourced in log if sourced.message.content.strip()]
    if not log:
        return ()
    first, *later = log
    lines = [f"1. Objective: {first.message.content.strip()}"] + ["2. Actions:"] * bool(later)
    for number, sourced in enumerate(later, start=1):
        lines.append(f"2.{number} {sourced.message.role}: {sourced.message.content.strip()}")
    source, message, kind = first.source, first.message, MemoryType.PROCEDURAL
    return (Fact("\n".join(lines), source, message.role, (), message.name, memory_type=kind),)
