"""Splits chat text into plain clauses: "I'm Maya, and I don't eat meat." gives two of them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pipeline.adapters.model_rules.words import ADVERBS, CLOSERS, KIN, OPENERS, PAUSED, PETS, either

# A longer sentence is pasted text, which these rules would misread. The limit also bounds the time
# of those patterns below that are not linear in the sentence's length.
LONGEST_SENTENCE_CHARS = 400

FENCE = "```"
PLAIN_QUOTES = str.maketrans(
    dict.fromkeys("\u2018\u2019\u02bc\u00b4`", "'") | dict.fromkeys("\u201c\u201d", '"')
)
# Marks that affect where a sentence ends. They run on whole messages, so each one is linear.
MARKS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r" ?[\u2013\u2014] ?| -{1,2} "), ", "),
    (re.compile(r"[\U0001f000-\U0001faff\u2600-\u27bf\ufe0f\u200d]++"
                r"|(?<=\s)[:;]-?[)(DPp](?=\s|$)"), " . "),
    (re.compile(r"\b(Dr|Mr|Mrs|Ms|St|Prof|vs|approx)\.(?= )", re.IGNORECASE), r"\1"),
)  # fmt: skip
# Replacements of different spellings by one, applied in this order before a sentence is parsed.
SPELLINGS: tuple[tuple[str, str], ...] = (
    (r"\b[Cc]an't\b|\bcant\b", "cannot"),
    (r"\b[Ww]on't\b", "will not"),
    (r"\b(do|does|did|is|are|was|were|have|has|had|would|could|should|must)n'?t\b", r"\1 not"),
    (r"\b(?:i'm|im)\b", "I am"),
    (r"\b(?:i've|ive)\b", "I have"),
    (r"\bi'll\b", "I will"),
    (r"\bi'd\b", "I would"),
    (r"\bi(?=\s)", "I"),
    (r"\b(we|you|they)'re\b", r"\1 are"),
    (r"\b(we|you|they)'ve\b", r"\1 have"),
    (r"\b(\w+)'ll\b", r"\1 will"),
    (r"\b(he|she|it|that|there|who|what|where|how|name)'s (?=got\b|been\b)", r"\1 has "),
    (r"\b(he|she|it|that|there|who|what|where|how|name)'s\b", r"\1 is"),
    (rf"\b({KIN}|{PETS}|[A-Z][a-z]+)'s (?=an?\b|in\b|from\b|called\b|named\b|allergic\b|married\b"
     r"|not\b|vegan\b|vegetarian\b|\d+\b|\w+ing\b(?! (?:is|was|has)))", r"\1 is "),
    (r"\bgonna\b", "going to"),
    (r"\bwanna\b", "want to"),
    (r"\bfavorite\b", "favourite"),
    (r"\bcolor\b", "colour"),
    (r"\banymore\b", "any more"),
    (r"\b(\d+)[- ]years?[- ]old\b|\b(\d+) ?yo\b", r"\1\2 years old"),
)  # fmt: skip
COMPILED_SPELLINGS = tuple((re.compile(pattern, re.IGNORECASE), new) for pattern, new in SPELLINGS)

SENTENCE_END = re.compile(r"(?<=[.!?])[\"')\]]*+(?: |$)|; ")
BULLET = re.compile(r"^(?:[-*\u2022>]+|\d{1,2}[.)]) ")
OPENINGS = re.compile(rf"(?:{OPENERS}\b[\s,.!:]*|{PAUSED}[,.!:]\s*|[\s,.!:\"'(]+)*+", re.IGNORECASE)
CLOSING = re.compile(rf"(?:,? {CLOSERS})$", re.IGNORECASE)
CLOSING_MARKS = " \t\n,.!?:\"')("
# Maximum length of a closer and the text before it: the part of the end that is searched.
LONGEST_CLOSER_CHARS = 32
FILLER = re.compile(rf"\b{ADVERBS} ", re.IGNORECASE)

QUESTION = re.compile(
    r"^(?:(?:do|does|did|is|are|was|were|have|has|had|can|could|would|will|should|shall|may|am)"
    r" (?:i|you|we|he|she|it|they|there|my|your|the|this|that)\b"
    r"|(?:what|which|who|whom|whose|why|how|where|when)\b|any (?:idea|tips|thoughts|advice)\b)",
    re.IGNORECASE,
)
# Starts of hypothetical sentences, or "if I ..." anywhere: the whole sentence is ignored.
SUPPOSING = re.compile(
    r"^(?:imagine|suppose|supposing|pretend|what if|let us say|let's say|hypothetically|if|unless"
    r"|in theory|say i|assume|assuming)\b"
    r"|\b(?:even |only )?if (?:i|we|my|he|she|they|it|you)\b",
    re.IGNORECASE,
)
# Wishes, doubts and polite forms: the clause is ignored.
UNSURE = re.compile(
    r"\b(?:would|could|should|might|(?-i:may))\b|\b(?:maybe|perhaps|possibly|hopefully)\b"
    r"|\bI (?:wish|hope|guess|doubt|wonder|suppose|imagine|dreamed|dreamt)\b"
    r"|\bnot sure\b|\bthinking (?:of|about)\b|\bconsidering\b|\bused to think\b|\bor not\b",
    re.IGNORECASE,
)

# Verbs that may start a clause without repeating its subject: "... and work as a nurse".
CARRIED = either(
    "live, lives, work, works, have, has, own, owns, drive, drives, like, likes, love, loves,"
    " enjoy, enjoys, hate, hates, prefer, prefers, dislike, speak, speaks, study, studies,"
    " teach, teaches, am, is, are, moved, bought, sold, started, left, quit, joined, cannot,"
    " do not, does not, got,"
    " adopted, used to, volunteer, collect, graduated, no longer, grew up, was born, eat, eats,"
    " play, plays, go \\w+ing, want to, plan to, will, married, retired, stopped, gave up"
)
# A possessive starts a clause only if a verb follows: not "with Tom and our two kids".
SUBJECT = (
    r"(?:I|we|he|she|they|(?:my|our|his|her|their)(?= [\w' ,]{1,40}?"
    r" (?:is|are|am|was|were|has|have|works?|lives?|likes?|loves?|hates?|moved|died|got)\b))"
)
NAMED = r"[A-Z][\w'-]+ (?:is|has|works|lives|likes|loves|hates|speaks|plays|owns|studies|moved)\b"
JOINER = r"(?:and|but|while|although|though|whereas|because|since|so|yet|plus|except that)"
SPLIT = re.compile(
    rf",? {JOINER} (?=(?:then |now |also |I think )?(?:{SUBJECT} |(?-i:{NAMED})))"
    rf"|, (?=(?:{SUBJECT} |(?-i:{NAMED})))"
    rf"|(?P<bare>,? (?:and|but) |, )(?=(?:also |now |then )?{CARRIED}\b(?! (?:and|or)\b))",
    re.IGNORECASE,
)
# After these, the second verb belongs to the first: "I want to move and work abroad".
HOLDS = re.compile(
    r"\b(?:will|going to|plan|plans|planning|want|wants|like to|love to|used to|hope|try|trying"
    r"|need"
    r"|have to|has to|cannot|would|could|should|might|may|learning to|decided)\b",
    re.IGNORECASE,
)
# Relative clauses and contrasts, rewritten as clauses with their own subject.
UNFOLD: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), new)
    for pattern, new in (
        (rf"^(?P<head>(?:I|we) have an? (?P<kin>(?:\w+ )?(?:{KIN}|{PETS}))"
         r"(?:,? (?:named|called)? ?(?P<n>(?-i:[A-Z])[\w'-]+))?),? who (?P<p>.+)$",
         r"\g<head>\nmy \g<kin> \g<n> \g<p>"),
        (r"^(?P<s>I am )(?P<n>(?-i:[A-Z])[\w'-]+(?: (?-i:[A-Z])[\w'-]+)?), (?P<age>\d+),? "
         r"(?P<rest>.+)$",
         r"\g<s>\g<n>\nI am \g<age>\nI am \g<rest>"),
        (r"^(?P<s>(?:I|we) (?:\w+ )?(?:like|love|enjoy)) (?P<a>.+?),? but not (?P<b>.+)$",
         r"\g<s> \g<a>\nI do not like \g<b>"),
    )
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence. `stated`: False for questions and hypothetical sentences."""

    text: str
    stated: bool


