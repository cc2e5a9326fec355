"""Times that a statement names, relative to when it was said: "next Friday", "vor zwei Wochen".

    resolve("last May", said_at)                 May of the year before
    dated("Maya met Jon yesterday.", said_at)    "Maya met Jon yesterday (2026-11-21)."

English, German, Spanish and Chinese. The reader of questions (dates.py) looks back; this one looks
ahead too. Uncertain words are no dates: the text stays as it is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from itertools import islice

from pipeline.text.times.dates import (
    NEXT,
    NUMBER,
    ON_THE_DAY,
    READERS,
    SPACED_UNIT,
    UNIT,
    UNITS,
    WEEKDAYS,
    YEAR,
    Reader,
    Span,
    any_of,
    day_of_month,
    days_back,
    month_of,
    moved,
    number_of,
    period,
    read_match,
)

# Repeated and vague times, and other words that look like times.
NO_TIME = re.compile(
    r"\b(?:every|each|jede[nrsm]?|cada|todos los|todas las) \w+"
    rf"|\b(?:{any_of(WEEKDAYS)})s\b"
    r"|每(?:个|逢)?(?:天|周|月|年|星期|礼拜)[一二三四五六日天]?"
    r"|\b(?:recently|lately|soon|kürzlich|neulich|bald|recientemente|últimamente|pronto)\b"
    r"|最近|不久|\bhoy en día\b|\b(?:may|march) (?:be|have|not)\b",
    re.IGNORECASE,
)
CHINESE_DAYS = {"一": 0, "二": 1, "三": 2, "四": 3, "五": 4, "六": 5, "日": 6, "天": 6}
LAST = r"last|past|letzte[nrsm]?|vorige[nrsm]?|vergangene[nrsm]?"
THIS = r"this|diese[nrsm]?|est[ea]"
DAY = rf"(?P<weekday>{any_of(WEEKDAYS)})\b"
CHINESE_DAY = r"(?:周|星期|礼拜)(?P<weekday>[一二三四五六日天])"
WEEKEND = r"(?:weekend|wochenende|fin de semana)\b"
ISO_DAY = re.compile(r"(?<![\d-])(?:19|20)\d\d-[01]\d-[0-3]\d(?![\d-])")
END = " .!?。！？…"
IDEOGRAPH = re.compile(r"[\u4e00-\u9fff]")
# Maximum number of times read from a text; the rest stays as it is.
MOST_TIMES = 40
# A day that a model computed is corrected if it is at most this far from the one computed here.
MOST_DAYS_OFF = 7


@dataclass(frozen=True, slots=True)
class NamedTime:
    """A time in a text and its position. `relative`: words such as "yesterday", without a year."""

    start: int
    end: int
    span: Span
    relative: bool


def resolve(words: str, said_at: datetime, *, ahead: bool = False) -> Span | None:
    """The first time that the words name; None for a vague or repeated time, or without one.

    `ahead`: the words are about the future, so "in May" is the next May and not the last one.
    """
    today = said_at.date()
    named = _named_times(words, today, ahead=ahead, only=True)
    return _placed(named[0].span, today, ahead=ahead) if named else None


def dated(
    text: str, said_at: datetime, *, when: str | None = None, ahead: bool = False, source: str = ""
) -> tuple[str, datetime | None]:
    """The text with the dates of its relative times, and the start of the time it is about (UTC).

    The day of `said_at` is that of its own offset. A day that has begun starts at `said_at` if it
    begins later in UTC: a statement about today does not begin after it is made.

    `when`: the words of the message that name this time; without them it is the only time in the
    text, if that has one. `source`: the message; a day that it does not contain was computed by a
    model and is corrected.
    """
    today = said_at.date()
    span = resolve(when, said_at, ahead=ahead) if when else None
    if span is not None:
        text = _corrected(text, span, source)
    named = _named_times(text, today, ahead=ahead, only=False)
    years = {named_time.span for named_time in named if not named_time.span.any_year}
    if not when and len(named) == len(years) == 1:
        [span] = years
    text = _completed(text, named)
    if (
        when
        and span is not None
        and not any(_within(named_time.span, span) for named_time in named)
    ):
        text = _inserted(text, len(text.rstrip(END)), span)
    return text, None if span is None else _start(span, said_at)


def _start(span: Span, said_at: datetime) -> datetime:
    start = datetime.combine(span.first, time(), UTC)
    return min(start, said_at) if span.first <= said_at.date() else start


def times_of(text: str, today: date, *, ahead: bool = False) -> list[NamedTime]:
    """The times that a clause names, in order: also bare weekdays and years, each in its year.

    `ahead`: the clause is about the future.
    """
    named = _named_times(text, today, ahead=ahead, only=True)
    return [replace(time, span=_placed(time.span, today, ahead=ahead)) for time in named]


def names_relative_time(text: str, said_at: datetime) -> bool:
    """True for a text with a time that depends on when it is said: "yesterday", "in May"."""
    today = said_at.date()
    return any(
        named_time.relative
        for ahead in (False, True)
        for named_time in _named_times(text, today, ahead=ahead, only=False)
    )


def iso(span: Span) -> str:
    """A day, a month or a year in ISO form, the year of a season, else the first and last day.

    A season has no months here, because they depend on the hemisphere: "2023", "2023/24".
    """
    first, last = span.first, span.last
    if span.is_day:
        return first.isoformat()
    if span == month_of(first.year, first.month):
        return f"{first:%Y-%m}"
    if span == period("year", first):
        return f"{first:%Y}"
    if span.is_season:
        return f"{first:%Y}" + f"/{last:%y}" * (first.year < last.year)
    return f"{first.isoformat()} – {last.isoformat()}"


def _named_times(text: str, today: date, *, ahead: bool, only: bool) -> list[NamedTime]:
    """The times in a text, in order. `only`: the text consists of words of time."""
    text = NO_TIME.sub(lambda match: "\0" * len(match[0]), text)
    times: list[NamedTime] = []
    for pattern, read in _readers(ahead, only):
        for match in list(islice(pattern.finditer(text), MOST_TIMES)):
            span = read_match(read, match, today)
            if span is not None and len(times) < MOST_TIMES:
                relative = not span.any_year and not re.search(r"(?:19|20)\d\d", match[0])
                times.append(NamedTime(match.start(), match.end(), span, relative))
                text = text[: match.start()] + "\0" * len(match[0]) + text[match.end() :]
    return sorted(times, key=lambda named: named.start)


def _placed(span: Span, today: date, *, ahead: bool) -> Span:
    """The span in the nearest year, if it names none: before today, or after it if `ahead`."""
    if not span.any_year:
        return span
    years = range(today.year, today.year + 9) if ahead else range(today.year, today.year - 9, -1)
    for year in years:
        try:
            first = span.first.replace(year=year)
        except ValueError:  # 29 February
            continue
        last = first if span.is_day else month_of(year, first.month).last
        if last >= today if ahead else first <= today:
            return Span(first, last)
    return span


def _within(part: Span, whole: Span) -> bool:
    return not part.any_year and whole.first <= part.first and part.last <= whole.last


def _completed(text: str, named: list[NamedTime]) -> str:
    """The text with the date behind each relative time, unless the text has it already."""
    written = [named_time.span for named_time in named if not named_time.relative]
    for named_time in reversed(named):
        known, days = any(_within(span, named_time.span) for span in written), iso(named_time.span)
        completed = text.startswith((f" ({days})", f"（{days}）"), named_time.end)
        if named_time.relative and not known and not completed:
            text = _inserted(text, named_time.end, named_time.span)
    return text


def _corrected(text: str, span: Span, source: str) -> str:
    """The text with the day computed here in place of a model's, if that is a few days off."""
    days = list(ISO_DAY.finditer(text))
    if not span.is_day or len(days) != 1 or days[0][0] in source:
        return text
    try:
        off = abs((date.fromisoformat(days[0][0]) - span.first).days)
    except ValueError:
        return text
    start, end = days[0].span()
    return text[:start] + iso(span) + text[end:] if 0 < off <= MOST_DAYS_OFF else text


