"""Statements that say that a relation is over, and nothing else: "Hana left the Red Foxes".

    ends_relation("User sold the Brompton.", "owns", "User", "Brompton")            True
    ends_relation("User does not like rain in Ulm.", "lives_in", "User", "Ulm")     False

A statement is read without a model that relates it, so in doubt it ends nothing: it names both
things, is about the relation, and has no other matter. English, German, Spanish and Chinese. Words
of other languages match nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from pipeline.text import polarity
from pipeline.text.names import is_self, named_in, plain_name, speaks_of_self
from pipeline.text.past import MOST_CHARS
from pipeline.text.relation_names import is_lasting, words_about
from pipeline.text.terms import fold, terms
from pipeline.text.values import ValueKind, stated
from pipeline.text.word_lists import words_of

# Words that end a relation of one of these names, though they are not about it.
_VERBS = tuple(
    (words_of(relations), re.compile(words, re.IGNORECASE))
    for relations, words in (
        (
            "owns drives",
            r"\b(?:sold|gave away|given away|gave back|got rid of|scrapped|donated|lost|returned"
            r"|traded(?: in)?|stolen|died|passed away"
            r"|verkaufte?|verschenkte?|entsorgt|abgegeben|verloren|zurückgegeben|gestohlen"
            r"|gestorben|vendió|vendido|regaló|regalado|donó|perdió|perdido|devolvió|murió"
            r"|falleció)\b|卖掉|卖了|卖给|送人|扔了|丢了|被偷|去世|死了",
        ),
        (
            "works_at works_as member_of studies_at leads lives_in plays",
            r"\b(?:left|quit|resigned(?: from)?|retired(?: from)?|withdrew|dropped out|fired"
            r"|laid off|let go|moved out|moved away|cancell?ed"
            r"|gekündigt|verlassen|verließ|ausgetreten|aufgehört|entlassen|ausgezogen|weggezogen"
            r"|dejó|dejado|abandonó|abandonado|renunció|se fue|despedid[oa]|se marchó)\b"
            r"|辞职|退出|离开|退休|搬离|搬出|被解雇|被裁",
        ),
        (
            "dating engaged_to married_to",
            r"\b(?:broke up|broken up|split up|separated|divorced|left|is over"
            r"|(?:not|no longer) with|nicht mehr mit|ya no (?:está|sale) con"
            r"|getrennt|geschieden|verlassen|auseinander|vorbei"
            r"|separ(?:ó|aron|ad[oa]s?)|divorci(?:ó|aron|ad[oa]s?)|dejó|rompi(?:ó|eron))\b"
            r"|分手|离婚|分开",
        ),
        ("allergic_to has_condition", r"\b(?:recovered|cured|geheilt|curad[oa])\b|痊愈"),
        (
            "plays learns follows_diet",
            r"\b(?:stop(?:s|ped)?|gave up|given up|quit|dropped|done with|aufgehört|aufgegeben"
            r"|dejó|abandonó)\b|放弃|戒了",
        ),
    )
)
# Words about a relation, besides those of its name in English.
_WORDS = {
    "plays": "spielt spielen juega jugar 打 踢 玩 弹 拉",
    "learns": "lernt lernen aprende aprender 学",
    "speaks": "spricht sprechen habla hablar 说",
    "drives": "fährt fahren conduce conducir 开",
    "owns": "besitzt tiene posee 有 养",
    "likes": "mag gern gerne gusta encanta 喜欢 爱",
    "lives_in": "wohnt wohnen lebt leben vive vivir 住",
    "works_at": "arbeitet arbeiten stelle trabaja trabajar empleo 工作 上班",
    "studies_at": "studiert studieren estudia estudiar 读书 上学",
    "member_of": "membership mitglied mitgliedschaft miembro socia socio 会员 成员",
    "has_friend": "freunde freundinnen befreundet amigos amigas 朋友",
    "dating": "zusammen pareja novios 谈恋爱 在一起",
    "allergic_to": "allergisch allergie alérgica alérgico alergia 过敏",
    "follows_diet": "ernährt isst come 吃",
}
# Words behind the second thing that say why or when, and of a possession who has it now.
_WHY = r"because|due to|after|when|last|weil|wegen|nachdem|letzte[nrsm]?|porque|por|después"
_REASON = re.compile(rf"^\W*(?:{_WHY})\b", re.IGNORECASE)
_RECEIVER = re.compile(rf"^\W*(?:{_WHY}|to|for|an|für|a)\b", re.IGNORECASE)
# Words that say nothing about the matter.
_GENERAL = frozenset(
    terms("""
        user nutzer nutzerin benutzer benutzerin usuario usuaria any more longer anymore now all
        recently finally since own have has get together each other anything again back start begin
        hat haben ist sind mehr jetzt endlich inzwischen miteinander einander war den mit am beim an
        wieder erneut angefangen begonnen nuevo otra vez vuelve volvió empezó
        ya más ahora ha han está son eran juntos entre sí sido
    """)
)
_GENERAL_CHARS = frozenset(
    "用户已经从由在于跟和与把将被对里给也都就再了的他她它们们一辆只台个条之间又重新开始回"
)
_IDEOGRAPH = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]")


def may_end(text: str) -> bool:
    """Tell if a statement has words that end something."""
    text = text[:MOST_CHARS]
    return polarity.takes_back(text) or any(verbs.search(text) for _, verbs in _VERBS)


def ends_relation(text: str, relation: str, source: str, destination: str) -> bool:
    """Tell if a statement, or a clause of it, says only that a relation of two things is over."""
    text = text[:MOST_CHARS]
    if is_lasting(relation) or polarity.adds(text) or not _names(text, source):
        return False
    return any(
        _says_end(part, relation, source, destination)
        for part in dict.fromkeys((text, *polarity.clauses(text)))
        if _names(part, destination)
    )


def states_relation(text: str, relation: str, source: str, destination: str) -> bool:
    """Tell if a statement says that a relation of two things holds, and nothing else."""
    text = text[:MOST_CHARS]
    return (
        not polarity.takes_back(text)
        and _is_about(text, relation)
        and _names(text, source)
        and _names(text, destination)
        and _is_bare(text, relation, source, destination)
    )


def _says_end(part: str, relation: str, source: str, destination: str) -> bool:
    """Tell if a clause says that the relation is over, by a verb of it or with words about it."""
    for relations, verbs in _VERBS:
        if relation in relations and verbs.search(part):
            rest = polarity.without_endings(verbs.sub(" ", part))
            return not polarity.negates(rest) and _is_bare(rest, relation, source, destination)
    if not _is_about(part, relation) or not polarity.takes_back(part):
        return False
    rest = polarity.without_endings(part)
    if rest != part and polarity.negates(rest):  # "has not stopped playing tennis"
        return False
    return _is_bare(polarity.without_negations(rest), relation, source, destination)


def _is_bare(rest: str, relation: str, source: str, destination: str) -> bool:
    """Tell if the rest of a clause has no other matter than the relation of the two things."""
    about = _about(relation)
    if _IDEOGRAPH.search(rest):
        known = "".join((source, destination, *about))
        return {c for c in fold(rest) if c.isalnum()} <= _GENERAL_CHARS | set(fold(known))
    at = fold(rest).find(fold(destination))
    behind = fold(rest)[at + len(fold(destination)) :] if at >= 0 else ""
    if (_RECEIVER if relation in _VERBS[0][0] else _REASON).match(behind):
        rest = fold(rest)[: at + len(fold(destination))]
    for date in stated(rest).of(ValueKind.DATE):
        if any(map(str.isdigit, date.text)):
            rest = rest.replace(date.text, " ")
    return set(terms(rest)) <= _GENERAL | about | _terms((source, destination))


def _about(relation: str) -> frozenset[str]:
    """The terms of a relation, and its words in a script without spaces."""
    words = _WORDS.get(relation, "")
    unspaced = [word for word in words.split() if _IDEOGRAPH.search(word)]
    return words_about(relation).union(terms(words), unspaced)


def _is_about(part: str, relation: str) -> bool:
    """Tell if a clause has a word of a relation."""
    about = _about(relation)
    unspaced = (word for word in about if _IDEOGRAPH.search(word))
    return not about.isdisjoint(terms(part)) or any(word in part for word in unspaced)


def _names(text: str, name: str) -> bool:
    """Tell if a text names a thing, and not only a part of a longer name."""
    if is_self(name):
        return speaks_of_self(text)
    plain = plain_name(name)
    return plain in named_in(text, {plain})


def _terms(names: Iterable[str]) -> set[str]:
    return {term for name in names for term in terms(name)}
