"""Statements that say only that something is so no longer: "no longer works at Bosch".

    STOPPED   User used to live in Oslo. Jonas isst kein Fleisch mehr. 用户不再吃肉。
    GONE      User sold the bike. Lucía vendió la bicicleta.

`ending` reads what has ended, in words that can be compared with those of a memory. In doubt a
statement ends nothing: "has not sold the bike", "stopped smoking in 2005", "verdient nicht mehr als
3000 Euro". English, German, Spanish, French and Chinese. Words of other languages match nothing.
"""

from __future__ import annotations

import re
from collections.abc import Set
from dataclasses import dataclass
from functools import lru_cache

from pipeline.text.edit_distance import shared_start
from pipeline.text.statements import polarity
from pipeline.text.statements.forget_requests import forgotten_matter
from pipeline.text.statements.standing import names_one_of, states_another
from pipeline.text.statements.values import ValueKind, stated
from pipeline.text.terms import fold, terms
from pipeline.text.times.past import MOST_CHARS, is_past

# Ends of a state or a habit: the rest of the words is the statement that held.
_STOPPED = re.compile(
    r"\b(?<!\bis )(?<!\bare )(?<!\bgot )(?<!\bbe )used to\b|\bno longer\b|\bnot anymore\b"
    r"|\b(?:does|do|is|are|has|have|did|was) ?(?:not|n['’]t)\b(?=.*\b(?:any ?more|any longer)\b)"
    r"|\b(?:no|not)\b(?=.*\b(?:any ?more|any longer)\b)|\b(?:any ?more|any longer)\b"
    r"|\b(?:has |have )?(?:stopped|quit|quitted|ceased|given up|gave up)\b"
    r"|\bnicht mehr\b|\bkein(?:e[nrms]?)?\b(?=.*\bmehr\b)|\bmehr\b"
    r"|\b(?:früher|ehemals|damals)\b|\b(?:hat|habe)\b(?=.*\baufgehört\b)|\baufgehört\b(?:,? zu\b)?"
    r"|\bya no\b|\b(?:dejó|ha dejado) de\b|\b(?:solía|acostumbraba)\b|\bantes\b(?! de\b)"
    r"|\bn['’]|\bne\b|\bplus\b|\b(?:a (?:arrêté|cessé) (?:de |d['’])|autrefois\b|auparavant\b)"
    r"|不再|(?<![点号日月周天])以前(?!的)|从前|曾经?|已经?不|戒掉?了?",
    re.IGNORECASE,
)
# The French parts above end nothing by themselves.
_FRENCH = re.compile(
    r"(?:\bn['’]|\bne\b).{1,40}?\bplus\b(?! (?:de|que|d['’])\b)|\bne\b.{1,40}?\bplus de\b(?! \d)"
    r"|\ba (?:arrêté|cessé) d",
    re.IGNORECASE,
)
# "Früher" and "antes" mean "before" beside a past tense, else "earlier".
_BEFORE = re.compile(
    r"\b(?:war|hatte|ging|aß|trank|fuhr|las|schwamm|sang|trug|besaß|nahm|lief|(?!möch|könn|soll|müss)"
    r"[a-zäöüß]{2,}te|(?:hat|ist)\b.*\b(?:ge\w+(?:t|en)))\b.*\b(?:früher|ehemals)\b"
    r"|\b(?:früher|ehemals)\b.*\b(?:war|hatte|[a-zäöüß]{2,}te|ge\w+(?:t|en))\b"
    r"|\b(?:hat|ist) (?:früher|ehemals)\b.*\bge\w+(?:t|en)\b"
    r"|\b\w+(?:aba|[^r\W]ía)\b.*\bantes\b(?! de\b)|\bantes\b(?! de\b).*\b\w+(?:aba|[^r\W]ía)\b"
    r"|\b\w+[^r\W]ait\b.*\b(?:autrefois|auparavant)\b|\b(?:autrefois|auparavant)\b.*\b\w+[^r\W]ait\b",
    re.IGNORECASE,
)
# A bound: "nicht mehr als 3000 Euro", "no more than two cups".
_BOUND = re.compile(
    r"\b(?:mehr als|more than|más (?:de|que)|plus (?:que|d['’]une?))\b", re.IGNORECASE
)
# Another thing than the one that is gone: "has a new bike".
_NEW = re.compile(r"\b(?:new|neue?[nrms]?|nuev[oa]|nouveau|nouvelle|another)\b|新", re.IGNORECASE)
# A possessive behind a word: "Anna's cooking".
_OWNED = re.compile(r"(\w+)['’]s\b")
# A request that names an attribute, and not its value: "their address".
_ATTRIBUTE = re.compile(
    r"^(?:their|my|his|her|the user['’]s|meine?[nrms]?|seine?[nrms]?|ihre?[nrms]?|mis?|sus?|mon|ma"
    r"|mes|son|sa|ses|我的|用户的)",
    re.IGNORECASE,
)
_MEHR = re.compile(r"\b(?:nicht|kein(?:e[nrms]?)?)\b.{0,80}?\bmehr\b", re.IGNORECASE)
# Ends of a possession: the rest of the words is the thing.
_GONE = re.compile(
    r"\b(?:has |have )?(?:sold|gave away|given away|got rid of|gotten rid of|scrapped|donated)\b"
    r"|\b(?:hat|habe)\b(?=.*\b(?:verkauft|verschenkt|entsorgt|abgegeben)\b)"
    r"|\b(?:verkauft|verkaufte|verschenkt|verschenkte|entsorgt|abgegeben)\b"
    r"|\b(?:vendió|ha vendido|regaló|ha regalado|donó)\b"
    r"|\ba (?:vendu|donné|cédé)\b"
    r"|(?:把)|卖掉了?|卖了|送人了|扔了",
    re.IGNORECASE,
)
_ANY_GONE = re.compile(
    r"\b(?:sold|gave away|given away|got rid of|gotten rid of|scrapped|donated|verkaufte?"
    r"|verschenkte?|entsorgt|abgegeben|vendió|vendido|regaló|regalado|donó|vendu|cédé)\b"
    r"|卖掉|卖了|送人了|扔了",
    re.IGNORECASE,
)
_ANY_STOPPED = re.compile(
    r"\b(?<!\bis )(?<!\bare )(?<!\bgot )(?<!\bbe )used to\b|\bno longer\b"
    r"|(?:\b(?:not?)\b|n['’]t\b).*\b(?:any ?more|any longer)\b"
    r"|\b(?:stopped|quit|quitted|ceased|given up|gave up)\b|\baufgehört\b"
    r"|\bya no\b|\b(?:dejó|dejado) de\b|\b(?:solía|acostumbraba)\b"
    r"|不再|(?<![点号日月周天])以前(?!的)|从前|曾|已经?不|戒",
    re.IGNORECASE,
)
# Words that say nothing about what ended.
_EMPTY = frozenset(
    terms("""
        user have own be now new currently still recently finally drive ride
        nutzer nutzerin benutzer hat haben besitzt fährt jetzt inzwischen
        usuario usuaria tiene posee conduce ahora utilisateur utilisatrice possède maintenant
        elle il je on l
    """)
)
_CHINESE_EMPTY = re.compile(r"用户|现在|[有了的他她把]|一[辆只台个条]|目前|已经")
_LIKES = dict.fromkeys(
    terms("love enjoy like mag liebt gern gerne gusta encanta aime adore"), "like"
)
_IDEOGRAPH = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]")
_ARTICLE = r"(?:an?|the|their|his|her|my|eine?n?|der|die|das|den)"
_BEHIND = r"(?:from|of|called|named|since|von|aus|namens|seit)\b"
_CONTENT = re.compile(r"\w+")
# First words of a request that names no person who asks.
_IMPERATIVE = re.compile(
    r"(?:bitte|please|kindly|can|could|would|will|forget|stop|delete|erase|remove|vergiss|vergesst"
    r"|vergessen|por favor|olvid[ae]|s['’]il|oublie|oubliez)\b",
    re.IGNORECASE,
)
# Words of a subject, before the verb of a statement.
_SUBJECT = re.compile(
    r"the|user|der|die|nutzer|nutzerin|benutzer|el|la|usuario|usuaria|l|utilisateur|utilisatrice",
    re.IGNORECASE,
)
# Fewest letters that two forms of a verb have in common: vive, vivía.
STEM = 3


