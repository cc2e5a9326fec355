"""Values of a statement: the names, numbers and dates that another wording of it must keep.

    "Maya has lived in New York with 2 cats since May 2021"   Maya, New York, 2, May 2021
    "Jonas fährt seit 2019 einen VW"                           Jonas, 2019, VW
    "小雨2024年3月从上海搬到成都"                               2024-03, 小雨, 上海, 成都

A name is a word with a capital letter that is not only the start of a sentence; in German, where
every noun has one, not behind an article or an adjective. Chinese names are recognized by their
form and by a list of places. This is a heuristic: it misses some values, and takes some other
words for names.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from functools import lru_cache
from itertools import islice, product

from pipeline.text.marks import bounded
from pipeline.text.terms import fold
from pipeline.text.times.dates import AMBIGUOUS, MONTHS, NUMBERS, WEEKDAYS, any_of
from pipeline.text.word_lists import STOP_WORDS, words_in, words_of

_CJK = re.compile(r"[\u2e80-\uffef]")


# Characters of a text that are read, and values that are kept of it; memories have fewer.
MOST_CHARS = 4_000
MOST_VALUES = 200


class ValueKind(StrEnum):
    """Class of a value. A value can be replaced by another one of its class."""

    NAME = "name"
    NUMBER = "number"
    DATE = "date"


@dataclass(frozen=True, slots=True)
class Value:
    """A value: its normal form, its text as written; `leads` if it opens the statement."""

    kind: ValueKind
    key: str
    text: str
    leads: bool = False


@dataclass(frozen=True, slots=True)
class Stated:
    """The values of a text; its words and itself in normal form, to look names up in.

    `known`: the keys of the values, and of a date also all less exact ones.
    """

    values: tuple[Value, ...]
    words: frozenset[str]
    folded: str
    known: frozenset[tuple[ValueKind, str]]

    def keeps(self, value: Value) -> bool:
        """Tell if the text states the value; a date also if it is more exact here."""
        if (value.kind, value.key) in self.known:
            return True
        return value.kind is ValueKind.NAME and all(map(self._has, value.key.split()))

    def of(self, kind: ValueKind) -> list[Value]:
        """The values of one class."""
        return [value for value in self.values if value.kind is kind]

    def _has(self, word: str) -> bool:
        """Tell if a word occurs; a final s is ignored, as in the German genitive."""
        if not _WORD.fullmatch(word):  # Chinese, or a code with digits
            return word in self.folded
        return not self.words.isdisjoint((word, f"{word}s", word.removesuffix("s")))


@lru_cache(maxsize=4096)
def stated(text: str) -> Stated:
    """Read the values of a text, in the order dates, codes, numbers, names.

    The first MOST_VALUES of the first MOST_CHARS characters.
    """
    # Cut again: the normal form of one character can have eighteen.
    text = unicodedata.normalize("NFKC", bounded(text[:MOST_CHARS]))[:MOST_CHARS]
    values: dict[tuple[ValueKind, str], Value] = {}
    rest = text
    for kind, pattern, read in _READERS:
        for match in list(pattern.finditer(rest)):
            if key := read(match):
                values.setdefault((kind, key), Value(kind, key, match[0].strip()))
                rest = rest[: match.start()] + "\0" * len(match[0]) + rest[match.end() :]
    # A name that is part of another one is left out: 小明 of 王小明, Maya of Maya Lopez.
    keys = "".join(f" {key} \0" for _, key in values)
    for name in (*_latin_names(rest), *_chinese_names(rest)):
        if (name.key if _CJK.match(name.key) else f" {name.key} ") not in keys:
            values[name.kind, name.key] = name
            keys += f" {name.key} \0"
    first = tuple(islice(values.values(), MOST_VALUES))
    unsigned = re.sub(_SIGNED, " ", text)
    words = frozenset(form for word in _WORD.findall(unsigned) for form in _forms(word))
    known = frozenset((value.kind, key) for value in first for key in _less_exact(value))
    return Stated(first, words, fold(text), known)


def _forms(word: str) -> tuple[str, ...]:
    whole = _bare(word)
    return (whole, *re.split(r"[-–]", whole))


def _bare(word: str) -> str:
    """A word without case, accents and a possessive ending."""
    return re.sub(r"['’`]s?$", "", fold(word))


# ── dates: year-month-day, with "?" for a part that is not named; a weekday as w0 to w6 ───────────


def _iso(match: re.Match[str]) -> str:
    return _day(match["year"], int(match["month"]), match["day"])


def _named_month(match: re.Match[str]) -> str | None:
    groups = match.groupdict()
    day, year, name = groups.get("day"), groups.get("year"), match["name"]
    if not day and not year and name.lower() in AMBIGUOUS and not name[0].isupper():
        return None
    return _day(year, MONTHS[name.lower()], day)


def _day(year: str | None, month: int, day: str | None) -> str:
    return f"{year or '?'}-{month}-{int(day) if day else '?'}"


def _year(match: re.Match[str]) -> str:
    return f"{match['year']}-?-?"


def _weekday(match: re.Match[str]) -> str:
    return f"w{WEEKDAYS[match['weekday'].lower()]}"


def _chinese_weekday(match: re.Match[str]) -> str:
    return f"w{'一二三四五六日'.index(match['weekday'].replace('天', '日'))}"


def _less_exact(value: Value) -> Iterator[str]:
    """The value's key; of a date also the keys with fewer of its parts, and its weekday."""
    yield value.key
    if value.kind is ValueKind.DATE and not value.key.startswith("w"):
        yield from map("-".join, product(*((part, "?") for part in value.key.split("-"))))
        if (weekday := _weekday_of(value.key)) is not None:
            yield weekday