def _inserted(text: str, at: int, span: Span) -> str:
    """The text with the date in brackets at a position."""
    chinese = IDEOGRAPH.search(text[max(0, at - 1) : at])
    return text[:at] + (f"（{iso(span)}）" if chinese else f" ({iso(span)})") + text[at:]


# ── readers: a match and today's date -> a span ──────────────────────────────────────────────────


def _by_units(sign: int) -> Reader:
    def read(match: re.Match[str], today: date) -> Span:
        return moved(UNITS[match["unit"].lower()], sign * number_of(match), today)

    return read


def _next_period(match: re.Match[str], today: date) -> Span:
    return moved(UNITS[match["unit"].lower()], 1, today)


def _years_away(count: int) -> Reader:
    return lambda _, today: moved("year", count, today)


def _on(day: date) -> Span:
    return Span(day, day)


def _weekday(match: re.Match[str]) -> int:
    name = match["weekday"].lower()
    return WEEKDAYS[name] if name in WEEKDAYS else CHINESE_DAYS[name]


def _day_before(match: re.Match[str], today: date) -> Span:
    """The last such day of the week before today."""
    return _on(today - timedelta(days=(today.weekday() - _weekday(match) - 1) % 7 + 1))


def _day_after(match: re.Match[str], today: date) -> Span:
    """The first such day of the week after today, although the usage of "next" differs."""
    return _on(today + timedelta(days=(_weekday(match) - today.weekday() - 1) % 7 + 1))


def _day_from_today(match: re.Match[str], today: date) -> Span:
    """The first such day of the week from today on."""
    return _on(today + timedelta(days=(_weekday(match) - today.weekday()) % 7))


def _day_of_week(weeks: int) -> Reader:
    """A reader of a day in the calendar week `weeks` from this one."""

    def read(match: re.Match[str], today: date) -> Span:
        monday = today - timedelta(days=today.weekday())
        return _on(monday + timedelta(weeks=weeks, days=_weekday(match)))

    return read


