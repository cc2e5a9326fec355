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
    "[\U0001f000-\U0001faff\u2600-\u27bf\ufe0f\u200d]++|(?<=\\s)[:;]-?[)(DPp](?=\\s|$)"
)
# Not at a colon: "My wife always says: I hate olives" is no statement of the speaker.
SENTENCE_END = re.compile(
    r"(?<=[.!?])(?<!\b[DM][rs]\.)(?<!\bMrs\.)(?<!\bSt\.)[\"')\]]*+(?: |$)|; ", re.IGNORECASE
)
# Replacements of different spellings by one, applied in this order before a sentence is parsed.
SHORT = {"ve": "have", "re": "are", "ll": "will", "d": "would"}
spell_out = rewriter(
    (rf"\b(?:{'|'.join(w.SPELLINGS)})\b", lambda m: w.SPELLINGS[m[0].lower()]),
    (r"\b(do|does|did|is|are|was|were|have|has|had|would|could|should|must)n'?t\b", r"\1 not"),
    (r"\b(\w+)'(ve|re|ll|d)\b", lambda m: f"{m[1]} {SHORT[m[2].lower()]}"),
    (rf"\b(have|has) got (?=(?:an?|no|some|my|the|{w.COUNT})\b)", r"\1 "),
    (r"\bi(?=\s)", "I"),
    (r"\b(he|she|it|that|there|who|what|where|how|name)'s (?=got\b|been\b)", r"\1 has "),
    (r"\b(he|she|it|that|there|who|what|where|how|name)'s\b", r"\1 is"),
    (rf"\b({w.KIN}|{w.PETS}|[A-Z][a-z]+)'s (?=(?:an?|in|from|called|named|allergic|married|not"
     r"|vegan|vegetarian|\d+)\b)", r"\1 is "),
    (r"\b(\d+)[- ](?:years?[- ]old|yo)\b|\b(\d+)yo\b", r"\1\2 years old"),
)  # fmt: skip
BULLET = re.compile(r"^(?:[-*\u2022>]+|\d{1,2}[.)]) ")
OPENINGS = re.compile(
    rf"^(?:{w.OPENERS}\b[\s,.!:]*|{w.PAUSED}[,.!:]\s*|[\s,.!:\"'(]+)*+", re.IGNORECASE
)
CLOSING = re.compile(rf"(?:,? {w.CLOSERS})$", re.IGNORECASE)
CLOSING_MARKS = " \t\n,.!?:\"')("
FILLER = re.compile(rf"\b{w.ADVERBS} (?=\S)", re.IGNORECASE)
# The other half of a contrast: "not beer, just tea", "cats, not dogs".
CONTRAST = re.compile(r"(?:, so|,? and not|,? but(?: not)?|, (?:not|only|just|rather|mainly)) .*")
# A negation that does not deny all of its statement: "not just a nurse", "cannot play right now".
# It is the first one of the text, so that a text of many negations is read once.
LIMITED = re.compile(
    r"(?>.*?\b(?i:not|cannot|no longer|never|stopped|quit|gave up|hates?|dislikes?)\b).*"
    rf" {w.LIMITS}(?![\w-])"
)
# Questions and hypothetical sentences, and clauses with wishes and doubts.
NOT_STATED = re.compile(
    rf"^(?:{w.either('auxiliaries')} {w.either('asked_subjects')}|{w.either('not_stated')})\b"
    r"|\bif (?:i|we|my|he|she|they|it|you)\b",
    re.IGNORECASE,
)
UNSURE = re.compile(rf"\b{w.either('unsure')}\b", re.IGNORECASE)
# A possessive starts a clause only if a verb follows: not "with Tom and our two kids".
SUBJECT = (
    r"(?:(?:I|we|he|she|they|it|this|that|everyone|everybody|people) "
    rf"|(?:my|our|his|her|their) (?=[\w' ,]{{1,40}}? {w.CARRIED}\b|{w.KIN}(?: {w.CAP})? \w+s\b)"
    rf"|{w.CAP} (?={w.CARRIED}\b))"
)
PLACED = rf"(?:(?:originally )?from {w.CAP}|(?:living|working|based) (?:in|at|as|for)\b)"
SPLIT = re.compile(
    r"(?:,? (?:and|but|while|although|though|whereas|because|since|so|yet|plus) |, )"
    rf"(?=(?:{w.ADVERBS} )?{SUBJECT})"
    rf"|(?P<bare>,? (?:and|but) |, )(?=(?:{w.ADVERBS} )?{w.CARRIED}\b(?! (?:and|or)\b))"
    rf"|(?P<who>,? who )(?={w.CARRIED}\b)"
    rf"|(?P<item>(?P<comma>, (?:and |but )?| (?:and|but) )| (?={PLACED}))",
    re.IGNORECASE,
)
# Items of an introduction: "I am Tom, 42, a nurse from Cork and vegan".
BE = re.compile(r".+? (?:am|is) ")
ITEM = re.compile(
    rf"(?:{w.ADVERBS} )?(?:{PLACED}.+|(?:[1-9]\d(?: years old)?|{w.DIETS}|{w.TRAITS}|married|single"
    rf"|divorced|(?:an?|the) {w.UP_TO_THREE}(?:{w.JOBS}|{w.BEINGS}|{w.NATIONALITY}|{w.DIETS})"
    rf"|allergic to)(?![\w-])(?P<more> [^,]+)?|(?P<name>{w.NAME}))",
    re.IGNORECASE,
)
HOLDS = re.compile(rf"\b{w.either('holding')}\b", re.IGNORECASE)
# The subject of a clause; that of "my name is Maya and live in Rome" is the speaker.
BEGINNING = re.compile(
    rf"my name\b|(?P<who>(?:I|we|he|she|they|my {w.KIN}(?: {w.CAP})?)\b"
    rf"|(?:my [\w ]{{1,30}}?|{w.CAP})(?= {w.CARRIED}\b))",
    re.IGNORECASE,
)
# Several statements of one introduction, and relative clauses, written as sentences.
unfold = rewriter(
    (rf"^((?:I|we) have an? ((?:\w+ )?(?:{w.KIN}|{w.PETS}))"
     rf"(?:,?(?: named| called)? ({w.CAP}))?),? who (.+)$", r"\1\nmy \2 \3 \4"),
    (rf"^I am an? (\d{{1,2}} years old|{w.DIETS}) (?!who )(.+)$", r"I am \1\nI am a \2"),
    (rf"^(?:(?:please|just|you can) )*call me (?={w.NAME}(?:,|$))", "my name is "),
    (rf"^(?:everyone|everybody|people|(?:my )?friends) calls? me (?={w.NAME}(?:,|$))",
     "my nickname is "),
    (r"^((?:I|we) (?:like|love|enjoy)) (.+?),? but not (.+)$", r"\1 \2\nI do not like \3"),
)  # fmt: skip


