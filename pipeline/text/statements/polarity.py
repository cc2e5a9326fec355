"""Polarity of a statement: it negates or ends something, or it adds something.

English, German, Spanish and Chinese. Words of other languages match nothing.
"""

from __future__ import annotations

import re

from pipeline.text.statements.forget_requests import asks_to_forget

_NEGATIONS = (
    r"\b(?:not|no|never|none|nothing|neither|nor|without|cannot)\b|n['’]t\b",
    r"\b(?:nicht|nichts|nie|niemals|kein(?:e|en|er|em|es)?|ohne|weder)\b",
    r"\b(?:nunca|jam[aá]s|nada|sin|tampoco|ni|ning[uú]n[ao]?)\b",
    r"不(?![但仅过久错同断])|没(?!关系)|无法|并非|从未|未曾|别再",
)
_ENDINGS = (
    r"\b(?:stop(?:s|ped)?|quit(?:s|ted)?|gave up|given? up|giv(?:es|ing) up|ended|over|cease[sd]?"
    r"|cancel(?:s|l?ed)?|called off|sold|gave away|got rid of|lost|died|passed away|broke up"
    r"|split up|divorced|dropped|retired|recovered|finished|former(?:ly)?|used to|untrue|false"
    r"|wrong|mistaken|mistake|joke|joking|takes? back|took back|retract(?:s|ed)?|withdr[ae]wn?"
    r"|withdrew|forget|abandon(?:s|ed)?|resigned|left|cured|gone|closed|expired)\b",
    r"\b(?:aufgehört|aufgegeben|beendet|abgesagt|gekündigt|verkauft|verloren|gestorben|verstorben"
    r"|getrennt|geschieden|abgebrochen|widerruf\w*|zurückgenommen|zurückgezogen|falsch|gelogen"
    r"|irrtum|scherz|witz|vergiss|vergessen|ehemalig\w*|früher\w*|vorbei|storniert|abgeschafft"
    r"|hört .{0,40}\bauf|gibt .{0,40}\bauf|nimmt .{0,40}\bzurück|aufgelöst|geheilt|weg)\b",
    r"\b(?:dej(?:ó|a|ado)|abandon(?:ó|a|ado)|cancel(?:ó|a|ado|ada)|anul(?:ó|ado|ada)|vendi(?:ó|do)"
    r"|perdi(?:ó|do)|muri(?:ó|do)|muerto|falleci(?:ó|do)|separ(?:ó|ado|ada)|divorci(?:ó|ado|ada)"
    r"|termin(?:ó|ado|ada)|renunci(?:ó|ado|ada)|retir(?:ó|a|ado|ada)|falso|mentira|broma"
    r"|err(?:or|óneo)|equivoc\w*|olvid\w*|suspendi(?:ó|do|da)|desmiente|desmintió|ex|ya no"
    r"|curad[oa])\b",
    r"不再|取消|停止|放弃|戒了|卖了|卖掉|丢了|去世|死了|分手|离婚|辞职|退出|结束|收回|撤回|开玩笑"
    r"|搞错|说错|弄错|错误|忘掉|忘记|作废|退掉|痊愈|已经.{0,6}掉了|不是真的|退休",
)
_ADDITIONS = (
    r"\b(?:also|as well|in addition|additionally|besides|another|furthermore|moreover|on top of"
    r" that|second)\b|\btoo(?=[.!]?$)",
    r"\b(?:auch|außerdem|zusätzlich|ebenfalls|ebenso|zudem|darüber hinaus|weitere[rnsm]?"
    r"|zweite[rnsm]?|noch eine?[nrsm]?)\b",
    r"\b(?:también|tambien|además|ademas|asimismo|otr[oa]s?(?! vez)|igualmente|segund[oa])\b",
    r"也|另外|此外|还(?!是|没)|同时|又(?=[养买学有])|第二",
)


_CHANGES = (
    r"\b(?:now|nowadays|from now on|switch(?:ed|es)|chang(?:ed|es)|moved|started|became|turned"
    r"|instead|is back|goes back)\b",
    r"\b(?:jetzt|nun|inzwischen|mittlerweile|neuerdings|gewechselt|umgestiegen|umgezogen|gezogen"
    r"|geworden|wieder|stattdessen|statt)\b",
    r"\b(?:ahora|actualmente|se pasó|cambió|se mudó|mudado|empezó|de vuelta|en vez de)\b",
    r"现在|目前|如今|改|换|搬|已经|变成|回家",
)

