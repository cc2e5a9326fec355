"""Takes the date out of a clause: "I fly to Rome next Friday" on 2026-03-09 has "on 2026-03-13".

Formats: `on 2026-03-13`, `in 2026-06`, `in 2027`, `in the week of 2026-03-09` (its Monday), `on the
weekend of 2026-03-14`, `in the summer of 2025`. Times that `pipeline.text.when` does not read stay
in the clause, but for "last summer", "on the 14th", and "for ten years" of a state up to now.
"""

from __future__ import annotations

import re
from datetime import date

from pipeline.adapters.model_rules.verbs import is_past
from pipeline.text.dates import MONTHS, NUMBER, SPACED_UNIT, UNITS, WEEKDAYS, Span, any_of, period
from pipeline.text.when import iso, moved, number_of, times_of

# First months of the seasons, by convention those of the northern hemisphere.
SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
# Prepositions that are kept, because they change the meaning of the date.
KEPT = ("by", "until", "till", "since", "before", "after", "around", "from", "to", "for")
PREP = rf"(?P<prep>on|in|at|starting|during|{'|'.join(KEPT)})"
# Words before a time that belong to it, or that the time starts with.
BEFORE = re.compile(
    rf"(?:\b(?:starting )?{PREP} )?"
    r"(?:about |(?:early|late|mid|the (?:end|beginning|start) of)[ -])?"
    rf"(?:the (?:(?P<of>week|weekend|{any_of(SEASONS)}) of )?)?(?P<next>next )?$",
    re.IGNORECASE,
)
OWN_PREP = re.compile(rf"{PREP} ", re.IGNORECASE)
# Names without a preposition are no dates, and "March 41st", "Sunday roast" and "May's" neither.
BARE = re.compile(rf"{any_of(MONTHS)}|{any_of(WEEKDAYS)}|\d{{4}}", re.IGNORECASE)
NO_TIME_AFTER = re.compile(r" \d{1,2}(?:st|nd|rd|th)?\b| roast\b|['\u2019-]")
PART = re.compile(r" (?:morning|afternoon|evening|night)\b", re.IGNORECASE)
CLOCK = re.compile(r" at \d{1,2}(?:[:.]\d\d)?(?: ?[ap]m\b| o'clock)?(?![\w:])", re.IGNORECASE)
SEASON = re.compile(
    rf"(?:\b{PREP} )?\b(?P<which>next|last|this) (?P<season>{any_of(SEASONS)})\b", re.IGNORECASE
)
DAY_OF_MONTH = re.compile(
    rf"\b{PREP} the (?P<day>\d{{1,2}})(?:st|nd|rd|th)\b(?! floor| street| grade| century| of)",
    re.IGNORECASE,
)
FOR_SPAN = re.compile(
    rf"\bfor (?:about |over |almost |nearly |the (?:last|past) )*{NUMBER} {SPACED_UNIT}",
    re.IGNORECASE,
)
# A date, and those that are about the present: "until 2026-03-13".
ISO, UP_TO = re.compile(r"\d{4}(?:-\d\d){0,2}"), ("by", "until", "till", "since", "before")
# "My exam moved to Friday" is about a day ahead.
POSTPONED = re.compile(
    r"\b(?:moved|postponed|rescheduled|delayed|pushed(?: back)?|brought forward) (?:to|until|till)"
    rf" (?:the |next |this )?(?:{any_of(WEEKDAYS)}|{any_of(MONTHS)}|\d)",
    re.IGNORECASE,
)
UP_TO_NOW = re.compile(r"\b(?:have|has) (?:been|had|known|taught|kept|\w+ed)\b", re.IGNORECASE)


def lift(clause: str, today: date) -> tuple[str, str]:
    """The clause without its date, and the date with its preposition.

    The date is "" unless the clause has exactly one; several are written in their places.
    """
    ahead = _looks_ahead(clause)
    clause = SEASON.sub(lambda match: _season(match, today), clause)
    clause = DAY_OF_MONTH.sub(lambda match: _day_of_month(match, today, ahead=ahead), clause)
    if UP_TO_NOW.search(clause):
        clause = FOR_SPAN.sub(lambda match: _since(match, today), clause)
    dates = []
    for named in times_of(clause, today, ahead=_looks_ahead(clause)):
        own = OWN_PREP.match(clause, named.start, named.end)
        start = own.end() if own else named.start
        before, after = BEFORE.search(clause[:start]), clause[named.end :]
        marked = before and (before["prep"] or before["next"])
        bare = BARE.fullmatch(clause, start, named.end)
        if before and not (bare and (not marked or NO_TIME_AFTER.match(after))):
            part = PART.match(clause, named.end)
            end = part.end() if part else named.end
            dates.append((before.start(), end, _written(named.span, before)))
    if len(dates) == 1 and dates[0][2]:
        [(start, end, written)] = dates
        clock = CLOCK.match(clause, end)
        end, written = (clock.end(), written + clock[0]) if clock else (end, written)
        return " ".join(f"{clause[:start]} {clause[end:]}".split()).strip(" ,"), written
    for start, end, written in reversed(dates):
        clause = f"{clause[:start]}{written}{clause[end:]}" if written else clause
    return clause, ""


def is_ahead(when: str, today: date) -> bool:
    """True if what is so "in 2026-05" is not so today."""
    day = ISO.search(when)
    ahead = day is not None and day[0] > today.isoformat()[: len(day[0])]
    return ahead and not when.startswith(UP_TO)


def _written(span: Span, before: re.Match[str]) -> str:
    """A time in ISO form behind its preposition; "" for a span such as "the last two weeks"."""
    first, text, prep = span.first, iso(span), (before["prep"] or "").lower()
    if before["of"]:
        return f"{prep or 'in'} the {before['of'].lower()} of {text}"
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
    """True unless the clause has a "since", or its verb is a past form other than "have booked"."""
    words = re.findall("[a-z]+", clause.lower())
    now = {"am", "is", "are", "will", "have"} & set(words[:6])
    if POSTPONED.search(clause) or "starting" in words:
        return True
    return "since" not in words and (bool(now) or not any(map(is_past, words[:6])))


def _season(match: re.Match[str], today: date) -> str:
    """Next, last or this season, with its year: "in the summer of 2025"."""
    name, which, year = match["season"].lower(), match["which"].lower(), today.year
    if which == "next" and SEASONS[name] <= today.month:
        year += 1
    if which == "last" and SEASONS[name] + 3 > today.month:
        year -= 1
    return f"{match['prep'] or 'in'} the {name} of {year}"


def _day_of_month(match: re.Match[str], today: date, *, ahead: bool) -> str:
    """A day of the nearest month: "on the 14th"; the match if the month has no such day."""
    try:
        day = today.replace(day=int(match["day"]))
        if day < today if ahead else day > today:
            day = moved("month", 1 if ahead else -1, today).first.replace(day=day.day)
    except ValueError:
        return match[0]
    return f"{match['prep']} {day.isoformat()}"


def _since(match: re.Match[str], today: date) -> str:
    """A span up to now as its start: "for ten years" as "since 2016"."""
    try:
        span = moved(UNITS[match["unit"].lower()], -number_of(match), today)
    except (ValueError, OverflowError):
        return match[0]
    return f"since {span.first.isoformat() if ' ' in iso(span) else iso(span)}"
