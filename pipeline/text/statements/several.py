"""Predicates of which a subject has several values at a time: languages, allergies, children.

    "User speaks Welsh."             a further statement adds a language
    "Ana's daughter is called Mia."  a further one names another child

English, German, Spanish and Chinese. It serves statements that have no slot; words of other
languages match nothing.
"""

from __future__ import annotations

import re

_PREDICATES = (
    r"\b(?:speaks?|learns?|learning|languages?|allerg\w+|intolerant|likes?|loves?|enjoys?|hates?"
    r"|dislikes?|interested|hobb(?:y|ies)|plays?|collects?|owns?|visited|medications?"
    r"|bought|met|saw|attended|watched|went to|travell?ed to|flew to)\b",
    r"\b(?:spricht|sprechen|lernt|sprachen?|allergi\w+|mag|mögen|liebt|hasst|interessiert|hobb\w+"
    r"|spielt|sammelt|besitzt|besucht|medikament\w*"
    r"|kaufte|gekauft|traf|getroffen|reiste|gereist)\b",
    r"\b(?:habla|aprende|idiomas?|al[ée]rgi\w+|gustan?|encantan?|odia|afici[oó]n\w*|juega|toca"
    r"|colecciona|posee|visit(?:ó|ado)|medicamentos?|compró|conoció|viajó|vio)\b",
    r"会说|会讲|在学|过敏|(?<!最)喜欢|爱好|讨厌|下象棋|去过|收集|买了|见了|认识了",
)
_PEOPLE = (
    r"\b(?:daughter|son|child|kid|brother|sister|friend|colleague|cousin|cat|dog|pet)s?\b[^.]{0,20}"
    r"\b(?:is|are|named|called)\b",
    r"\b(?:tochter|sohn|kind|bruder|schwester|freund(?:in)?|kollegin?|katze|hund)\b[^.]{0,20}"
    r"\b(?:hei(?:ß|ss)t|ist|namens)\b",
    r"\b(?:hij[oa]|herman[oa]|amig[oa]|prim[oa]|gat[oa]|perr[oa])\b[^.]{0,30}"
    r"\b(?:se llama|es|llamad[oa])\b",
    r"(?:女儿|儿子|孩子|哥哥|姐姐|弟弟|妹妹|朋友|猫|狗)(?:叫|是|名叫)",
)
_SEVERAL = re.compile("|".join((*_PREDICATES, *_PEOPLE)), re.IGNORECASE)
# Two names at the end of a statement; those who do something ("led by") are one group.
_AGENT = re.compile(r"\b(?:by|von|por) (?=[A-ZÀ-Þ])|由")
_LIST = re.compile(
    r"\b(?-i:[A-ZÀ-Þ])[\w-]+ (?:and|und|y|e) (?-i:[A-ZÀ-Þ])[\w-]+[.!]?$"
    r"|[\u4e00-\u9fff]{2,}[和与][\u4e00-\u9fff]{2,}。?$",
)
# Characters that are read; statements are shorter.
MOST_CHARS = 400


def has_several(text: str) -> bool:
    """Tell if a further statement in these words adds a value and replaces none."""
    return bool(_SEVERAL.search(text[:MOST_CHARS]))


def without_predicate(text: str) -> str:
    """The statement without the first words that say that it has several values."""
    return _SEVERAL.sub(" ", text[:MOST_CHARS], count=1)


def lists(text: str) -> bool:
    """Tell if a statement lists the objects of an active verb: "takes Metformin and Ramipril"."""
    text = text[:MOST_CHARS]
    return bool(_LIST.search(text)) and not _AGENT.search(text)