def lines(text: str) -> list[str]:
    """A message's lines with plain quotes and single spaces, without code, dashes and emoji."""
    prose = " . ".join(text.split(FENCE)[::2]).translate(PLAIN_QUOTES)
    cleaned = []
    for raw in prose.split("\n"):
        line = " ".join(raw.split())
        for pattern, new in MARKS:
            line = pattern.sub(new, line)
        cleaned.append(" ".join(line.split()))
    return cleaned


def normalise(sentence: str) -> str:
    """The sentence with one spelling of contractions."""
    for pattern, new in COMPILED_SPELLINGS:
        sentence = pattern.sub(new, sentence)
    return sentence.strip()


def sentences(text: str) -> list[Sentence]:
    """The sentences of a message, with contractions written out and openers such as "hi" removed.

    Linear in the length of the message: pieces that are too long for a sentence are dropped first.
    """
    pieces = []
    for raw in (piece for line in lines(text) for piece in SENTENCE_END.split(line)):
        if len(raw) <= LONGEST_SENTENCE_CHARS:
            bare = trim(normalise(BULLET.sub("", raw)))
            is_question = raw.rstrip(" \"')").endswith("?") or QUESTION.match(bare)
            if bare:
                pieces.append(Sentence(bare, not is_question and not SUPPOSING.search(bare)))
    return pieces


