"""Dates: days and periods that a question names, read without a model.

    "in May 2023"          that month          "on 7 May"          that day, of any year
    "last March"           before the question "yesterday"         the day before it
    "last summer"          June to August      "on the 14th"       the day of the nearest month
    "three weeks ago"      that week           "before the wedding"  nothing: it stays text

English, German, Spanish and Chinese. Uncertain words are not dates: "may" is a month only if its
capital letter or the words around it show that, and "this spring" is no time before "roll".
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from itertools import islice

from pipeline.text.word_lists import STOP_WORDS

# Closeness of a moment to the time in the question: 1 is the best.
# Source: the anchor recipe on LoCoMo, whose date term is 0.3 near a named day, 0.2 in the month,
# 0.12 in the first days of the next month (people talk about things after they happened), and x 0.3
# in another year.
NEAR_THE_DAY, IN_THE_SPAN, SOON_AFTER, OTHER_YEAR = 1.0, 2 / 3, 0.4, 0.3
DAYS_AROUND, DAYS_AFTER = 7, 12
# Maximum number of times read from a text: every candidate is compared with each.
MOST_SPANS = 8
# Characters around the name of a month or of a season that show if it is one.
MOST_AROUND = 60

MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "january jan januar jänner enero",
            "february feb februar febrero",
            "march mar märz maerz marzo",
            "april apr abril",
            "may mai mayo",
            "june jun juni junio",
            "july jul juli julio",
            "august aug agosto",
            "september sep sept septiembre setiembre",
            "october oct oktober okt octubre",
            "november nov noviembre",
            "december dec dezember dez diciembre",
        ),
        start=1,
    )
    for name in names.split()
}
# Months that are also other words or names: they count only next to a word of dates ("in May"), the
# first two also with a capital letter inside a sentence.
CAPITALISED = {"may", "march"}
AMBIGUOUS = CAPITALISED | {"mar", "mai", "sep", "dec", "jan", "jun"}
WEEKDAYS = {
    name: number
    for number, names in enumerate(
        (
            "monday montag lunes",
            "tuesday dienstag martes",
            "wednesday mittwoch miércoles",
            "thursday donnerstag jueves",
            "friday freitag viernes",
            "saturday samstag sábado",
            "sunday sonntag domingo",
        )
    )
    for name in names.split()
}
NUMBERS = {
    word: number
    for number, words in enumerate(
        (
            "a an one ein eine einem einer un una 一",
            "two zwei dos 两 二",
            "three drei tres 三",
            "four vier cuatro 四",
            "five fünf cinco 五",
            "six sechs seis 六",
            "seven sieben siete 七",
            "eight acht ocho 八",
            "nine neun nueve 九",
            "ten zehn diez 十",
        ),
        start=1,
    )
    for word in words.split()
}
UNITS = {
    name: unit
    for unit, names in {
        "day": "day days tag tage tagen día días dia dias 天",
        "week": "week weeks woche wochen semana semanas 周 星期",
        "month": "month months monat monate monaten mes meses 个月",
        "year": "year years jahr jahre jahren año años 年",
    }.items()
    for name in names.split()
}
# Seasons by their first months, by convention those of the northern hemisphere.
SEASONS = {
    name: month
    for month, names in {
        3: "spring frühling frühjahr primavera",
        6: "summer sommer verano",
        9: "autumn fall herbst otoño",
        12: "winter invierno",
    }.items()
    for name in names.split()
}
# Phrases, with the number of days back of the first and of the last day.
PHRASES = {
    r"\b(?:(?:the )?day before yesterday|vorgestern|anteayer)\b|前天": (2, 2),
    r"\b(?:yesterday|last night|gestern|ayer|anoche)\b|昨天|昨晚": (1, 1),
    r"\b(?:today|tonight|heute|hoy)\b|今天": (0, 0),
    r"\b(?:recently|lately|kürzlich|neulich|recientemente|últimamente)\b|最近": (30, 0),
}
# The previous period, the current one and the next; in Spanish also after the noun.
LAST = r"last|previous|letzte[nrsm]?|vorige[nrsm]?|vergangene[nrsm]?|el pasado|la pasada|上个?"
THIS = r"this|current|diese[nrsm]?|est[ea]|这个?|本"
NEXT = r"next|coming|nächste[nrsm]?|kommende[nrsm]?|el próximo|la próxima|próxim[oa]"
AGO_BEFORE, AGO_AFTER = r"vor|hace", r"ago|previously|以?前|之前"


@dataclass(frozen=True, slots=True)
class Span:
    """Days from `first` to `last`; `any_year` if the question names no year.

    `is_season`: named as a season, whose months depend on the hemisphere.
    """

    first: date
    last: date
    any_year: bool = False
    is_season: bool = field(default=False, compare=False)

    @property
    def is_day(self) -> bool:
        """Tell if the span is a single day."""
        return self.first == self.last


def spans(text: str, now: datetime) -> tuple[Span, ...]:
    """Return the times that a question names, relative to `now`; at most 8."""
    today = now.date()
    unique: dict[Span, None] = {}
    for pattern, read in _OF_QUESTIONS:
        for match in list(islice(pattern.finditer(text), MOST_SPANS)):
            if len(unique) == MOST_SPANS:
                return tuple(unique)
            if (span := read_match(read, match, today)) is not None:
                unique[span] = None
                # Remove the match, so that "last March" does not also match as any March.
                text = text[: match.start()] + "\0" * len(match[0]) + text[match.end() :]
    return tuple(unique)


def closeness(wanted: Sequence[Span], when: datetime) -> float:
    """Return the closeness of a moment to the best of these times, 0..1."""
    if not wanted:
        return 0.0
    day = when.astimezone(UTC).date()
    return max(_closeness(span, day) for span in wanted)


def _closeness(span: Span, day: date) -> float:
    if span.any_year:
        years = (day.year - 1, day.year, day.year + 1)
        there = (moved for year in years if (moved := _moved(span, year)))
        return max((_in_year(moved, day) for moved in there), default=0.0)
    same = _moved(span, day.year)
    elsewhere = OTHER_YEAR * _in_year(same, day) if same and not _spans_years(span) else 0.0
    return max(_in_year(span, day), elsewhere)


def _in_year(span: Span, day: date) -> float:
    if span.is_day and abs((day - span.first).days) <= DAYS_AROUND:
        return NEAR_THE_DAY
    whole = month_of(span.first.year, span.first.month) if span.is_day else span
    if whole.first <= day <= whole.last:
        return IN_THE_SPAN
    return SOON_AFTER if 0 < (day - whole.last).days <= DAYS_AFTER else 0.0


def _spans_years(span: Span) -> bool:
    return (span.last - span.first).days > 300


def _moved(span: Span, year: int) -> Span | None:
    """Return the same days in another year; None if that year has no such day."""
    try:
        first = span.first.replace(year=year)
        return Span(first, first + (span.last - span.first))
    except (ValueError, OverflowError):  # 29 February, or beyond the year 9999
        return None


def month_of(year: int, month: int) -> Span:
    """The days of a month."""
    return Span(date(year, month, 1), date(year, month, calendar.monthrange(year, month)[1]))


# ── readers: a match and today's date -> a span, or None if the match is no date ────────────────

Reader = Callable[["re.Match[str]", date], Span | None]


def read_match(read: Reader, match: re.Match[str], today: date) -> Span | None:
    """The span of a match; None if it names no date, or one that the calendar lacks."""
    try:
        return read(match, today)
    except (ValueError, OverflowError):  # 31 June, the year 0
        return None


def _iso(match: re.Match[str], today: date) -> Span:
    year, month = int(match["year"]), int(match["month"])
    if match["day"] is None:
        return month_of(year, month)
    day = date(year, month, int(match["day"]))
    return Span(day, day)


def _named(match: re.Match[str], today: date) -> Span | None:
    """Read a month's name, with a day, a year or neither."""
    groups = match.groupdict()
    day, year = groups.get("day"), groups.get("year")
    name = match["name"]
    if not (day or year or _is_month(name, match)):
        return None
    month = MONTHS[name.lower()]
    # 2000 is a leap year, so that 29 February exists.
    span = month_of(int(year) if year else 2000, month)
    if day:
        on = span.first.replace(day=int(day))
        span = Span(on, on)
    return Span(span.first, span.last, any_year=not year)


