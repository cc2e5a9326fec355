"""Extraction of facts from messages, sentence by sentence; also requests to remember or forget.

Only explicit statements of users count. Questions, wishes and small talk give no facts.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import replace
from datetime import date

from pipeline.adapters.model_rules import words as w
from pipeline.adapters.model_rules.clauses import clauses, rewriter, sentences, trim
from pipeline.adapters.model_rules.dates import is_ahead, lift
from pipeline.adapters.model_rules.fill import topics
from pipeline.adapters.model_rules.relations import traits_of
from pipeline.adapters.model_rules.statements import ANY_DAY, items, slots_of, statement, written
from pipeline.domain.facts import Fact, MemoryType, memory_type
from pipeline.domain.messages import Role, SourcedMessage
from pipeline.domain.usage import Answer, Usage
from pipeline.ports import ExtractionRequest
from pipeline.text.equality import same_text
from pipeline.text.statements.slots import attribute_name, is_the_user
from pipeline.text.times.when import dated

# The speaker in the sentences of this module, until they are signed.
USER = "User"
SPEAKER = re.compile(r"(?:I|(?:both of )?[Ww]e(?: both)?) (.+)")
# Replacements of the first person inside a predicate.
own_words = rewriter(
    (r"\b(?:my|our)\b", "their"), (r"\b(?:mine|ours)\b", "theirs"),
    (r"\b(?:myself|ourselves)\b", "themselves"), (r"\b(?:I|we) (?:am|are)\b", "they are"),
    (r"\bI was\b", "they were"), (r"\b(?:I|we)\b", "they"), (r"\b(?-i:me|us)\b", "them"),
)  # fmt: skip
# A relative or a pet as a subject, and with a name: "... with my sister Ines".
KIND = rf"(?P<kind>{w.KIN}|(?:\w+ )?{w.PETS})\b"
RELATIVE = re.compile(rf"{KIND}(?: {w.NAME})?|{w.SEVERAL}", re.IGNORECASE)
NAMED = re.compile(rf"\b(?:my|our) {KIND},? (?P<name>{w.NAME})(?:, |(?= |$))", re.IGNORECASE)
# Introductions with the owner first: "Anna is my sister", "User is Maya", but not "User is Iraqi".
introduce = rewriter(
    (rf"^(?!(?:he|she|they|it|that|this)\b)(.+?) (is|are) "
     rf"({USER}'s (?:favourite [\w ]+|{w.ATTRIBUTES})|(?:{USER}|{w.CAP})'s {w.KIN})$", r"\3 \2 \1"),
    (r"(?<= name is )(?!(?:on|in|at|not|to|the|an?|for|hard|too|so|still)\b|\w+(?:ed|ing)\b)"
     r"[a-z]+(?: [a-z]+)?$", lambda match: match[0].title()),
    (rf"^({USER}'s .+)'s name is ", r"\1 is called "),
    (rf"^{USER} is (?!(?:[\w'-]+ ){{0,2}}{w.NO_NAME}\b)({w.NAME})$", rf"{USER}'s name is \1"),
)  # fmt: skip
# A pronoun as a subject or as an owner, and a sentence that says for whom it stands.
PRONOUN = re.compile(r"(?:he|she|they|it|(?P<owner>his|her|their|its))\b", re.IGNORECASE)
ANY_PRONOUN = "she her he his they their it its"
MET = re.compile(
    rf"{USER}(?:'s| (?:has|adopted|got|bought) an?) {KIND}"
    rf"(?:(?: is)?(?: named| called)? (?P<name>{w.NAME}))?.*"
)
# Subjects that are no names, words about the conversation itself, and values that name nothing.
NO_ONE = re.compile(f"{w.either('no_names')}?", re.IGNORECASE)
TALK = re.compile(rf"\b{w.either('talk')}\b", re.IGNORECASE)
POINTING = re.compile(rf"{w.either('pointing')}\b", re.IGNORECASE)
# A request, and its object.
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
# case; `decide` compares each pair of facts.
MOST_MESSAGE_CHARS, MOST_BATCH_CHARS, MOST_BATCH_FACTS = 20_000, 60_000, 200
# The end of the context that is read, for the people that it names.
MOST_CONTEXT_CHARS = 10_000

ADVICE = "The turn is kept and searchable; set MEMLANE_LLM__MODEL to have a language model read it."
NOT_UNDERSTOOD = f"local/rules reads plain English statements only, and found none here. {ADVICE}"
TOO_LONG = (
    f"Too long for local/rules: it reads messages of up to {MOST_MESSAGE_CHARS:,} characters, and"
    f" {MOST_BATCH_FACTS} facts at a time. {ADVICE}"
)


def extract_facts(request: ExtractionRequest) -> Answer[tuple[Fact, ...]]:
    """The facts of the user messages, in order and unique within an event; and a note, why none.

    Of the instructions, categories are used, and `excludes`: comma-separated words.
    """
    left_out: set[int] = set()
    facts = tuple(_facts(request, left_out))
    note = TOO_LONG if left_out else NOT_UNDERSTOOD
    return Answer(facts, USAGE, note, tuple(sorted(left_out)))


def _facts(request: ExtractionRequest, left_out: set[int]) -> Iterator[Fact]:
    """The facts of all user messages within the limits of length; events beyond are left out."""
    seen: set[tuple[int, str]] = set()
    excludes = (request.instructions.excludes or "").lower()
    excluded = [word.strip() for word in re.split(r"[,;\n]", excludes)]
    context = "\n".join(message.content for message in request.context if message.role is Role.USER)
    heard, people, chars = {USER: USER}, dict[str | None, dict[str, str]](), 0
    list(_texts(context[-MOST_CONTEXT_CHARS:], ANY_DAY, heard))
    for sourced in request.messages:
        message, event = sourced.message, sourced.source.event
        if message.role is not Role.USER:
            continue
        length = len(message.content)
        if length > min(MOST_MESSAGE_CHARS, MOST_BATCH_CHARS - chars):
            left_out.add(event)
            continue
        chars += length
        name = " ".join((message.name or USER).split())
        met = people.setdefault(message.name, heard.copy())
        for text in _texts(message.content, sourced.said_at.date(), met):
            fact = re.sub(rf"^{USER}\b|\b{USER}(?='s )", name.replace("\\", r"\\"), text)
            key = (event, same_text(fact))
            dropped = any(word and word in fact.lower() for word in excluded)
            if key in seen or dropped or fact == f"{name}'s name is {name}":
                continue
            if len(seen) == MOST_BATCH_FACTS:
                left_out.add(event)
                break
            seen.add(key)
            yield _fact(fact, sourced, request)


def _texts(content: str, today: date, met: dict[str, str]) -> Iterator[str]:
    """The canonical sentences of a message. `met`: subjects that are known, also by pronouns."""
    for text, is_stated in sentences(content):
        request = ASKED.fullmatch(text)
        body = trim(request["body"]) if request else text
        if NOTHING.fullmatch(body) if request else not is_stated:
            continue
        facts = [fact for clause in clauses(body) for fact in clause_facts(clause, today, met)]
        if request and request["forget"]:
            # "Forget that and" names nothing.
            for fact in filter(None, facts or [in_voice(body).strip()]):
                yield f"{USER} asks to forget: {fact.removeprefix(f'{USER} ')}"
        elif request and request["that"] and not facts and len(body.split()) > 2:
            # The user asks to remember a sentence that no rule reads: store its own words.
            plain, when = lift(body, today)
            plain = f"{in_voice(plain)} {when}".strip()
            yield plain[:1].upper() + plain[1:]
        else:
            yield from facts


def _fact(text: str, sourced: SourcedMessage, request: ExtractionRequest) -> Fact:
    """The fact of a sentence, with the structure of its first slot if it has one."""
    text, valid_from = dated(text, sourced.said_at)
    speaker, about = sourced.message.name, topics(text, request.instructions)
    fact = Fact(text, sourced.source, Role.USER, about, speaker, valid_from=valid_from)
    slot = next(iter(slots_of(text)), None)
    if slot is None:
        return fact
    kind = traits_of(slot.relation).kind
    # "Quit their job" is about the employer and about the occupation.
    attribute = "" if slot.relation == "works" else slot.relation.removeprefix("attribute_")
    return replace(
        fact,
        kind=kind,
        memory_type=memory_type(kind, valid_from),
        subject=speaker if speaker and is_the_user(slot.subject) else slot.subject,
        attribute=attribute_name(attribute) if attribute else None,
    )


def in_voice(text: str) -> str:
    """A clause in the third person: "I like my code" is "User likes their code"."""
    if match := SPEAKER.fullmatch(text):
        return f"{USER} {w.in_third_person(own_words(match[1]))}"
    text = re.sub(r"\b(?:my|our)\b", f"{USER}'s", text, flags=re.IGNORECASE)
    return re.sub(r"\b(?:I|me|we|us)\b", USER, text)


def clause_facts(clause: str, today: date, met: dict[str, str]) -> list[str]:
    """The canonical sentences of one clause; first those about the relatives whom it names."""
    text, when = lift(clause, today)
    text = trim(text)
    facts: list[str] = []
    for match in NAMED.finditer(text):
        # A pet that died is not had any more.
        if "'" not in match["name"] and not text.endswith((" died", " passed away")):
            role = f"{USER}'s {match['kind']} is called {match['name']}"
            _meet(role, met)
            facts += _canonical(role, met)
    kin = NAMED.match(text)
    if kin and kin["name"] in met and re.fullmatch(w.KIN, kin["kind"]):
        text = f"{kin['name']} {text[kin.end() :].strip()}"
    if pronoun := PRONOUN.match(text):
        owner = "'s" if pronoun["owner"] else ""
        text = f"{met.get(pronoun[0].lower(), '')}{owner}{text[pronoun.end() :]}"
    text = introduce(in_voice(text))
    if not facts:
        _meet(text, met)
    return facts + _canonical(text, met, when, is_so=not is_ahead(when, today))


def _meet(text: str, met: dict[str, str]) -> None:
    """Remember the relative or the pet that a sentence introduces, also under its pronouns."""
    if match := MET.fullmatch(text):
        noun = re.sub(".* |step|grand|-in-law", "", match["kind"].lower())
        pronouns = "she her" if noun in w.SHE else "he his" if noun in w.HE else ANY_PRONOUN
        subject = match["name"] or f"{USER}'s {match['kind']}"
        met |= dict.fromkeys([*pronouns.split(), subject], subject)


def _canonical(text: str, met: Collection[str], when: str = "", *, is_so: bool = True) -> list[str]:
    """The canonical sentences of a clause in the third person. `is_so`: at the day of its date."""
    read = statement(text, when)
    if read is None or NO_ONE.fullmatch(read.subject):
        return []
    owner, _, noun = read.subject.rpartition("'s ")
    known, happened = read.subject.partition("'s ")[0] in met, "past" in read.groups
    is_thing = owner != "" and not RELATIVE.fullmatch(noun) and not (happened and known)
    talk = TALK.search(read.predicate) and not read.predicate.startswith("'s ")
    pointing = not happened and any(map(POINTING.match, read.groups.values()))
    if is_thing or talk or pointing or (traits_of(read.rule.relation).now and not is_so):
        return []
    # A state or a habit needs a known subject, and "Alexa no longer works" is about a thing.
    fleeting = read.rule.relation in ("is", "is_aged") or read.groups.get("habit")
    stated = known or (read.rule.needs != "negated" if read.negated else not fleeting)
    return [written(read, item) for item in items(read)] if stated else []


def procedure_log(request: ExtractionRequest) -> tuple[Fact, ...]:
    """The log of an agent's work as one fact: the first message as the objective, then actions."""
    spoken = (m for m in request.messages if m.message.role is not Role.SYSTEM)
    log = [sourced for sourced in spoken if sourced.message.content.strip()]
    if not log:
        return ()
    first, *later = log
    lines = [f"1. Objective: {first.message.content.strip()}"] + ["2. Actions:"] * bool(later)
    for number, sourced in enumerate(later, start=1):
        lines.append(f"2.{number} {sourced.message.role}: {sourced.message.content.strip()}")
    source, message, kind = first.source, first.message, MemoryType.PROCEDURAL
    return (Fact("\n".join(lines), source, message.role, (), message.name, memory_type=kind),)
