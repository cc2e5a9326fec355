"""Statements that say that a relation is over, and nothing else: "Hana left the Red Foxes".

    said_ends("User sold the Brompton.")           owns, of "User" and "Brompton"
    said_ends("User sold the Brompton for Tom.")   owns, of "User" and "Brompton for Tom"
    said_ends("User sold the Brompton to Tom.")    owns, of "User" and "Brompton", to "Tom"

No model reads the statement, and the relation arrives after it. So the whole statement must have
one of the forms below, and the caller compares both names as they stand: "Hana almost left the Red
Foxes" is about "Hana almost". Words behind the name are a part of it, except a date with its year.
A form ends its own relations only. In doubt there is no end:

    sold books             only some of them, perhaps: what is sold needs a definite article
    left the office        a way home: what is left needs a proper name, behind an article one of
    left the Louvre        several words, without the word of a place ("Hotel", "Club")
    gave the keys to Tom   a loan, perhaps: Tom must own them since then, which the caller checks

A place with a name like that of a firm ("left Starbucks", "left Mercy General") is taken for one:
a known risk. English, German, Spanish and Chinese; other languages have no form.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import NamedTuple

from pipeline.text.times.dates import MONTHS, Span, any_of, spans
from pipeline.text.word_lists import words_of

# Longest statement that is read, in characters: a longer one says more than an end.
MOST_CHARS = 200

# Relations, and the forms that end them: S is the source, D the destination, B the new owner. NAME:
# the destination, a proper name.
_FORMS = """
works_at
    S no longer works (?:at|for) D
    S does(?: not|n['’]t) work (?:at|for) D MORE
    S (?:has )?stopped working (?:at|for) D
    S (?:has )?resigned from D
    S hat bei D gekündigt
    S arbeitet nicht mehr (?:bei|für) D
    S ya no trabaja (?:en|para) D
    S (?:dejó|ha dejado) de trabajar (?:en|para) D
    S已?从D(?:辞职|离职)了?
    S不再在D(?:工作|上班)了?
works_at member_of
    S (?:has )?(?:left|quit) NAME
    S hat (?!ARTICLE )NAME verlassen
    S (?:dejó|ha dejado) NAME
member_of
    S (?:is no longer|is not|isn['’]t) a member of D(?: MORE)?
    S ist aus D ausgetreten
    S ist (?:nicht mehr|kein) mitglied (?:in|im|bei|beim|von|der|des) D(?: mehr)?
    S ya no es (?:miembro|soci[oa]) de D
    S退出了?D
studies_at
    S no longer studies at D
    S (?:has )?dropped out of D
    S studiert nicht mehr (?:in|an|bei) D
    S ya no estudia en D
owns
    S (?:has )?sold ARTICLE D
    S (?:gave|has given) away ARTICLE D
    S (?:has got|got) rid of ARTICLE D
    S no longer (?:owns|has) D
    S hat ARTICLE D (?:verkauft|verschenkt)
    S (?:hat|besitzt) D nicht mehr
    S (?:vendió|ha vendido|regaló|ha regalado) ARTICLE D
    S ya no (?:posee|tiene) D
    S把D卖(?:掉)?了
    S (?:has )?(?:sold|given|gave|gave away|given away) ARTICLE D to B
    S (?:has )?(?:sold|given|gave) B ARTICLE D
    B (?:has )?bought ARTICLE D from S
    S hat ARTICLE D an B (?:verkauft|verschenkt)
    S hat B ARTICLE D (?:verkauft|geschenkt)
    S verkaufte ARTICLE D an B
    B hat S ARTICLE D abgekauft
    S (?:le )?(?:vendió|ha vendido|regaló|ha regalado) ARTICLE D a B
    S把D(?:卖|送)给了?B了?
    B从S(?:手里|那里|那儿)?买(?:下|走)?了D
drives
    S no longer drives D
plays
    S no longer plays D
    S does(?: not|n['’]t) play D MORE
    S (?:has )?(?:stopped|quit|given up) playing D
    S (?:gave up|has given up|(?:has )?quit) D
    S spielt kein D mehr
    S spielt nicht mehr D
    S spielt D nicht mehr
    S hat mit D aufgehört
    S ya no (?:juega al?|toca) D
    S (?:dejó|ha dejado) de (?:jugar al?|tocar) D
    S不再[打踢玩弹拉]D了?
learns
    S no longer learns D
    S (?:has )?(?:stopped|given up) learning D
    S lernt kein D mehr
    S lernt nicht mehr D
    S ya no aprende D
    S不再学D了?
lives_in
    S no longer lives in D
    S does(?: not|n['’]t) live in D MORE
    S (?:has )?moved (?:away from|out of) D
    S (?:wohnt|lebt) nicht mehr in D
    S ist aus D weggezogen
    S ya no vive en D
    S不再住在D了?
likes
    S no longer likes D
    S does(?: not|n['’]t) like D MORE
    S mag keine?n? D mehr
    S mag D nicht mehr
    (?:a )?S ya no le gustan? D
    S不再喜欢D了?
allergic_to
    S is (?:no longer|not) allergic to D(?: MORE)?
    S ist nicht mehr gegen D allergisch
    S ist nicht mehr allergisch gegen D
    S ya no es alérgic[oa] al? D
plans_to_visit
    S no longer plans to visit D
has_friend
    S and D are no longer friends
    S is no longer friends with D
    S und D sind nicht mehr befreundet
    S y D ya no son amig[oa]s
dating engaged_to
    S and D (?:have )?(?:broke|broken|split) up
    S (?:has )?(?:broke|broken|split) up with D
    S und D haben sich getrennt
    S hat sich von D getrennt
    S y D (?:se (?:han separado|separaron)|rompieron)
    S[和与跟]D(?:已经)?分手了
"""
_ARTICLE = r"(?:the|der|die|das|den|dem|el|la|los|las)"
# An indefinite article: the statement does not say which one is meant.
_ANY = r"(?:an?|eine?[mnr]?|une?|una?)"
# A word without a small first letter.
_PROPER = r"(?-i:[^\W\d_a-zß-ÿ])\S*?"
_PARTS = {
    "S": r"(?P<source>.+?)",
    "D": rf"(?:{_ARTICLE} )?(?!{_ANY} )(?P<destination>.+?)",
    "ARTICLE D": rf"{_ARTICLE} (?P<destination>.+?)",
    "ARTICLE": _ARTICLE,
    # A proper name of at most three words.
    "B": rf"(?P<owner>{_PROPER}(?: {_PROPER}){{0,2}})",
    "NAME": rf"(?P<article>{_ARTICLE} )?(?P<destination>.+?)",
    "MORE": r"any(?: ?more| longer)",
}
# Words of places that a person leaves every day, in a name.
_PLACES = words_of(
    """
    airport apartment arena bakery bank bar beach building cafe café campus castle centre center
    church cinema clinic club college company court flat gallery garden gardens group gym hall home
    hospital hostel hotel house inn library mall market meeting museum office opera palace park
    party pharmacy pool pub restaurant room school shop stadium station store supermarket temple
    theater theatre tower university work zoo
    bahnhof bibliothek büro flughafen gasthaus haus hochschule kino kirche klinik krankenhaus oper
    schule stadion universität verein
    aeropuerto banco biblioteca bufete casa cine clínica colegio escuela estación gimnasio hospital
    iglesia instituto mercado museo oficina parque restaurante teatro tienda trabajo universidad
    """
)
_BETWEEN = words_of("and da das de del der des di do dos of la le los und van von y")


class SaidEnd(NamedTuple):
    """An end of one of the relations between two names.

    `when`: the date that the words give. `owner`: the person to whom the destination goes.
    """

    relations: tuple[str, ...]
    source: str
    destination: str
    when: Span | None
    owner: str | None = None


def _read(table: str) -> Iterator[tuple[tuple[str, ...], re.Pattern[str]]]:
    """Yield each form with its relations."""
    relations: tuple[str, ...] = ()
    for line in table.strip().splitlines():
        if line.startswith(" "):
            form = re.sub("MORE|NAME|ARTICLE D|ARTICLE|[SDB]", _part, line.strip())
            # In a title, "Left Work", capitals tell no names apart.
            yield relations, re.compile(form, 0 if "NAME" in line else re.IGNORECASE)
        else:
            relations = tuple(line.split())


def _part(word: re.Match[str]) -> str:
    return _PARTS[word[0]]


FORMS = tuple(_read(_FORMS))
# Relations that a statement can end.
ENDABLE = frozenset(name for relations, _ in FORMS for name in relations)
# Questions, and marks between clauses.
_NO_STATEMENT = re.compile(r"[?¿？,，;；:：]")
_DAY = r"[0-3]?\d(?:st|nd|rd|th|\.)?"
_YEAR = r"(?:19|20)\d\d"
_DATED = re.compile(
    rf" \(?(?:(?:on|in|am|im|el|en) )?(?P<date>{_YEAR}-[01]\d(?:-[0-3]\d)?"
    rf"|(?:{_DAY}(?: of| de)? )?(?:{any_of(MONTHS)})(?: {_DAY},?)?,?(?: of| del?)? {_YEAR})\)?$",
    re.IGNORECASE,
)
_ANY_DAY = datetime(2000, 1, 1, tzinfo=UTC)


def said_ends(text: str) -> list[SaidEnd]:
    """The ends that a statement may say, one for each form that it has."""
    if len(text) > MOST_CHARS:
        return []
    words, when = _without_date(" ".join(text.split()).rstrip(".!。！ "))
    if _NO_STATEMENT.search(words):
        return []
    matches = ((relations, form.fullmatch(words)) for relations, form in FORMS)
    return [
        SaidEnd(
            relations, match["source"], match["destination"], when, match.groupdict().get("owner")
        )
        for relations, match in matches
        if match is not None and _is_definite(match)
    ]


def _is_definite(match: re.Match[str]) -> bool:
    """False if a form asks for a proper name, and the destination is none or may be a place."""
    if "article" not in match.re.groupindex:
        return True
    words = [word for word in match["destination"].split() if word not in _BETWEEN]
    if any(word.lower() in _PLACES or word.endswith(("'s", "’s")) for word in words):
        return False
    least = 2 if match["article"] else 1
    return len(words) >= least and all(word[0].isupper() for word in words)


def _without_date(words: str) -> tuple[str, Span | None]:
    """A statement without the date at its end, and that date: a day or a month of a year."""
    match = _DATED.search(words)
    named = spans(match["date"].lower(), _ANY_DAY) if match else ()
    if match is None or len(named) != 1 or named[0].any_year:
        return words, None
    return words[: match.start()], named[0]