def _is_month(name: str, match: re.Match[str]) -> bool:
    if name.lower() not in AMBIGUOUS:
        return True
    before = match.string[max(0, match.start() - MOST_AROUND) : match.start()].split()
    if before and before[-1].lower() in _DATE_WORDS:
        return True
    inside = bool(before) and not before[-1].endswith((".", "!", "?"))
    return inside and name[0].isupper() and name.lower() in CAPITALISED


def _season(which: int) -> Reader:
    """A reader of the last season that is over, the next that begins, or (0) that of this year."""

    def read(match: re.Match[str], today: date) -> Span | None:
        month = SEASONS[match["season"].lower()]
        # In January and February it is the winter of the year before.
        year = today.year - (month == 12 and today.month < 3)
        season = _season_of(year, month)
        if which < 0 and season.last >= today:
            year -= 1
        elif which > 0 and season.first <= today:
            year += 1
        return _season_of(year, month) if _is_season(match) else None

    return read


def _season_of(year: int, month: int) -> Span:
    """The season that begins with a month."""
    first = date(year, month, 1)
    return Span(first, moved("month", 2, first).last, is_season=True)


def _is_season(match: re.Match[str]) -> bool:
    """True unless the words around show a noun or a verb: "this spring roll", "did Ann last fall".

    "The last summer" is not the one before today, and the German "Fall" is a case.
    """
    which, verb = match[0].lower().split()[0], match["season"].lower() in _VERBS
    before = match.string[max(0, match.start() - MOST_AROUND) : match.start()].lower().split()
    if not _DETERMINERS.isdisjoint(before[-1:]) or (verb and which not in _WHICH):
        return False
    acts = not (_PRONOUNS.isdisjoint(before[-1:]) and _AUXILIARIES.isdisjoint(before[-2:-1]))
    if verb and which == "last" and acts:
        return False
    return _ends(match) or not (verb or which == "this")