def _weekday_of(key: str) -> str | None:
    try:
        return f"w{date(*map(int, key.split('-'))).weekday()}"
    except (ValueError, TypeError):
        return None


# ── numbers and codes ─────────────────────────────────────────────────────────────────────────────


def _number(match: re.Match[str]) -> str:
    plain = re.sub(r"(?<=\d)[.,](?=\d{3}(?!\d))", "", match["digits"]).replace(",", ".")
    return ("-" if match["minus"] else "") + (plain.lstrip("0") or "0")


def _grouped_digits(match: re.Match[str]) -> str:
    """A number in groups of digits, as of a telephone or an account."""
    return re.sub(r"\D", "", match[0])


def _number_word(match: re.Match[str]) -> str | None:
    number = _WORDED.get(match[0].lower(), 0)
    return str(number) if number > 1 else None


def _code(match: re.Match[str]) -> str:
    return fold(match[0])


_MORE_NUMBERS = {
    word: number
    for number, words in enumerate(
        ("eleven elf once", "twelve zwölf doce", "thirteen dreizehn trece", "fourteen vierzehn",
         "fifteen fünfzehn quince"),
        start=11,
    )
    for word in words.split()
}  # fmt: skip
# Spanish "once" is also an English word.
_WORDED = {
    word: number
    for word, number in {**NUMBERS, **_MORE_NUMBERS}.items()
    if word not in ("once", "quince")
}
# Chinese digits are read by a pattern of their own.
_NUMBER_WORDS = "|".join(word for word in _WORDED if not _CJK.search(word))
_DIGITS = "零一二三四五六七八九十"


def _chinese_number(match: re.Match[str]) -> str | None:
    """The number of a numeral up to ten; a longer one as it is written."""
    digits = match["digits"].replace("两", "二")
    if len(digits) > 1:
        return digits
    number = _DIGITS.find(digits)
    return str(number) if number > 1 else None