@dataclass(frozen=True, slots=True)
class EndedState:
    """State that a statement says the end of. `of_thing`: a possession, in words without a verb."""

    words: frozenset[str]
    head: str
    of_thing: bool


@lru_cache(maxsize=1024)
def ending(text: str) -> EndedState | None:
    """The end of a state, a habit or a possession that a statement says, and nothing else."""
    text = text[:MOST_CHARS]
    of_thing = bool(_ANY_GONE.search(text))
    stopped = any(form.search(text) for form in (_ANY_STOPPED, _FRENCH, _MEHR, _BEFORE))
    if not (of_thing or stopped) or _BOUND.search(text) or len(polarity.clauses(text)) > 1:
        return None
    rest = (_GONE if of_thing else _STOPPED).sub(" ", text)
    if polarity.negates(rest):  # "has not sold the bike"
        return None
    words = _words(rest, fact=True)
    return EndedState(words, _head(rest), of_thing) if words else None


def ends(fact: str, memory: str) -> bool:
    """Tell if a fact says the end of what a memory states as true now.

    It may say more behind its verb ("works at Bosch as an engineer"), and of a thing how it is.
    """
    end, memory = ending(fact), memory[:MOST_CHARS]
    if end is None or polarity.takes_back(memory) or is_past(memory) or ending(memory):
        return False
    if not _have_one_subject(fact, memory) or _is_dated(fact, memory):
        return False
    return _is_gone(end, fact, memory) if end.of_thing else _is_over(end, memory)