def _ends(match: re.Match[str]) -> bool:
    """True if no noun or verb follows: only a mark, a function word or nothing."""
    after = re.match(r" (\w+)", match.string[match.end() : match.end() + MOST_AROUND])
    return after is None or after[1].lower() in STOP_WORDS | _CONJUNCTIONS


def _season_of_year(match: re.Match[str], today: date) -> Span | None:
    """The season of a year. "Winter of 2025" may be of either end: only "winter of 2025/26"."""
    month, year, end = SEASONS[match["season"].lower()], int(match["year"]), match["end"]
    if month == 12:
        return _season_of(year, month) if end and int(end) == (year + 1) % 100 else None
    return None if end else _season_of(year, month)


def day_of_month(*, ahead: bool) -> Reader:
    """A reader of "on the 14th": the next such day from today on if `ahead`, else the last."""

    def read(match: re.Match[str], today: date) -> Span | None:
        day = today.replace(day=int(match["day"]))
        if day < today if ahead else day > today:
            day = moved("month", 1 if ahead else -1, today).first.replace(day=day.day)
        return Span(day, day) if _ends(match) else None

    return read


def _asked_day(match: re.Match[str], today: date) -> Span | None:
    """The day of a month by the tense of the question: "What is on the 14th?" is ahead."""
    ahead = _PRESENT.search(match.string) and not _PAST.search(match.string)
    return day_of_month(ahead=bool(ahead))(match, today)


