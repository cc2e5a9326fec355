"""Takes the date out of a clause: "I fly to Rome next Friday" on 2026-03-09 has "on 2026-03-13".

Formats: `on 2026-03-13`, `in 2026-06`, `in 2027`, `in the week of 2026-03-09` (its Monday), `on the
weekend of 2026-03-14`, `in the summer of 2025`. Times that `pipeline.text.times.when` does not read
stay in the clause. "For ten years" is "since 2016" in a state up to now.
"""

from __future__ import annotations

import re
from datetime import date

from pipeline.adapters.model_rules.words import is_past
from pipeline.text.times.dates import (
    MONTHS,
    NUMBER,
    SEASONS,
    SPACED_UNIT,
    WEEKDAYS,
    Span,
    any_of,
    period,
)
from pipeline.text.times.when import iso, times_of

# Prepositions that are kept, because they change the meaning of the date.
KEPT = ("by", "until", "till", "since", "before", "after", "around", "from", "to", "for")
PREP = rf"(?P<prep>on|in|at|starting|during|{'|'.join(KEPT)})"
# Words before a time that belong to it, or that the time starts with.
BEFORE = re.compile(
    rf"(?:\b(?:starting )?{PREP} )?(?:about |early |late )?"
    "(?:the (?P<of>week|weekend|winter) of )?(?P<next>next )?$",
    re.IGNORECASE,
)
OWN_PREP = re.compile(rf"{PREP} ", re.IGNORECASE)
# Names without a preposition are no dates, and "March 41st" and "May's" neither.
DAY = rf"{any_of(MONTHS)}|{any_of(WEEKDAYS)}"
BARE = re.compile(rf"{DAY}|\d{{4}}", re.IGNORECASE)
NO_TIME_AFTER = re.compile(r" \d{1,2}(?:st|nd|rd|th)?\b|['\u2019-]")
# The part of a day, which is left out, and its time.
PART = re.compile(
    r"(?: (?:morning|afternoon|evening|night)\b)?"
    r"(?P<clock> at \d{1,2}(?:[:.]\d\d)?(?: ?[ap]m\b| o'clock)?(?![\w:]))?(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)
SEASON = re.compile(rf"\b(?:{any_of(SEASONS)})\b", re.IGNORECASE)
# The start of a state that lasts: "has lived in Leeds for ten years".
LASTS = re.compile(r"\b(?:have|has) (?:been|had|known|taught|kept|\w+ed)\b", re.IGNORECASE)
FOR_SPAN = re.compile(rf"\bfor (?:about |over |almost )*({NUMBER} {SPACED_UNIT})", re.IGNORECASE)
# "My exam moved to Friday" is about a day ahead.
POSTPONED = re.compile(
    rf"\b(?:moved|postponed|pushed) (?:to|until) (?:the |next )?(?:{DAY}|\d)", re.IGNORECASE
)
# A date, and those that are about the present: "until 2026-03-13".
ISO, UP_TO = re.compile(r"\d{4}(?:-\d\d){0,2}"), ("by", "until", "till", "since", "before")


def lift(clause: str, today: date) -> tuple[str, str]:
    """The clause without its date, and the date with its preposition.

    The date is "" unless the clause has exactly one; several are written in their places.
    """
    if LASTS.search(clause):
        clause = FOR_SPAN.sub(r"since \1 ago", clause)
    dates: list[tuple[int, int, str]] = []
    for named in times_of(clause, today, ahead=_looks_ahead(clause)):
        own = OWN_PREP.match(clause, named.start, named.end)
        start = own.end() if own else named.start
        before, after = BEFORE.search(clause[:start]), clause[named.end :]
        marked = before and (before["prep"] or before["next"])
        bare = BARE.fullmatch(clause, start, named.end)
        if before and not (bare and (not marked or NO_TIME_AFTER.match(after))):
            written = _written(named.span, before, SEASON.search(clause, start, named.end))
            dates.append((before.start(), named.end, written))
    if len(dates) == 1 and dates[0][2]:
        [(start, end, written)] = dates
        part = PART.match(clause, end)
        clock, rest = (part["clock"] or "", part["rest"]) if part else ("", clause[end:])
        return " ".join(f"{clause[:start]} {rest}".split()).strip(" ,"), written + clock
    for start, end, written in reversed(dates):
        clause = f"{clause[:start]}{written}{clause[end:]}" if written else clause
    return clause, ""


def is_ahead(when: str, today: date) -> bool:
    """True if what is so "in 2026-05" is not so today."""
    day = ISO.search(when)
    ahead = day is not None and day[0] > today.isoformat()[: len(day[0])]
    return ahead and not when.startswith(UP_TO)


def _written(span: Span, before: re.Match[str], season: re.Match[str] | None) -> str:
    """A time in ISO form behind its preposition; "" for a span such as "the last two weeks"."""
    first, text, prep = span.first, iso(span), (before["prep"] or "").lower()
    if of := season[0] if season else before["of"]:
        return f"{prep or 'in'} the {of.lower()} of {text}"
    if " " not in text:
        default = "on" if span.is_day else "in"
    elif (span.last - first).days == 1:
        default, text = "on the weekend of", first.isoformat()
    elif span == period("week", first):
        default, text = "in the week of", first.isoformat()
    else:
        return ""
    return f"{prep if prep in KEPT else default} {text}"


def _looks_ahead(clause: str) -> bool:
    """True unless the clause has a "since", or its verb is a past form other than "booked"."""
    words = re.findall("[a-z]+", clause.lower())
    now = {"am", "is", "are", "will", "have"} & set(words[:6])
    if {"starting", "booked"} & set(words) or POSTPONED.search(clause):
        return True
    return "since" not in words and (bool(now) or not any(map(is_past, words[:6])))