def _is_gone(end: EndedState, fact: str, memory: str) -> bool:
    """Tell if a memory says that its subject has the thing that is gone."""
    if _NEW.search(memory) and not _NEW.search(fact):
        return False
    about = _words(memory)
    return end.words == about or (end.words <= about and _has_thing(memory, end))


def _is_over(end: EndedState, memory: str) -> bool:
    """Tell if a memory states what has ended, and maybe more behind it."""
    about = _words(memory)
    if not _within(end.words, about):
        return False
    if len(end.words) == len(about):
        return True
    owners = {term for owner in _OWNED.findall(memory) for term in terms(owner)}
    return (
        owners.isdisjoint(end.words)
        and not _IDEOGRAPH.search(memory)
        and _continues(memory, end.words)
    )


def is_named(matter: str, memory: str) -> bool:
    """Tell if the matter of a request to forget is what a memory states, and nothing else.

    Either all of its words, or those of an attribute without its value: "their address".
    """
    matter, memory = matter[:MOST_CHARS], memory[:MOST_CHARS]
    if polarity.negates(matter) != polarity.negates(memory) or states_another(matter, memory):
        return False
    if is_past(matter) and not is_past(memory):
        return False
    requested, about = _words(matter, fact=True), _words(memory)
    values = [value for value in stated(memory).values if not value.leads]
    if requested == about or _has_other_form(requested, about, memory):
        return bool(requested) and all(read(matter) == read(memory) for read in (_names, _order))
    rest = about - {term for value in values for term in terms(value.text)}
    by_attribute = bool(_ATTRIBUTE.match(matter)) and not names_one_of(matter, memory)
    return bool(rest) and by_attribute and requested == rest


def is_requested(request: str, memory: str) -> bool:
    """Tell if a request to forget names what a memory states, and nothing else.

    Of a person who asks by name, only a memory that opens with the name: "Maya asks to forget
    her address".
    """
    if (matter := forgotten_matter(request)) is None:
        return False
    if _IMPERATIVE.match(request):
        return is_named(matter, memory)
    for name in (value.text for value in stated(request).values if value.leads):
        opening = re.match(rf"(?:a )?{re.escape(name)}\b", memory, re.IGNORECASE)
        if opening is None:
            return False
        memory = memory[opening.end() :]
    return is_named(matter, memory)