_VERBS, _WHICH = ("spring", "fall"), ("last", "previous", "this", "current", "next", "coming")
_DETERMINERS = frozenset(["a", "the", "my", "your", "his", "her", "its", "our", "their"])
_PRONOUNS = frozenset(["i", "you", "he", "she", "it", "we", "they"])
_AUXILIARIES = frozenset(["did", "do", "does", "has", "have", "had"])
_CONJUNCTIONS = frozenset(["after", "before", "because", "until", "near", "too", "again"])
_PAST = re.compile(r"\b(?:did|was|were|had)\b", re.IGNORECASE)
_PRESENT = re.compile(
    r"\b(?:is|are|am|will|do|does|have|has)\b|['\u2019](?:s|re|m|ll)\b", re.IGNORECASE
)
_BESIDE_MONTHS = "in of since during until till by im seit bis en de desde hasta"
_DATE_WORDS = frozenset(_BESIDE_MONTHS.split())


def _chinese(match: re.Match[str], today: date) -> Span:
    year, month = match["year"], int(match["month"])
    span = month_of(int(year) if year else 2000, month)
    if match["day"]:
        on = span.first.replace(day=int(match["day"]))
        span = Span(on, on)
    return Span(span.first, span.last, any_year=not year)


def _year(match: re.Match[str], today: date) -> Span:
    year = int(match["year"])
    return Span(date(year, 1, 1), date(year, 12, 31))


def _last_month(match: re.Match[str], today: date) -> Span:
    month = MONTHS[match["name"].lower()]
    return month_of(today.year if month < today.month else today.year - 1, month)


def _last_weekday(match: re.Match[str], today: date) -> Span:
    back = (today.weekday() - WEEKDAYS[match["weekday"].lower()] - 1) % 7 + 1
    day = today - timedelta(days=back)
    return Span(day, day)


def _this_period(match: re.Match[str], today: date) -> Span:
    return period(UNITS[match["unit"].lower()], today)


def _last_period(match: re.Match[str], today: date) -> Span:
    unit = UNITS[match["unit"].lower()]
    return period(unit, period(unit, today).first - timedelta(days=1))


def period(unit: str, day: date) -> Span:
    """Return the calendar week, month or year that contains the day."""
    match unit:
        case "week":
            monday = day - timedelta(days=day.weekday())
            return Span(monday, monday + timedelta(days=6))
        case "month":
            return month_of(day.year, day.month)
        case "year":
            return Span(date(day.year, 1, 1), date(day.year, 12, 31))
        case _:
            return Span(day, day)


def number_of(match: re.Match[str]) -> int:
    """The number of a match of NUMBER."""
    word = match["number"].lower()
    return NUMBERS.get(word) or int(word)


