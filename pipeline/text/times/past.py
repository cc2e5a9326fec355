"""Statements about a time that is over: "lived in Paris in 2010", "arbeitete bis 2014 bei Bosch".

A statement is of the past if its own words bound it there: a state in the past tense with a time
that has ended ("in 2010", "from 2010 to 2014", "until last year", "as a child"), or words such as
"used to" and "solía". It is history and no value that holds now, so it replaces none.

    User lived in Paris in 2010.          past
    User used to live in Paris.           past
    User moved to Paris in 2010.          no: it says since when something holds
    User has lived in Paris since 2010.   no
    User lived in Paris until 2014 and then moved to Oslo.   no: it has a current value, too

English, German, Spanish, French and Chinese. Words of other languages match nothing.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache

from pipeline.text.statements.slots import slot

# Characters that are read; statements are shorter.
MOST_CHARS = 400

_YEAR = r"(?:19|20)\d\d"
# A state that held, without the verbs of events that begin one: moved, joined, was promoted.
_STATES = (
    r"\b(?<!\bhave )(?<!\bhas )(?:lived|resided|worked|studied|attended|owned|drove|rented|stayed"
    r"|played|taught|served|dated|ate|drank|smoked|followed|spoke|belonged|cost|weighed|earned)\b",
    r"\b(?:was|were)\b(?! (?!employed|based|married|engaged|enrolled|called|located)\w+(?:ed|en|rn"
    r"|de|id)\b)",
    r"\bhad\b(?=.*\b(?:until|till)\b)",
    r"\b(?:wohnte|lebte|arbeitete|war|waren|studierte|besuchte|hatte|fuhr|spielte|leitete"
    r"|unterrichtete|hieß|hiess|verdiente|rauchte|trank|aß|besaß|jobbte)\b",
    r"\b(?:hat|haben|ist|war)\b.*\b(?:gewohnt|gelebt|gearbeitet|studiert|besucht|gespielt|gehabt"
    r"|gewesen|geleitet|unterrichtet|besessen|geraucht|gejobbt)\b",
    r"\b(?:vivió|vivía|residió|residía|trabajó|trabajaba|estudió|estudiaba|era|eran|estuvo|estaba"
    r"|tenía|tuvo|asistió|asistía|jugaba|jugó|conducía|dirigía|enseñaba|fumaba|comía|bebía"
    r"|fue(?! \w+[aei]d[oa]))\b",
    r"\b(?:vivait|habitait|résidait|travaillait|étudiait|était|avait|jouait|enseignait|conduisait"
    r"|fumait|dirigeait|mangeait)\b",
    r"\ba (?:vécu|habité|résidé|travaillé|étudié|été|fréquenté|joué|enseigné|dirigé|possédé)\b",
)
# Times that have ended.
_ENDED_TIMES = (
    rf"\b{_YEAR}\b",
    r"\b(?:until|till) (?!now\b|today\b)\w|\b\w+ (?:years?|months?|weeks?) ago\b"
    r"|\bfor (?:\w+ ){1,3}(?:years?|months?|weeks?)\b|\b(?:as a|when) (?:\w+ )?(?:child|kid|boy"
    r"|girl|teenager|student|pupil|young)\b|\bwhen (?:he|she|they|user|the user) (?:was|were)\b"
    r"|\bin (?:the (?:past|nineties|eighties|seventies|\d0s)|(?:his|her|their) (?:youth|childhood"
    r"|teens|twenties|thirties))\b|\b(?:yesterday|back then|at the time|previously|formerly)\b"
    r"|\blast (?:year|month|week|spring|summer|autumn|fall|winter)\b",
    r"\bbis (?!heute\b|jetzt\b)\w|\bvor \w+ (?:jahr|monat|woche)e?n?\b"
    r"|\b\w+ (?:jahre|monate) lang\b|\bals (?:kind|schüler(?:in)?|student(?:in)?|jugendliche[r]?)\b"
    r"|\b(?:damals|früher|ehemals|gestern)\b|\bin den \w+ern\b"
    r"|\bin (?:seiner|ihrer) (?:jugend|kindheit|studienzeit)\b"
    r"|\b(?:letzte[nsmr]?|vorige[nsmr]?) (?:jahr|monat|woche|sommer|winter)\b",
    r"\bhasta (?!ahora\b|hoy\b)\w|\bhace \w+ (?:años?|mes(?:es)?|semanas?)\b|\bdurante \w+ (?:años?"
    r"|meses)\b|\bde (?:niñ[oa]|joven|pequeñ[oa])\b|\b(?:antes|antiguamente|entonces|ayer)\b"
    r"|\ben los (?:años )?(?:\d0|noventa|ochenta|setenta)\b|\ben su (?:juventud|infancia)\b"
    r"|\b(?:año|mes|verano|invierno) pasado\b|\bsemana pasada\b",
    r"\bjusqu['’](?:en|à|au)\b|\bil y a \w+ (?:ans?|mois|semaines?)\b|\bpendant \w+ (?:ans|mois)\b"
    r"|\b(?:autrefois|auparavant|jadis|avant|hier|enfant)\b|\bà l['’]époque\b"
    r"|\bdans (?:les années|sa jeunesse|son enfance)\b|\b(?:l['’]an|le mois|l['’]été) dernier\b",
)
# Words that bound a state in the past by themselves.
_FORMER = (
    r"\b(?<!\bis )(?<!\bare )(?<!\bgot )(?<!\bgets )(?<!\bget )(?<!\bbe )used to\b",
    r"\b(?:solía|solían|acostumbraba)\b",
    r"\bavait l['’]habitude d",
)
# Chinese has no tenses: a state with a time, and words that say that it is over.
_CHINESE_STATE = re.compile(r"住|居|生活|工作|上班|任职|读书|上学|就读")
_CHINESE_TIME = re.compile(
    rf"{_YEAR}年(?!\d+月)|(?<![点号日月周天])以前(?!的)|曾|从前|小时候|年轻时|当时|去年|前年|昨天|上周"
    r"|上个月|[\d一二两三四五六七八九十]+年前"
)
# Words of a value that holds now, or of a change that leads to it.
_NOW = re.compile(
    r"\b(?:now|currently|today|since|then|still|lives|works|moved|moving|joined|started|began"
    r"|became|switched|changed|returned|again"
    r"|jetzt|nun|heute|aktuell|derzeit|seit|seitdem|noch|wieder|wohnt|lebt|arbeitet|zog|gezogen"
    r"|umgezogen|wechselte|gewechselt"
    r"|ahora|hoy|actualmente|todavía|sigue|vive|trabaja|mudó|mudado|cambió|pasó"
    r"|maintenant|aujourd|actuellement|depuis|encore|vit|habite|travaille|déménagé)\b"
    rf"|\bdesde (?!{_YEAR} hasta)"
    r"|现在|目前|如今|起|开始|至今|以来|搬|换|改|将|打算|计划|要|会",
    re.IGNORECASE,
)
_STATE = re.compile("|".join(_STATES), re.IGNORECASE)
_ENDED = re.compile("|".join(_ENDED_TIMES), re.IGNORECASE)
_USED_TO = re.compile("|".join(_FORMER), re.IGNORECASE)
_LAST_YEAR = re.compile(
    r"(?:\b(?:until|till|to|through|and|bis|und|hasta|al?|y|jusqu['’]en|jusqu['’]à|à|et)"
    rf"(?: \w+)? |[–—-] ?|[到至])({_YEAR})(?!\d)",
    re.IGNORECASE,
)


@lru_cache(maxsize=4096)
def is_past(text: str) -> bool:
    """Tell if a statement's own words bound it in the past."""
    text = text[:MOST_CHARS]
    if _NOW.search(text):
        return False
    if _USED_TO.search(text) or (_STATE.search(text) and _ENDED.search(text)):
        return True
    return bool(_CHINESE_TIME.search(text) and _CHINESE_STATE.search(text))


def past_until(text: str) -> datetime | None:
    """The end of the year until which a statement holds: "until 2014", "2010–2014"; or None."""
    match = _LAST_YEAR.search(text[:MOST_CHARS])
    return datetime(int(match[1]) + 1, 1, 1, tzinfo=UTC) if match else None


def current_slot(subject: str | None, attribute: str | None, text: str) -> str | None:
    """The slot that a statement gives a value that holds now; None for one of the past."""
    key = slot(subject, attribute)
    return None if key is None or is_past(text) else key
