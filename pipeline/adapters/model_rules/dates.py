"""Makes relative dates absolute: "next Friday" on 2026-03-09 is "on 2026-03-13".

Formats: `on 2026-03-13` (a day), `in 2026-06` (a month), `in 2027` (a year), `in the week of
2026-03-09` (its Monday), `around 2026-03-23` (counted in weeks, or vague). A date that cannot be
computed is left as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial

from pipeline.adapters.model_rules.verbs import is_past
from pipeline.adapters.model_rules.words import NUMBERS

DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september",
    "october", "november", "december",
)  # fmt: skip
# First months of the seasons, by convention those of the northern hemisphere.
SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
# Prepositions that are kept, because they change the meaning of the date.
KEPT = ("by", "until", "till", "since", "before", "after", "around", "from", "to", "for")

DAY = "(?:" + "|".join(DAYS) + ")"
MONTH = "(?:" + "|".join(MONTHS) + "|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)"
COUNTED = r"(?:\d{1,3}|a few|some|" + "|".join(sorted(NUMBERS, key=len, reverse=True)) + ")"
PREP = (
    r"(?:\b(?P<prep>on|in|by|until|till|since|before|after|around|from|to|at|for|starting|during)"
    r" )?"
)
ABSOLUTE = re.compile(
    r",? ?\b(?P<when>(?:on|in|by|until|till|since|before|after|around|from|for)"
    r"(?: the (?:week|weekend|spring|summer|autumn|winter) of)? (?:\d{4}-\d\d(?:-\d\d)?|(?:19"
    r"|20)\d\d)"
    r"(?![\d-])(?: at \d{1,2}(?:[:.]\d\d)?(?: ?[ap]m\b| o'clock)?)?)",
    re.IGNORECASE,
)
FOR_SPAN = re.compile(
    rf"\bfor (?:about |over |almost |nearly |the (?:last|past) )*(?P<n>{COUNTED}) "
    r"(?P<unit>day|week|month|year)s?(?: already)?\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Anchor:
    """The day of a message, and if the clause is about the past (`past`) or the future."""

    day: date
    past: bool


# Result of a resolver: default preposition and value.
Resolved = tuple[str, str]
Resolver = Callable[[re.Match[str], Anchor], Resolved]


def month_number(name: str) -> int:
    """Number of a month, from 1, by its name or the first three letters."""
    return next(i for i, full in enumerate(MONTHS, 1) if full.startswith(name.lower()[:3]))


def count_of(word: str) -> int:
    """The number that a word stands for; 3 for vague words."""
    low = word.lower()
    # "a few" and "some" count as three; `vague` marks such dates with "around".
    return int(low) if low.isdigit() else NUMBERS.get(low, 3)


def add_months(day: date, months: int) -> date:
    """The first day of the month `months` away."""
    index = day.year * 12 + day.month - 1 + months
    return date(index // 12, index % 12 + 1, 1)


def by_month(day: date) -> Resolved:
    """The month of a day: `in 2026-03`."""
    return "in", day.strftime("%Y-%m")


def on_day(day: date) -> Resolved:
    """The day itself: `on 2026-03-13`."""
    return "on", day.isoformat()


def shift(anchor: Anchor, count: int, unit: str) -> Resolved:
    """The date `count` units from the anchor, only as exact as the unit."""
    match unit:
        case "day":
            return on_day(anchor.day + timedelta(days=count))
        case "week":
            return "around", (anchor.day + timedelta(weeks=count)).isoformat()
        case "month":
            return by_month(add_months(anchor.day, count))
        case _:
            return "in", f"{anchor.day.year + count:04d}"


def near_day(match: re.Match[str], anchor: Anchor) -> Resolved:
    """Today, tomorrow, yesterday and the days next to them, with a part of the day."""
    word = match["word"].lower()
    offset = -1 if word in ("yesterday", "last night") else int(word == "tomorrow")
    if word.startswith(("the day", "day")):
        offset = 2 if "after" in word else -2
    return on_day(anchor.day + timedelta(days=offset))


def weekday(match: re.Match[str], anchor: Anchor) -> Resolved:
    """A day of the week. `next` is the first such day after today, although usage differs."""
    word = (match["which"] or "").lower()
    gap = (DAYS.index(match["day"].lower()) - anchor.day.weekday()) % 7
    if word == "last" or (not word and anchor.past):
        return on_day(anchor.day - timedelta(days=(7 - gap) if gap else 7))
    # "next Friday" said on a Friday is a week away; "on Friday" or "this Friday" is today.
    return on_day(anchor.day + timedelta(days=gap or (7 if word == "next" else 0)))


def span(match: re.Match[str], anchor: Anchor) -> Resolved:
    """Next, last or this week, weekend, month or year."""
    step = {"last": -1, "past": -1, "this": 0}.get(match["which"].lower(), 1)
    unit = match["unit"].lower()
    monday = anchor.day - timedelta(days=anchor.day.weekday())
    if unit == "week":
        return "in the week of", (monday + timedelta(weeks=step)).isoformat()
    if unit == "weekend":
        return "on the weekend of", (monday + timedelta(weeks=step, days=5)).isoformat()
    return shift(anchor, step, unit)


def season(match: re.Match[str], anchor: Anchor) -> Resolved:
    """Next, last or this season, with its year."""
    name, which = match["season"].lower(), match["which"].lower()
    starts = date(anchor.day.year, SEASONS[name], 1)
    year = anchor.day.year
    if which == "next" and starts <= anchor.day:
        year += 1
    if which == "last" and add_months(starts, 3) > anchor.day:
        year -= 1
    return f"in the {name} of", str(year)


def ago(match: re.Match[str], anchor: Anchor) -> Resolved:
    """A number of units before the anchor: "two weeks ago"."""
    return vague(match, shift(anchor, -count_of(match["n"]), match["unit"].lower()))


def ahead(match: re.Match[str], anchor: Anchor) -> Resolved:
    """A number of units after the anchor: "three days from now", "in a month"."""
    return vague(match, shift(anchor, count_of(match["n"]), match["unit"].lower()))


def vague(match: re.Match[str], resolved: Resolved) -> Resolved:
    """The date, marked with "around" if its number is vague."""
    return ("around", resolved[1]) if match["n"].lower() in ("a few", "some") else resolved


def nearest_year(month: int, day: int, anchor: Anchor) -> date:
    """The next such date, or the latest one if the clause is about the past."""
    guess = date(anchor.day.year, month, day)
    if anchor.past and guess > anchor.day:
        return guess.replace(year=guess.year - 1)
    return guess.replace(year=guess.year + 1) if not anchor.past and guess < anchor.day else guess


def calendar_day(match: re.Match[str], anchor: Anchor) -> Resolved:
    """A day and a month, with or without a year: "13 March", "March 13, 2026"."""
    month, day = month_number(match["month"]), int(match["dom"])
    if match["year"]:
        return on_day(date(int(match["year"]), month, day))
    return on_day(nearest_year(month, day, anchor))


def calendar_month(match: re.Match[str], anchor: Anchor) -> Resolved:
    """A month, with or without a year: "in March", "last May"."""
    month = month_number(match["month"])
    which = (match["which"] or "").lower()
    if match["year"]:
        return by_month(date(int(match["year"]), month, 1))
    past = which == "last" or (not which and (anchor.past or (match["prep"] or "") == "since"))
    first = date(anchor.day.year, month, 1)
    this_month = anchor.day.replace(day=1)
    if (past and first > this_month) or (which == "last" and first == this_month):
        return by_month(first.replace(year=first.year - 1))
    return by_month(
        first.replace(year=first.year + 1) if not past and first < this_month else first
    )


def day_of_month(match: re.Match[str], anchor: Anchor) -> Resolved:
    """A day of the nearest month: "on the 13th"."""
    wanted = int(match["dom"])
    nearest = anchor.day.replace(day=wanted)
    if anchor.past and nearest > anchor.day:
        return on_day(add_months(anchor.day, -1).replace(day=wanted))
    if not anchor.past and nearest < anchor.day:
        return on_day(add_months(anchor.day, 1).replace(day=wanted))
    return on_day(nearest)


def as_said(match: re.Match[str], _: Anchor) -> Resolved:
    """An absolute date, or a year."""
    value = match["iso"]
    return ("on" if len(value) == 10 else "in"), value


PART = r"(?: (?:morning|afternoon|evening|night))?"
ORDINAL = r"(?P<dom>\d{1,2})(?:st|nd|rd|th)?"
YEAR = r"(?:,? (?P<year>(?:19|20)\d\d))?"
# Tried in this order; the first matching row wins.
TABLE: tuple[tuple[str, Resolver], ...] = (
    (r"(?P<iso>(?:19|20)\d\d-\d\d-\d\d)\b", as_said),
    (rf"(?:the )?{ORDINAL}(?: of)? (?P<month>{MONTH})\b{YEAR}", calendar_day),
    (rf"(?P<month>{MONTH}) {ORDINAL}\b{YEAR}", calendar_day),
    (rf"(?P<word>(?:the )?day (?:after tomorrow|before yesterday)|today|tonight|tomorrow|yesterday"
     rf"|last night|this (?:morning|afternoon|evening)){PART}\b", near_day),
    (rf"(?P<which>next|last|this(?: coming)?|coming) (?P<day>{DAY})\b{PART}", weekday),
    (r"(?:the )?(?P<which>next|last|this|coming|past) (?P<unit>week|weekend|month|year)\b", span),
    (r"(?P<which>next|last|this) (?P<season>spring|summer|autumn|fall|winter)\b", season),
    (rf"(?:about )?(?P<n>{COUNTED}) (?P<unit>day|week|month|year)s? ago\b", ago),
    (rf"(?P<n>{COUNTED}) (?P<unit>day|week|month|year)s? from (?:now|today)\b", ahead),
)  # fmt: skip
# Dates only after a preposition: "May", "Sunday roast" and "2019" alone are not dates.
AFTER_PREP: tuple[tuple[str, Resolver], ...] = (
    (rf"(?P<which>)(?P<day>{DAY})\b(?!s| roast){PART}", weekday),
    (rf"(?:early |late |mid-?|the (?:end|beginning|start) of )?(?P<which>next |last |this )?"
     rf"(?P<month>{MONTH})\b(?! \d{{1,2}}(?:st|nd|rd|th)?\b)(?:(?: of)? (?P<year>(?:19|20)\d\d)\b)?"
     r"(?!')", calendar_month),
    (r"the (?P<dom>\d{1,2})(?:st|nd|rd|th)\b(?! floor| street| grade| century| of)", day_of_month),
    (r"(?P<iso>(?:19|20)\d\d)\b(?!-)", as_said),
)  # fmt: skip
SPAN_AHEAD = rf"\bin (?:about )?(?P<n>{COUNTED}) (?P<unit>day|week|month|year)s?(?:' time)?\b"

FLAGS = re.IGNORECASE
RECURRING = r"(?<!every )(?<!each )"
COMPILED: tuple[tuple[re.Pattern[str], Resolver], ...] = (
    (re.compile(f"(?P<prep>){SPAN_AHEAD}", FLAGS), ahead),
    *((re.compile(PREP + RECURRING + r"\b" + pattern, FLAGS), do) for pattern, do in TABLE),
    *((re.compile(PREP.removesuffix("?") + pattern, FLAGS), do) for pattern, do in AFTER_PREP),
)


def absolute(clause: str, anchor: Anchor) -> str:
    """The clause with every date that can be computed replaced by its ISO form."""
    for pattern, resolve in COMPILED:
        clause = pattern.sub(partial(_written, anchor, resolve), clause)
    return clause


def _written(anchor: Anchor, resolve: Resolver, match: re.Match[str]) -> str:
    """The absolute date of one match with its preposition, or the match if no such date exists."""
    try:
        default, value = resolve(match, anchor)
    except (ValueError, OverflowError):  # 31 February, or a year off the calendar
        return match[0]
    prep = (match["prep"] or "").lower()
    if prep in KEPT:
        return f"{prep} {value}"
    return f"{default} {value}"


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
        count = count_of(match["n"])
        return "since " + shift(Anchor(day, past=True), -count, match["unit"].lower())[1]

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
    return f"{MONTHS[parsed.month - 1].capitalize()} {parsed.day}"