def moved(unit: str, count: int, today: date) -> Span:
    """The day, or the calendar week, month or year, `count` units from today."""
    match unit:
        case "day":
            return period(unit, today + timedelta(days=count))
        case "week":
            return period(unit, today + timedelta(weeks=count))
        case "month":
            months = today.year * 12 + today.month - 1 + count
            return month_of(months // 12, months % 12 + 1)
        case _:
            return period(unit, date(today.year + count, 1, 1))


def _ago(match: re.Match[str], today: date) -> Span:
    """By the calendar: 30 days before the 31st are in the same month."""
    return moved(UNITS[match["unit"].lower()], -number_of(match), today)


def _since(match: re.Match[str], today: date) -> Span:
    return Span(today - _length(match), today)


def _length(match: re.Match[str]) -> timedelta:
    days = {"day": 1, "week": 7, "month": 30, "year": 365}[UNITS[match["unit"].lower()]]
    return timedelta(days=days * number_of(match))


def days_back(days: tuple[int, int]) -> Reader:
    """A reader of a phrase: the days from the first to the last number of days before today."""

    def read(match: re.Match[str], today: date) -> Span:
        return Span(today - timedelta(days=days[0]), today - timedelta(days=days[1]))

    return read


def any_of(words: Iterable[str]) -> str:
    """A pattern of these words, the longest first."""
    return "|".join(sorted(map(re.escape, words), key=len, reverse=True))


_MONTH = rf"(?P<name>{any_of(MONTHS)})\b\.?"
_DAY = r"(?P<day>[0-3]?\d)(?:st|nd|rd|th|\.)?"
YEAR = r"(?P<year>(?:19|20)\d\d)"
_OF = r"(?: of| de| del)?"
NUMBER = rf"(?P<number>\d{{1,3}}|{any_of(NUMBERS)})"
UNIT = rf"(?P<unit>{any_of(UNITS)})"
SPACED_UNIT = rf"{UNIT}(?!\w)"
_SEASON = rf"(?P<season>{any_of(SEASONS)})\b(?!['\u2019-])"
# The day of a month that is not named.
ON_THE_DAY = (
    r"\b(?:on|by|until|till|since|before|after|(?:(?<=moved )|(?<=pushed )|(?<=postponed ))to)"
    r" the (?P<day>[0-3]?\d)(?:st|nd|rd|th)\b(?!['\u2019-]| (?:of|and|or)\b)"
)

# The longest form first.
READERS: tuple[tuple[re.Pattern[str], Reader], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), read)
    for pattern, read in (
        (r"\b(?P<year>(?:19|20)\d\d)-(?P<month>[01]\d)(?:-(?P<day>[0-3]\d))?\b", _iso),
        (r"(?:(?P<year>(?:19|20)\d\d)年)?(?P<month>1?\d)月(?:(?P<day>[1-3]?\d)[日号])?", _chinese),
        (rf"\b(?:{LAST}) {_MONTH}(?! \d)", _last_month),
        (rf"\b(?:the )?{_SEASON}{_OF} {YEAR}(?:/(?P<end>\d\d))?\b", _season_of_year),
        (rf"\b(?:{LAST}) {_SEASON}", _season(-1)),
        (rf"\b{_SEASON} pasad[ao]\b", _season(-1)),
        (rf"\b(?:{THIS}) {_SEASON}", _season(0)),
        (rf"\b(?:{NEXT}) {_SEASON}", _season(1)),
        (rf"\b{_SEASON} que viene\b", _season(1)),
        (rf"\b(?:the )?{_DAY}{_OF} {_MONTH}(?:,?{_OF} {YEAR}\b)?", _named),
        (rf"\b{_MONTH} {_DAY}(?!\d)(?:,? {YEAR}\b)?", _named),
        (rf"\b{_MONTH}(?:,?{_OF} {YEAR}\b)?", _named),
        *((pattern, days_back(days)) for pattern, days in PHRASES.items()),
        (rf"\b(?:{LAST}) (?P<weekday>{any_of(WEEKDAYS)})\b", _last_weekday),
        (rf"\b(?:past|last|letzten|últimos|últimas) {NUMBER} {SPACED_UNIT}", _since),
        (rf"\b{NUMBER} {SPACED_UNIT} (?:{AGO_AFTER})\b", _ago),
        (rf"\b(?:{AGO_BEFORE}) {NUMBER} {SPACED_UNIT}", _ago),
        (rf"{NUMBER}{UNIT}(?:{AGO_AFTER})", _ago),
        (rf"\b(?:{LAST}) {SPACED_UNIT}", _last_period),
        (rf"\b{SPACED_UNIT} (?:pasad[ao])\b", _last_period),
        (rf"(?:上个?|去){UNIT}", _last_period),
        (rf"\b(?:{THIS}) {SPACED_UNIT}", _this_period),
        (rf"(?:这个?|本|今){UNIT}", _this_period),
        (rf"\b{YEAR}\b", _year),
    )
)
_OF_QUESTIONS = (*READERS, (re.compile(ON_THE_DAY, re.IGNORECASE), _asked_day))