def _has_other_form(requested: Set[str], about: Set[str], memory: str) -> bool:
    """Tell if a request has the memory's words, and its verb in another form: wohnt, wohne.

    No other word may differ: "pears" are no peaches, and 4412 is not 4411.
    """
    left, missing = about - requested, requested - about
    if len(left) != 1 or len(missing) != 1 or len(about) == 1:
        return False
    tokens = [token for token in _CONTENT.findall(memory) if not _SUBJECT.fullmatch(token)]
    [word], [other] = left, missing
    is_verb = bool(tokens) and left == _words(tokens[0])
    return is_verb and not any(map(str.isdigit, word + other)) and _of_one_verb(word, other)


def _order(text: str) -> list[str]:
    """Characters of a Chinese statement, or names of relatives: who is whose sister."""
    if _IDEOGRAPH.search(text):
        return [char for char in fold(_CHINESE_EMPTY.sub("", text)) if char.isalnum()]
    if not set(_OWNED.findall(fold(text))) - {"user"}:
        return []
    return [word for token in _CONTENT.findall(text) for word in sorted(_words(token))]


def _names(text: str) -> list[str]:
    """The names in a statement, in their order."""
    values = [value for value in stated(text).of(ValueKind.NAME) if _words(value.text)]
    return [value.key for value in sorted(values, key=lambda value: text.find(value.text))]


def _have_one_subject(fact: str, memory: str) -> bool:
    """Tell if two statements open with the same name, or both with none."""
    own, other = _subjects(fact), _subjects(memory)
    if own:
        return own == other
    return all(fold(fact).startswith(name) for name in other)


def _subjects(text: str) -> set[str]:
    """The names that a statement opens with."""
    return {value.key for value in stated(text[:MOST_CHARS]).values if value.leads}


def _is_dated(fact: str, memory: str) -> bool:
    """Tell if a fact names a time that a memory does not have: it may be about an earlier one."""
    about = stated(memory)
    dates = stated(fact[:MOST_CHARS]).of(ValueKind.DATE)
    return any(any(map(str.isdigit, date.text)) and not about.keeps(date) for date in dates)


def _words(text: str, *, fact: bool = False) -> frozenset[str]:
    """The words about the matter, names and numbers included; of a memory without its times."""
    if _IDEOGRAPH.search(text):
        return frozenset(char for char in fold(_CHINESE_EMPTY.sub("", text)) if char.isalnum())
    for value in stated(text).values:
        if value.kind is ValueKind.DATE and (not fact or any(map(str.isdigit, value.text))):
            text = text.replace(value.text, " ")
    return frozenset(_LIKES.get(term, term) for term in terms(text)) - _EMPTY


def _within(words: Set[str], about: Set[str]) -> bool:
    """Tell if all words are among others. One of them may be another form of a verb."""
    missing, left = words - about, about - words
    if len(missing) > 1:
        return False
    return all(any(_of_one_verb(word, other) for other in left) for word in missing)


def _of_one_verb(word: str, other: str) -> bool:
    word, other = word.removeprefix("ge"), other.removeprefix("ge")
    return shared_start(word, other) >= max(STEM, min(len(word), len(other)) - 2)


def _head(text: str) -> str:
    """The last word: the thing of "sold the red bike"."""
    words = _CONTENT.findall(fold(text))
    return words[-1] if words else ""


def _has_thing(memory: str, end: EndedState) -> bool:
    """Tell if a subject has a thing with its adjectives: a red bike, and not a bike shop."""
    noun = rf"\b{_ARTICLE}\W+(?:\w+\W+){{0,2}}?{end.head}\b"
    match = re.search(rf"{noun}(?=\W*$|[,.;]|\W+{_BEHIND})", fold(memory))
    return match is not None and _words(fold(memory)[: match.start()]) <= end.words


def _continues(memory: str, words: Set[str]) -> bool:
    """Tell if the subject and the verb of a memory are among the words."""
    subject = [value for value in stated(memory).values if value.leads]
    first = [word for word in _CONTENT.findall(memory) if _words(word)]
    return len(words) > 1 and all(
        _within(_words(word), words)
        for word in first[: 1 + sum(len(value.text.split()) for value in subject)]
    )
