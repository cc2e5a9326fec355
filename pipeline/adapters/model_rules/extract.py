"""Messages to facts: sentence by sentence, asking to remember and to forget included.

Only what a user's message says outright counts. Questions, wishes, suppositions and small talk
give nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from pipeline.adapters.model_rules.clauses import clauses, sentences, trim
from pipeline.adapters.model_rules.dates import Anchor, absolute, looks_back
from pipeline.adapters.model_rules.slots import same_text
from pipeline.adapters.model_rules.subjects import Listener, clause_facts, in_voice
from pipeline.adapters.model_rules.topics import topics
from pipeline.domain import Fact, Role, SourcedMessage
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


def extract_facts(request: ExtractionRequest) -> tuple[Fact, ...]:
    """The facts of the user messages, in order, each text once an event: each event has a receipt.

    `instructions.excludes` (comma-separated words) withholds facts that mention one of them;
    other instructions, but for the list of categories, are beyond rules and change nothing.
    """
    facts: list[Fact] = []
    seen: set[tuple[int, str]] = set()
    listeners: dict[str, Listener] = {}
    heard = [m.content for m in request.context if m.role is Role.USER]
    for sourced in request.messages:
        if sourced.message.role is not Role.USER:
            continue
        listener = _listener(listeners, sourced, heard)
        for text in _told(sourced.message.content, listener):
            key = (sourced.source.event, same_text(text))
            if key not in seen and not _excluded(text, request.instructions.excludes):
                seen.add(key)
                about = topics(text, request.instructions)
                facts.append(Fact(text, sourced.source, Role.USER, about))
    return tuple(facts)


def _listener(known: dict[str, Listener], sourced: SourcedMessage, heard: list[str]) -> Listener:
    """The speaker's listener, at the time of the message; a new one has heard the context."""
    name = " ".join((sourced.message.name or "").split()) or "User"
    day = sourced.said_at.date()
    if name not in known:
        known[name] = Listener(name, day)
        for content in heard:
            list(_told(content, known[name]))  # for whom it mentions; its facts are known already
    known[name].day = day
    return known[name]


def _excluded(text: str, excludes: str | None) -> bool:
    terms = [term.strip().lower() for term in re.split(r"[,;\n]", excludes or "")]
    return any(term and term in text.lower() for term in terms)


def _told(content: str, listener: Listener) -> Iterator[str]:
    for sentence in sentences(content):
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
    """What is to be remembered: its facts, or the statement itself where no rule knows it."""
    body = trim(match["body"])
    if not match["that"] and re.match(
        r"(?:to|when|how|the time|me|it|this)\b", body, re.IGNORECASE
    ):
        return
    found = list(_stated(body, listener))
    plain = in_voice(absolute(body, Anchor(listener.day, looks_back(body))), listener)
    if found or not match["that"] or len(body.split()) < 3:
        yield from found
    else:
        yield plain[:1].upper() + plain[1:]


def _forgotten(match: re.Match[str], listener: Listener) -> Iterator[str]:
    """A retraction as a fact: "User asks to forget: likes jazz"."""
    body = trim(match["body"])
    if NOTHING.match(body):
        return
    found = list(_stated(body, listener)) or [in_voice(body, listener)]
    for text in found:
        what = text.removeprefix(listener.name + " ").strip()
        if what:
            yield f"{listener.name} asks to forget: {what}"
