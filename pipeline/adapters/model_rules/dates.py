"""Makes relative dates absolute: "next Friday" on 2026-03-09 is "on 2026-03-13".

Formats: `on 2026-03-13` (a day), `in 2026-06` (a month), `in 2027` (a year), `in the week of
2026-03-09` (its Monday), `around 2026-03-23` (counted in weeks). The times are those that
`pipeline.text.when` reads, and the seasons and days of a month of these rules. A date that cannot
be computed is left as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial

from pipeline.adapters.model_rules.verbs import is_past
from pipeline.text.dates import (
    MONTHS,
    NUMBER,
    SPACED_UNIT,
    UNITS,
    WEEKDAYS,
    Span,
    any_of,
    month_of,
    period,
)
from pipeline.text.when import moved, number_of, times_of

# First months of the seasons, by convention those of the northern hemisphere.
SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
# Prepositions that are kept, because they change the meaning of the date.
KEPT = ("by", "until", "till", "since", "before", "after", "around", "from", "to", "for")
PREP = rf"(?P<prep>on|in|at|starting|during|{'|'.join(KEPT)})"
# Words before a time that belong to it.
BEFORE = re.compile(
    rf"(?:\b{PREP} )?(?:about |(?:early|late|mid|the (?:end|beginning|start) of)[ -])?(?:the )?"
    r"(?P<next>next )?$",
    re.IGNORECASE,
)
OWN_PREP = re.compile(rf"{PREP} ", re.IGNORECASE)
PART = re.compile(r"(?: (?:morning|afternoon|evening|night)\b|' time\b)?", re.IGNORECASE)
# Dates only after a preposition: "May", "Sunday" and "2019" alone are not dates.
BARE = re.compile(rf"{any_of(MONTHS)}|{any_of(WEEKDAYS)}|\d{{4}}", re.IGNORECASE)
# "March 41st" is no date, and "Sunday roast" or "May's" none either.
NO_TIME_AFTER = re.compile(r" \d{1,2}(?:st|nd|rd|th)?\b| roast\b|['\u2019-]")
CALENDAR_WEEK = re.compile(r"\b(?:this|last|next|coming|previous) ", re.IGNORECASE)
ABSOLUTE = re.compile(
    r",? ?\b(?P<when>(?:on|in|by|until|till|since|before|after|around|from|for)"
    r"(?: the (?:week|weekend|spring|summer|autumn|winter) of)? (?:\d{4}-\d\d(?:-\d\d)?|(?:19"
    r"|20)\d\d)"
    r"(?![\d-])(?: at \d{1,2}(?:[:.]\d\d)?(?: ?[ap]m\b| o'clock)?)?)",
    re.IGNORECASE,
)
FOR_SPAN = re.compile(
    rf"\bfor (?:about |over |almost |nearly |the (?:last|past) )*{NUMBER} {SPACED_UNIT}"
    r"(?: already)?\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Anchor:
    """The day of a message, and if the clause is about the past (`past`) or the future."""

    day: date
    past: bool


# Default preposition and value of a date.
Resolved = tuple[str, str]
Reader = Callable[[re.Match[str], Anchor], Resolved]


def absolute(clause: str, anchor: Anchor) -> str:
    """The clause with every date that can be computed replaced by its ISO form."""
    ahead = not (anchor.past or re.search(r"\bsince\b", clause, re.IGNORECASE))
    for named in reversed(times_of(clause, anchor.day, ahead=ahead)):
        own = OWN_PREP.match(clause, named.start, named.end)
        words = clause[own.end() if own else named.start : named.end]
        before = BEFORE.search(clause[: named.end - len(words)])
        date_of = _written(named.span, words, anchor.day)
        if before and date_of and _is_time(words, before, clause[named.end :]):
            rest = PART.sub("", clause[named.end :], count=1)
            clause = f"{clause[: before.start()]}{_with_prep(before, date_of)}{rest}"
    for pattern, read in OWN_FORMS:
        clause = pattern.sub(partial(_replaced, read, anchor), clause)
    return clause


def _is_time(words: str, before: re.Match[str], after: str) -> bool:
    """True unless the words are a bare name or number that nothing around them makes a time."""
    if not BARE.fullmatch(words):
        return True
    return bool(before["prep"] or before["next"]) and not NO_TIME_AFTER.match(after)


def _with_prep(match: re.Match[str], resolved: Resolved) -> str:
    """The date with the preposition before it, if that is kept, else with its own."""
    default, value = resolved
    prep = (match["prep"] or "").lower()
    return f"{prep if prep in KEPT else default} {value}"


def _replaced(read: Reader, anchor: Anchor, match: re.Match[str]) -> str:
    """The date of a form of these rules; the match if the calendar has no such date."""
    try:
        return _with_prep(match, read(match, anchor))
    except ValueError:
        return match[0]


def _written(span: Span, words: str, today: date) -> Resolved | None:
    """The default preposition and the ISO form of a time, only as exact as the time.

    None for other spans, such as "the last two weeks".
    """
    first, days = span.first, (span.last - span.first).days
    if span.is_day:
        return "on", first.isoformat()
    if days == 1:
        return "on the weekend of", first.isoformat()
    if span == period("week", first):
        if CALENDAR_WEEK.search(words):
            return "in the week of", first.isoformat()
        return "around", (first + timedelta(days=today.weekday())).isoformat()
    if span == month_of(first.year, first.month):
        return "in", f"{first:%Y-%m}"
    return ("in", f"{first:%Y}") if span == period("year", first) else None


def _season(match: re.Match[str], anchor: Anchor) -> Resolved:
    """Next, last or this season, with its year."""
    name, which, year = match["season"].lower(), match["which"].lower(), anchor.day.year
    month = SEASONS[name]
    if which == "next" and month <= anchor.day.month:
        year += 1
    if which == "last" and month + 3 > anchor.day.month:
        year -= 1
    return f"in the {name} of", str(year)


def _day_of_month(match: re.Match[str], anchor: Anchor) -> Resolved:
    """A day of the nearest month: "on the 13th"."""
    day = anchor.day.replace(day=int(match["day"]))
    if day > anchor.day if anchor.past else day < anchor.day:
        day = moved("month", -1 if anchor.past else 1, anchor.day).first.replace(day=day.day)
    return "on", day.isoformat()


# Dates that `pipeline.text.when` does not read.
OWN_FORMS: tuple[tuple[re.Pattern[str], Reader], ...] = (
    (re.compile(rf"(?:\b{PREP} )?\b(?P<which>next|last|this) (?P<season>{any_of(SEASONS)})\b",
                re.IGNORECASE), _season),
    (re.compile(rf"\b{PREP} the (?P<day>\d{{1,2}})(?:st|nd|rd|th)\b"
                r"(?! floor| street| grade| century| of)", re.IGNORECASE), _day_of_month),
)  # fmt: skip


def lift(clause: str) -> tuple[str, str]:
    """The clause without its date, and the date with its preposition.

    The date is "" unless the clause has exactly one.
    """
    matches = list(ABSOLUTE.finditer(clause))
    if len(matches) != 1:
        return clause, ""
    match = matches[0]
    rest = f"{clause[: match.start()]} {clause[match.end() :]}"
    return re.sub(r"\s+", " ", rest).strip(" ,"), match["when"].lower()


def since_span(clause: str, day: date) -> str:
    """The clause with a span up to now as its start: "for ten years" as "since 2016"."""

    def start(match: re.Match[str]) -> str:
        count, unit = number_of(match), UNITS[match["unit"].lower()]
        date_of = _written(moved(unit, -count, day), match[0], day)
        return f"since {date_of[1]}" if date_of else match[0]

    try:
        return FOR_SPAN.sub(start, clause)
    except (ValueError, OverflowError):
        return clause


def looks_back(clause: str) -> bool:
    """True if the clause's verb is a past form; "have booked" is usually about the future."""
    if re.search(r"\b(?:have|has|had) \w+ed\b", clause, re.IGNORECASE):
        return False
    start = re.findall(r"[a-z]+", clause.lower())[:6]
    if {"am", "is", "are", "will"} & set(start):
        return False
    return any(is_past(word) for word in start)


def day_and_month(value: str) -> str:
    """The form of birthdays: "2026-03-13" as "March 13"."""
    parsed = date.fromisoformat(value)
    return f"{parsed:%B} {parsed.day}"