def trim(text: str) -> str:
    """The text without openers and closers, however many there are: one pass from each end."""
    opening = OPENINGS.match(text)
    text = text[opening.end() if opening else 0 :].rstrip(CLOSING_MARKS)
    while closing := CLOSING.search(text, max(0, len(text) - LONGEST_CLOSER_CHARS)):
        text = text[: closing.start()].rstrip(CLOSING_MARKS)
    return text


def clauses(text: str) -> list[str]:
    """The clauses of a sentence, each with its own subject, without unsure ones."""
    parts = []
    for line in unfold(text).split("\n"):
        parts += _split(line)
    return [part for part in parts if part and not UNSURE.search(part)]


def unfold(text: str) -> str:
    """The sentence as lines, with relative clauses and contrasts as separate clauses."""
    for pattern, new in UNFOLD:
        text = "\n".join(
            re.sub(r" +", " ", pattern.sub(new, line, count=1)) for line in text.split("\n")
        )
    return text


def _split(line: str) -> list[str]:
    """The clauses of a line; a verb without a subject gets that of the clause before it."""
    parts, start, head = [], 0, ""
    for match in SPLIT.finditer(line):
        part = line[start : match.start()]
        if match["bare"] and not _may_carry(head or part, part):
            continue
        head = _with_subject(part, head)
        parts.append(head)
        start = match.end()
        head = head if match["bare"] else ""
    parts.append(_with_subject(line[start:], head))
    return [FILLER.sub("", trim(part)) for part in parts]


def _may_carry(head: str, part: str) -> bool:
    """True if a bare verb after `part` has the same subject, and is as certain as its verb."""
    return bool(subject_of(head)) and not HOLDS.search(part) and not UNSURE.search(head)


def _with_subject(part: str, head: str) -> str:
    part = trim(part)
    return f"{subject_of(head)} {part}" if head else part


def subject_of(clause: str) -> str:
    """The words before the first verb, for the next clause: "I", "my sister Anna", "Anna"."""
    match = re.match(
        rf"(?:\b{ADVERBS} )*(?P<s>I|we|he|she|they|my (?:\w+ )?{KIN}(?: (?-i:[A-Z])[\w'-]+)?"
        rf"|my [\w ]{{1,30}}?(?= {CARRIED}\b)|(?-i:[A-Z])[\w'-]+(?= {CARRIED}\b))\b",
        clause,
        re.IGNORECASE,
    )
    if not match:
        return ""
    subject = match["s"]
    # "My name is Maya and live in Rome": the subject of "live" is the speaker, not the name.
    return "I" if re.search(r"\bname$", subject) else subject
