"""Splits chat text into plain clauses: "I'm Maya, and I don't eat meat." gives two of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from pipeline.adapters.model_rules import words as w

# A longer sentence is pasted text; the limit also bounds the time of patterns that are not linear.
# Closers are sought in the last characters of a text.
LONGEST_SENTENCE_CHARS, LONGEST_CLOSER_CHARS = 400, 32

Replacement = str | Callable[[re.Match[str]], str]


def rewriter(*replacements: tuple[str, Replacement]) -> Callable[[str], str]:
    """A function that makes the replacements in a text, in their order and in each line."""
    flags = re.IGNORECASE | re.MULTILINE
    compiled = [(re.compile(pattern, flags), new) for pattern, new in replacements]

    def rewrite(text: str) -> str:
        for pattern, new in compiled:
            text = pattern.sub(new, text)
        return text

    return rewrite


PLAIN_QUOTES = str.maketrans("\u2018\u2019\u02bc\u00b4`\u201c\u201d", "'''''\"\"")
# Dashes are commas, and emoji end a sentence. On whole messages, so each is linear.
PAUSE = re.compile(r" ?[\u2013\u2014] ?| --? ")
EMOJI = re.compile(
    "[\U0001f000-\U0001faff\u2600-\u27bf\ufe0f\u200d]++" r"|(?<=\s)[:;]-?[)(DPp](?=\s|$)"
)
# Not at a colon: "My wife always says: I hate olives" is no statement of the speaker.
SENTENCE_END = re.compile(
    r"(?<=[.!?])(?<!\b[DM][rs]\.)(?<!\bMrs\.)(?<!\bSt\.)(?<!\bProf\.)[\"')\]]*+(?: |$)|; ",
    re.IGNORECASE,
)
# Replacements of different spellings by one, applied in this order before a sentence is parsed.
SHORT = {"ve": "have", "re": "are", "ll": "will", "d": "would"}
spell_out = rewriter(
    (r"\bcan'?t\b", "cannot"),
    (r"\bwon't\b", "will not"),
    (r"\b(do|does|did|is|are|was|were|have|has|had|would|could|should|must)n'?t\b", r"\1 not"),
    (r"\bi'?m\b", "I am"),
    (r"\bive\b", "I have"),
    (r"\b(\w+)'(ve|re|ll|d)\b", lambda m: f"{m[1]} {SHORT[m[2].lower()]}"),
    (rf"\b(have|has) got (?=(?:an?|no|some|my|the|{w.COUNT})\b)", r"\1 "),
    (r"\bi(?=\s)", "I"),
    (r"\b(he|she|it|that|there|who|what|where|how|name)'s (?=got\b|been\b)", r"\1 has "),
    (r"\b(he|she|it|that|there|who|what|where|how|name)'s\b", r"\1 is"),
    (rf"\b({w.KIN}|{w.PETS}|[A-Z][a-z]+)'s (?=(?:an?|in|from|called|named|allergic|married|not"
     r"|vegan|vegetarian|\d+)\b)", r"\1 is "),
    (rf"^((?:my |our )?(?:{w.KIN}|{w.PETS}|[A-Z][a-z]+))'s (?=\w+ing\b(?! (?:is|was|has)))",
     r"\1 is "),
    (r"\bgonna\b", "going to"),
    (r"\bwanna\b", "want to"),
    (r"\bfavorite", "favourite"),
    (r"\bcolor\b", "colour"),
    (r"\banymore\b|\bany longer\b", "any more"),
    (r"\b(\d+)[- ](?:years?[- ]old|yo)\b|\b(\d+)yo\b", r"\1\2 years old"),
)  # fmt: skip
BULLET = re.compile(r"^(?:[-*\u2022>]+|\d{1,2}[.)]) ")
OPENINGS = re.compile(
    rf"(?:{w.OPENERS}\b[\s,.!:]*|{w.PAUSED}[,.!:]\s*|[\s,.!:\"'(]+)*+", re.IGNORECASE
)
CLOSING = re.compile(rf"(?:,? {w.CLOSERS})$", re.IGNORECASE)
# These limit a negation, and stay behind one: "cannot play right now".
LIMITING_CLOSERS = re.compile(
    r" (?:a lot|so much|very much|for now|right now|at the moment)$", re.IGNORECASE
)
CLOSING_MARKS = " \t\n,.!?:\"')("
NEGATION = r"\b(?:not|cannot|no longer|never|stopped|quit|gave up|hates?|dislikes?)\b"
CONNECTIVES = "(?:and|but|while|although|though|whereas|because|since|so|yet|plus)"
# An adverb that says nothing; or a negation with the rest of its clause: "not just a nurse", "not
# beer, just tea".
FILLER = re.compile(
    rf"(?P<denied>{NEGATION}.*?(?= (?:or|{CONNECTIVES}) "
    rf"|, (?:{w.ADVERBS} )?(?:I|we|he|she|they|my) |$))|\b{w.ADVERBS} (?=\S)",
    re.IGNORECASE,
)

# Questions and hypothetical sentences are ignored, and clauses with wishes and doubts.
NOT_STATED = re.compile(
    r"^(?:(?:do|does|did|is|are|was|were|have|has|had|can|will|shall|am)"
    r" (?:i|you|we|he|she|it|they|there|my|your|the|this|that)\b"
    r"|(?:what|which|who|whom|whose|why|how|where|when|imagine|suppose|supposing|pretend|let us say"
    r"|let's say|say i|hypothetically|in theory|if|unless|assum(?:e|ing)"
    r"|any (?:idea|tips|thoughts|advice))\b)"
    r"|\bif (?:i|we|my|he|she|they|it|you)\b",
    re.IGNORECASE,
)
UNSURE = re.compile(
    r"\b(?:would|could|should|might|maybe|perhaps|possibly|hopefully|(?-i:may)|not sure|or not"
    r"|I (?:wish|hope|guess|doubt|suppose|imagine|dreamed)|thinking (?:of|about)|considering)\b",
    re.IGNORECASE,
)
# Verbs that may start a clause without repeating its subject: "... and work as a nurse".
CARRIED = (
    r"(?:(?:live|work|have|own|drive|like|love|enjoy|hate|prefer|dislike|speak|teach|eat|play"
    r"|collect|volunteer)s?|has|stud(?:y|ies)|am|is|are|was|died|do(?:es)? not|cannot|no longer"
    r"|will|moved|bought|sold|got|started|left|quit|joined|adopted|graduated|married|retired"
    r"|stopped|gave up|grew up|was born|used to|go \w+ing|(?:want|plan) to)"
)
# A possessive starts a clause only if a verb follows: not "with Tom and our two kids".
SUBJECT = (
    rf"(?:(?:I|we|he|she|they) |(?:my|our|his|her|their) (?=[\w' ,]{{1,40}}? {CARRIED}\b)"
    rf"|{w.CAP} (?={CARRIED}\b))"
)
SPLIT = re.compile(
    rf"(?:,? {CONNECTIVES} |, )(?={SUBJECT})"
    rf"|(?P<bare>,? (?:and|but) |, )(?={CARRIED}\b(?! (?:and|or)\b))",
    re.IGNORECASE,
)
# After these, the second verb belongs to the first: "I want to move and work abroad".
HOLDS = re.compile(
    r"\b(?:will|cannot|need|hope|try|trying|decided"
    r"|(?:learning|have|has|going|plans?|planning|wants?|like|love|used) to)\b",
    re.IGNORECASE,
)
BEGINNING = re.compile(
    rf"(?:I|we|he|she|they|my {w.KIN}(?: {w.CAP})?)\b"
    rf"|(?:my [\w ]{{1,30}}?|{w.CAP})(?= {CARRIED}\b)",
    re.IGNORECASE,
)
# Several statements of one introduction, relative clauses and contrasts, written as sentences.
unfold = rewriter(
    (rf"^((?:I|we) have an? ((?:\w+ )?(?:{w.KIN}|{w.PETS}))"
     rf"(?:,?(?: named| called)? ({w.CAP}))?),? who (.+)$", r"\1\nmy \2 \3 \4"),
    (rf"^I am ({w.NAME}), (\d{{1,2}}),? (.+)$", r"I am \1\nI am \2\nI am \3"),
    (rf"^I am ({w.NAME}), (?=an? )(.+)$", r"I am \1\nI am \2"),
    (r"^I am an? (\d{1,2} years old) (.+)$", r"I am \1\nI am a \2"),
    (rf"^I am (an? (?:[\w-]+ ){{0,3}}?(?:{w.JOBS}|{w.BEINGS})|{w.NAME}) from (?={w.CAP})",
     r"I am \1\nI am from "),
    (r"^((?:I|we) (?:like|love|enjoy)) (.+?),? but not (.+)$", r"\1 \2\nI do not like \3"),
)  # fmt: skip


def sentences(text: str) -> Iterator[tuple[str, bool]]:
    """The sentences of a message, without openers such as "hi"; False for those not stated.

    Code is left out. Linear in the length of the message: pieces that are too long for a sentence
    are dropped first.
    """
    prose = " . ".join(text.split("```")[::2]).translate(PLAIN_QUOTES)
    lines = (" ".join(line.split()) for line in prose.split("\n"))
    marked = (EMOJI.sub(" . ", PAUSE.sub(", ", line)) for line in lines)
    for raw in (piece for line in marked for piece in SENTENCE_END.split(line)):
        if len(raw) <= LONGEST_SENTENCE_CHARS:
            bare = trim(spell_out(BULLET.sub("", raw.strip())))
            is_question = raw.rstrip(" \"')").endswith("?")
            if bare:
                yield bare, not is_question and not NOT_STATED.search(bare)


def trim(text: str) -> str:
    """The text without openers and closers, however many there are: one pass from each end."""
    opening = OPENINGS.match(text)
    text = text[opening.end() if opening else 0 :].rstrip(CLOSING_MARKS)
    denied = re.search(NEGATION, text, re.IGNORECASE)
    while closing := CLOSING.search(text, max(0, len(text) - LONGEST_CLOSER_CHARS)):
        if denied and LIMITING_CLOSERS.search(text, closing.start()):
            break
        text = text[: closing.start()].rstrip(CLOSING_MARKS)
    return text


def without_filler(text: str) -> str:
    """The text without adverbs that say nothing; behind a negation they limit it, and stay."""
    return FILLER.sub(lambda match: match["denied"] or "", text)


def clauses(text: str) -> list[str]:
    """The clauses of a sentence without unsure ones; a bare verb has the subject before it."""
    lines = unfold(without_filler(text)).split("\n")
    parts = [part for line in lines for part in _split(" ".join(line.split()))]
    return [part for part in parts if not UNSURE.search(part)]


def _split(line: str) -> Iterator[str]:
    """The clauses of a line, each with its own subject."""
    start, head = 0, ""
    for match in SPLIT.finditer(line):
        part = trim(line[start : match.start()])
        subject = head or _subject_of(part)
        apart = not subject or HOLDS.search(part) or UNSURE.search(part)
        if match["bare"] and apart:
            continue
        yield f"{head} {part}".strip()
        start = match.end()
        head = subject if match["bare"] else ""
    yield f"{head} {trim(line[start:])}".strip()


def _subject_of(clause: str) -> str:
    """The words before the first verb, for the next clause: "I", "my sister Anna", "Anna"."""
    match = BEGINNING.match(clause)
    # "My name is Maya and live in Rome": the subject of "live" is the speaker, not the name.
    return "I" if match and match[0].endswith("name") else match[0] if match else ""