_MOVES = (
    r"\b(?:moved|postponed|rescheduled|shifted|pushed|brought forward|delayed)\b",
    r"\b(?:verschoben|verlegt|vorgezogen)\b",
    r"\b(?:aplaz\w+|pospuest\w+|adelantad\w+|cambiad\w+|reporté|décalé|avancé)\b",
    r"推迟|提前|改到|改为|改成",
)


def _any(parts: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(parts), re.IGNORECASE)


_NEGATED, _ENDED, _ADDED = map(_any, (_NEGATIONS, _ENDINGS, _ADDITIONS))
_CHANGED, _MOVED = _any(_CHANGES), _any(_CHANGES + _MOVES)


def negates(text: str) -> bool:
    """Tell if the statement has a negation: not, kein, nunca, 不."""
    return bool(_NEGATED.search(text))


def takes_back(text: str) -> bool:
    """Tell if the statement says that something is not so, no longer so, or to be forgotten."""
    return negates(text) or bool(_ENDED.search(text)) or asks_to_forget(text)


def adds(text: str) -> bool:
    """Tell if the statement adds to what is known: also, außerdem, también, 也."""
    return bool(_ADDED.search(text))


def changes(text: str) -> bool:
    """Tell if the statement says that something changed: now, switched, jetzt, ahora, 现在."""
    return bool(_CHANGED.search(text))


def moves(text: str) -> bool:
    """Tell if the statement says that something has another time: postponed, verschoben, now."""
    return bool(_MOVED.search(text))


_CLAUSES = re.compile(
    r"[,;.!?，。；！？]|\b(?:but|and now|aber|sondern|und jetzt|pero|sino|y ahora)\b|但|而且",
    re.IGNORECASE,
)
_INSTEAD_OF = (
    r"instead of|rather than|out of|from|than|no longer|replac(?:es|ed|ing)"
    r"|(?:an)?statt|anstelle von|von|aus|als|ersetzt"
    r"|en (?:vez|lugar) de|de|desde|del|que|reemplaza a"
)
_FORMER = re.compile(
    rf"(?:\b(?:{_INSTEAD_OF})\b|代替|而不是|不是|[从由比])\W{{0,3}}(?-i:[a-zà-ÿ]{{1,5}} )?$",
    re.IGNORECASE,
)
# An exchange: "traded the Civic in for", "tauschte den Golf gegen", "cambió Movistar por".
_EXCHANGED = re.compile(
    r"(?:\b(?:trad(?:ed|es)|swapp(?:ed|s)|swaps|exchang(?:ed|es)|tauschte?|getauscht|cambi(?:ó|a)"
    r"|troqué|échangé)\b|把)\W{0,3}(?:(?-i:[a-zà-ÿ]{1,5}) )?$",
    re.IGNORECASE,
)
_FOR = re.compile(r"[\w ]{0,12}?(?:\b(?:for|gegen|por|pour|contre)\b|换成|改成)", re.IGNORECASE)
# Longest words that name a value as the former one, in characters.
_MOST_FORMER = 40
# Most clauses of a statement that are read one by one; the rest is one.
MOST_CLAUSES = 40


def clauses(text: str) -> list[str]:
    """The parts of a statement that a negation reaches: up to a comma, or to a "but"."""
    return [part for part in _CLAUSES.split(text, MOST_CLAUSES - 1) if part.strip()]


def puts_aside(text: str, value: str) -> bool:
    """Tell if the statement names a value as the former one: "from Berlin", "statt Kaffee"."""
    low, sought = text.lower(), value.lower()
    if len(low) != len(text):  # a letter that has two small ones: positions would move
        low, sought = text, value
    at = low.find(sought)
    while at >= 0:
        end = at + len(sought)
        before, after = text[max(0, at - _MOST_FORMER) : at], text[end : end + _MOST_FORMER]
        if _FORMER.search(before) or (_EXCHANGED.search(before) and _FOR.match(after)):
            return True
        at = low.find(sought, at + 1)
    return False