def _weekend(weeks: int) -> Reader:
    """A reader of the weekend in the calendar week `weeks` from this one."""

    def read(_: re.Match[str], today: date) -> Span:
        saturday = today + timedelta(weeks=weeks, days=5 - today.weekday())
        return Span(saturday, saturday + timedelta(days=1))

    return read


def _iso_date(match: re.Match[str], _: date) -> Span:
    year, month = int(match["year"]), int(match["month"])
    return _on(date(year, month, int(match["day"]))) if match["day"] else month_of(year, month)


def _year(match: re.Match[str], _: date) -> Span:
    return period("year", date(int(match["year"]), 1, 1))


# Times wherever they stand in a text.
_ANYWHERE: tuple[tuple[str, Reader], ...] = (
    (rf"(?<![\d-]){YEAR}-(?P<month>[01]\d)(?:-(?P<day>[0-3]\d))?(?![\d-])", _iso_date),
    (r"\b(?:(?:the )?day after tomorrow|übermorgen|pasado mañana)\b|后天", days_back((-2, -2))),
    (r"\btomorrow\b|明天|明晚|明早", days_back((-1, -1))),
    (r"(?<!heute )(?<!gestern )(?<!am )(?<!jeden )(?<!guten )(?<!der )(?<!den )\bmorgen\b",
     days_back((-1, -1))),
    (r"\bthis (?:morning|afternoon|evening)\b|\besta (?:mañana|tarde|noche)\b|今[早晚晨]",
     days_back((0, 0))),
    (r"(?<!la )(?<!cada )(?<!una )(?<!de )\bmañana\b", days_back((-1, -1))),
    (rf"上个?{CHINESE_DAY}", _day_of_week(-1)),
    (rf"下个?{CHINESE_DAY}", _day_of_week(1)),
    (rf"(?:这个?|本){CHINESE_DAY}", _day_of_week(0)),
    (rf"\b(?:{LAST}) {DAY}", _day_before),
    (rf"\b{DAY} pasado\b", _day_before),
    (rf"\b(?:{NEXT}) {DAY}", _day_after),
    (rf"\b{DAY} que viene\b", _day_after),
    (rf"\b(?:{LAST}) {WEEKEND}|\bfin de semana pasado\b|上个?周末", _weekend(-1)),
    (rf"\b(?:{NEXT}) {WEEKEND}|\bfin de semana que viene\b|下个?周末", _weekend(1)),
    (rf"\b(?:{THIS}) {WEEKEND}|(?:这个?|本)周末", _weekend(0)),
    (rf"\b(?:{NEXT}) {SPACED_UNIT}", _next_period),
    (rf"\b{SPACED_UNIT} que viene\b", _next_period),
    (rf"下个?{UNIT}", _next_period),
    (r"明年", _years_away(1)),
    (r"后年", _years_away(2)),
    (r"前年", _years_away(-2)),
    (rf"\b{NUMBER} {SPACED_UNIT} from (?:now|today)\b", _by_units(1)),
    (rf"\bdentro de {NUMBER} {SPACED_UNIT}", _by_units(1)),
    (rf"{NUMBER}{UNIT}(?:以?后|之后)", _by_units(1)),
    (rf"\b{NUMBER} {SPACED_UNIT} ago\b", _by_units(-1)),
    (rf"\b(?:vor|hace|seit) {NUMBER} {SPACED_UNIT}", _by_units(-1)),
    (rf"{NUMBER}{UNIT}(?:以?前|之前)", _by_units(-1)),
)  # fmt: skip
# Times in a statement about the future only: "finished in two days" has no date.
_FUTURE: tuple[tuple[str, Reader], ...] = ((rf"\b(?:in|en) {NUMBER} {SPACED_UNIT}", _by_units(1)),)
# A year that no word marks may be a number.
_MARKED_YEAR: tuple[tuple[str, Reader], ...] = (
    (rf"{YEAR}年(?!\d*月)", _year),
    (rf"\b(?:in|since|from|until|by|im jahre?|seit|en|desde) {YEAR}\b(?!-)", _year),
)
_DAY_BEFORE: tuple[tuple[str, Reader], ...] = (
    (rf"\b{DAY}", _day_before),
    (CHINESE_DAY, _day_before),
    (ON_THE_DAY, day_of_month(ahead=False)),
)
_DAY_AFTER: tuple[tuple[str, Reader], ...] = (
    (rf"\b{DAY}", _day_from_today),
    (CHINESE_DAY, _day_from_today),
    (ON_THE_DAY, day_of_month(ahead=True)),
)


@cache
def _readers(ahead: bool, only: bool) -> tuple[tuple[re.Pattern[str], Reader], ...]:
    """The readers of a text in the order of their priority; the last reader of questions is a bare
    year.
    """
    first = _ANYWHERE + (_FUTURE if ahead or only else ()) + _MARKED_YEAR
    weekdays = (_DAY_AFTER if ahead else _DAY_BEFORE) if only else ()
    return (
        *((re.compile(pattern, re.IGNORECASE), read) for pattern, read in first),
        *(READERS if only else READERS[:-1]),
        *((re.compile(pattern, re.IGNORECASE), read) for pattern, read in weekdays),
    )