def sentences(text: str) -> Iterator[tuple[str, bool]]:
    """The sentences of a message, without code and openers; False for those not stated.

    Linear in the length of the message: pieces that are too long for a sentence are dropped first.
    """
    prose = " . ".join(text.split("```")[::2]).translate(PLAIN_QUOTES)
    lines = (" ".join(line.split()) for line in prose.split("\n"))
    marked = (EMOJI.sub(" . ", PAUSE.sub(", ", line)) for line in lines)
    for raw in (piece for line in marked for piece in SENTENCE_END.split(line)):
        if len(raw) <= LONGEST_SENTENCE_CHARS:
            bare = opened(spell_out(BULLET.sub("", raw.strip())))
            is_question = raw.rstrip(" \"')").endswith("?")
            if bare:
                yield bare, not is_question and not NOT_STATED.search(bare)


def opened(text: str) -> str:
    """The text without openers, and without marks at its end."""
    return OPENINGS.sub("", text, count=1).rstrip(CLOSING_MARKS)


def trim(text: str) -> str:
    """The text without openers and closers, however many there are: one pass from each end.

    A negation with a limit keeps its closers: "cannot play right now".
    """
    text = opened(text)
    end = len(text) if LIMITED.match(text) else 0
    while closing := CLOSING.search(text, max(end, len(text) - LONGEST_CLOSER_CHARS)):
        text = text[: closing.start()].rstrip(CLOSING_MARKS)
    return text


def clauses(text: str) -> list[str]:
    """The clauses of a sentence without unsure ones; a bare verb has the subject before it."""
    parts = (part for line in unfold(text).split("\n") for part in _split(" ".join(line.split())))
    sure = (CONTRAST.sub("", part) for part in parts if not UNSURE.search(part))
    return [part if LIMITED.match(part) else trim(FILLER.sub("", part)) for part in sure]


def _split(line: str) -> Iterator[str]:
    """The clauses of a line, each with its own subject."""
    start, head = 0, ""
    for match in SPLIT.finditer(line):
        part = f"{head} {opened(line[start : match.start()])}".strip()
        begun, be = BEGINNING.match(part), BE.match(part)
        item, other = be and ITEM.fullmatch(part, be.end()), ITEM.match(line, match.end())
        if match["bare"] and (not begun or HOLDS.search(part) or UNSURE.search(part)):
            continue
        if (match["item"] or match["who"]) and not item:
            continue
        # Not "from Dublin, Ireland" and "a manager of a team from India".
        far = item and item["more"] and line.startswith(("from", "originally"), match.end())
        if match["item"] and (not other or other["name"] or (far and not match["comma"])):
            continue
        yield part
        who = (begun["who"] or "I") if begun and (match["bare"] or match["who"]) else ""
        start, head = match.end(), be[0].strip() if be and match["item"] else who
    yield f"{head} {opened(line[start:])}".strip()