_MONTH = rf"(?P<name>{any_of(MONTHS)})\b\.?"
_DAY = r"(?P<day>[0-3]?\d)(?:st|nd|rd|th|\.)?"
_YEAR = r"(?P<year>(?:19|20)\d\d)"
_OF = r"(?: of| de| del)?"
# A sign is a part of "A+", "A-", "C++" and "C#", which do not state A or C.
_SIGNED = r"(?<!\w)(?:[A-Za-z]+(?:\+{1,2}|#)|[A-Za-z]-)(?!\w)"
Read = Callable[["re.Match[str]"], str | None]
_READERS: tuple[tuple[ValueKind, re.Pattern[str], Read], ...] = tuple(
    (kind, re.compile(pattern, re.IGNORECASE), read)
    for kind, pattern, read in (
        (ValueKind.NAME, r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+|https?://\S+|www\.\S+", _code),
        (ValueKind.DATE, rf"(?<!\d){_YEAR}-(?P<month>[01]?\d)(?:-(?P<day>[0-3]?\d))?(?!\d)", _iso),
        (
            ValueKind.DATE,
            rf"(?:{_YEAR}年)?(?P<month>1?\d)月(?:(?P<day>[1-3]?\d)[日号])?",
            _iso,
        ),
        (ValueKind.DATE, rf"\b{_DAY}{_OF} {_MONTH}(?:,?{_OF} {_YEAR}(?!\d))?", _named_month),
        (ValueKind.DATE, rf"\b{_MONTH} {_DAY}(?!\d)(?:,? {_YEAR}(?!\d))?", _named_month),
        (ValueKind.DATE, rf"\b{_MONTH}(?:,?{_OF} {_YEAR}(?!\d))?", _named_month),
        (ValueKind.DATE, rf"\b(?P<weekday>{any_of(WEEKDAYS)})s?\b", _weekday),
        (ValueKind.DATE, r"(?:周|星期|礼拜)(?P<weekday>[一二三四五六日天])", _chinese_weekday),
        (ValueKind.DATE, rf"(?<![\d.,:]){_YEAR}(?![\d:]|[.,]\d)", _year),
        (ValueKind.NAME, r"(?<![A-Za-z0-9])[A-Za-z]+-?\d[A-Za-z0-9-]*", _code),
        (ValueKind.NAME, _SIGNED, _code),
        (ValueKind.NUMBER, r"(?<!\w)\+?\d{2,}(?:[ /-]\d{2,})+(?!\w)", _grouped_digits),
        (
            ValueKind.NUMBER,
            r"(?P<minus>(?<![\w.,:/)])[-\u2212](?=\d))?(?P<digits>\d+(?:[.,:/]\d+)*)",
            _number,
        ),
        (ValueKind.NUMBER, rf"\b(?:{_NUMBER_WORDS})\b", _number_word),
        (
            ValueKind.NUMBER,
            r"(?P<digits>[一二两三四五六七八九十百千]+)(?=[个只岁年次本辆名位块条张间杯天周点口匹台斤公])",
            _chinese_number,
        ),
    )
)  # fmt: skip

# ── names ─────────────────────────────────────────────────────────────────────────────────────────

_WORD = re.compile(r"[^\W\d_\u2e80-\uffef]+(?:['’\-][^\W\d_\u2e80-\uffef]+)*['’]?")
_OPENING = frozenset('.!?:;"“„«»¿¡([\n')

# Words that open a statement and are no names.
_OPENERS = STOP_WORDS | words_in("openers.txt")
_VERBS = words_of("""
    is was has had will would can could does did went got and or took came left ate met made said
    mag will kann war ist hat hatte wird muss soll darf möchte und kam ging zog nahm trank aß las
    es está fue tiene era y ha había irá va
    no never always also now still often auch nicht ya nunca también siempre
    """)
_NO_VERBS = words_of("""
    la una de que se le me te esta este para sobre entre desde durante cada nada the this there his
    as us les las los mas más mit seit statt fast erst dort jetzt in at to on for with from a an
    en como el un al del con in bei als auf zu am im einen eine ein den die das nach
    """)
_VERB_ENDING = re.compile(r".{2,}(?:[^su]s|ed|t|te|a|e|ó|á|ía|é|en)$")
_GERMAN = words_of("""
    der das und ist hat mit nicht eine einen einem einer ein im am zum zur für seit bei von als auf
    ihre ihr sein seine den dem wohnt arbeitet mag lebt heißt trinkt spielt fährt isst liebt kein
    keine keinen auch nach aus wird möchte war jeden über
    """)
# A German noun behind such a word, or behind an adjective, is a common noun.
_DETERMINERS = re.compile(
    r"(?:(?:m|d|s|k)?ein|ihr|unser|euer|dies|jed|viel|wenig|manch|welch|solch)(?:e[nrsm]?)?"
    r"|der|die|das|den|dem|des|zum|zur|im|am|beim|vom|ins|ans|alle[nrsm]?|einige[nrsm]?|.{3,}(?:e|en|er|es|em)"
)
_COMMON_ENDING = re.compile(
    r".{3,}(?:ung|ungen|heit|keit|schaft|tion|tät|chen|lein|erin|innen|ismus|tag|abend|morgen)$"
)
# Words with a capital letter that are no names.
_NO_NAMES = words_of("I User Assistant Sie Ihr Ihre Uhr Euro Prozent Grad")
_OF_I = re.compile(r"I['’](?:m|ve|ll|d)$")
# Separators between two words of one name: "Procter & Gamble", "Anna van der Berg".
_JOINS = re.compile(r" (?:& |(?:v[ao]n|de|del|di|da|dos|du|of)(?: (?:der|den|la|las|los|the))? )?")
# Most characters of it, and abbreviations whose period ends no sentence: "Ursula K. Le Guin".
LONGEST_JOIN = 12
_ABBREVIATED = re.compile(r"\w|dr|mr|mrs|ms|st|prof|sr|sra|jr", re.IGNORECASE)


def _latin_names(text: str) -> Iterator[Value]:
    """Names in a script with capital letters; neighbouring words are one name."""
    words = list(_WORD.finditer(text))
    german = any(word[0].lower() in _GERMAN for word in words)
    group: list[re.Match[str]] = []
    leads = False
    end = 0
    for at, word in enumerate(words):
        joined = bool(group) and _is_joined(text, group[-1], word)
        opens = not joined and _opens(text[end : word.start()], at_start=at == 0)
        end = word.end()
        if not _is_name(words, at, opens=opens, german=german, inside=joined):
            continue
        if not joined or re.search(r"['’]s?$", group[-1][0]):
            yield from _grouped(text, group, leads=leads)
            group, leads = [], word.start() == len(text) - len(text.lstrip(' "“„«'))
        group.append(word)
    yield from _grouped(text, group, leads=leads)


def _is_joined(text: str, last: re.Match[str], word: re.Match[str]) -> bool:
    """Tell if two words with capital letters belong to one name."""
    if word.start() - last.end() > LONGEST_JOIN:
        return False
    between = text[last.end() : word.start()]
    if between.startswith(".") and _ABBREVIATED.fullmatch(last[0]):
        between = between[1:]
    return bool(_JOINS.fullmatch(between))


def _opens(between: str, *, at_start: bool) -> bool:
    """Tell if a word opens a sentence, by the characters between it and the word before it."""
    bare = between.rstrip()
    return "\n" in between[len(bare) :] or (bare[-1] in _OPENING if bare else at_start)


def _grouped(text: str, group: list[re.Match[str]], *, leads: bool) -> Iterator[Value]:
    if group:
        key = " ".join(_bare(word[0]) for word in group)
        yield Value(ValueKind.NAME, key, text[group[0].start() : group[-1].end()], leads)


def _is_name(
    words: list[re.Match[str]], at: int, *, opens: bool, german: bool, inside: bool
) -> bool:
    """Tell if a word with a capital letter is a name.

    `opens`: it opens a sentence; `inside`: a name stands right before it.
    """
    word = words[at][0]
    if not word[0].isupper() or word in _NO_NAMES or _OF_I.match(word):
        return False
    if any(letter.isupper() for letter in word[1:].split("-")[0]):
        return True
    following = words[at + 1][0] if at + 1 < len(words) else ""
    if opens:
        return _opens_as_name(word, following, german=german)
    if not german:
        return True
    before = words[at - 1][0] if at else ""
    common = not inside and _DETERMINERS.fullmatch(before.lower()) and not before[0].isupper()
    genitive = before[:1].isupper() and before.endswith("s") and len(before) > 3
    return not (common or genitive or (_COMMON_ENDING.match(word) and not inside))


def _opens_as_name(word: str, following: str, *, german: bool) -> bool:
    """Tell if the first word of a sentence is a name: it is a subject in front of its verb."""
    low = re.sub(r"['’]s?$", "", word.lower())
    if low in _OPENERS:
        return False
    if word.lower() != low or (following[:1].isupper() and not german):
        return True
    if german and following[:1].isupper():
        return word.endswith("s") or not _COMMON_ENDING.match(word)
    verb = following.lower()
    if verb in _VERBS or (verb not in _NO_VERBS and _VERB_ENDING.match(verb)):
        return True
    # A verb without a subject: "Vive en", "Works at".
    return bool(verb) and not (verb in _NO_VERBS and _VERB_ENDING.match(low))


_PLACES = words_in("chinese_places.txt")
_VERBS_AFTER = "主是在住喜有说去的和跟养开要会想爱做学用吃喝工搬讨不没每从买打换报，。"
# Frequent surnames that are seldom the start of another word.
_SURNAMES = (
    "王李张刘陈杨赵吴徐孙胡朱郭罗梁宋郑谢韩唐冯董曹袁邓沈曾彭吕苏卢蒋蔡"
    "贾魏薛叶潘杜戴钟汪姜范姚谭廖邹郝崔邱秦顾侯邵孟林许"
)
_CHINESE_NAMES = tuple(
    re.compile(pattern)
    for pattern in (
        f"(?P<name>{any_of(_PLACES)})",
        r"[《「『“](?P<name>[^》」』”]{1,20})[》」』”]",
        r"(?:名叫|叫做|叫)(?P<name>[\u4e00-\u9fff]{2,3}?)(?=[，。、的是]|$)",
        rf"(?<![\u4e00-\u9fff])(?P<name>[{_SURNAMES}][\u4e00-\u9fff]{{1,2}}?)(?=[{_VERBS_AFTER}])",
        r"(?<=[和跟与同给找陪是了见妈爸由])"
        rf"(?P<name>[{_SURNAMES}][\u4e00-\u9fff]{{1,2}}?)(?=[{_VERBS_AFTER}一起]|$)",
        r"(?P<name>(?:小|老|阿)(?![时学孩狗猫说心组区提吃麦型的是师家人板公婆朋鼠了里姨妹姐弟爷腿米])"
        rf"[\u4e00-\u9fff])(?=[{_VERBS_AFTER}最现已今明昨\d\0]|$)",
    )
)


def _chinese_names(text: str) -> Iterator[Value]:
    """Chinese names: places, titles, and persons by their surname, or behind 小, 老 and 阿."""
    if not _CJK.search(text):
        return
    start = len(text) - len(text.lstrip(' "“「'))
    for pattern in _CHINESE_NAMES:
        for match in pattern.finditer(text):
            name = match["name"]
            leads = match.start("name") == start and pattern is not _CHINESE_NAMES[0]
            yield Value(ValueKind.NAME, name, name, leads)
