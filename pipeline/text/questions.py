"""Content words of a question: the words that an answer has to account for.

    "What is Maya allergic to?"     Maya, allergic
    "Wie hoch ist die Miete?"       Miete
    "¿Qué sabes de Andrés?"         Andrés
    "陈薇对什么过敏？"                陈薇, 过敏

Question words, auxiliary verbs and requests ("tell me", "weißt du") are left out: they say what is
asked, not about what. English, German, Spanish and Chinese.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

from pipeline.text import terms
from pipeline.text.times.dates import MONTHS, UNITS, WEEKDAYS

# Maximum number of content words; the rest is not compared.
MOST_WORDS = 12

_ASKING = """
    about any anyone anything else ever everything somebody someone something current currently
    describe exactly find get give go happen help know let like list long look make many me mean
    mention more most much name need now often please question recall remember remind
    say see show still tell thing think time today usually use want way yet there
    here than too very just only really actually again already always ago also being am were did

    alles bitte denn derzeit eigentlich erzähl erzähle etwas für gemacht genau gerade gern gerne
    geschehen getan gib gibt hast hat haben habt heißen heißt heute hoch immer irgendwas jetzt kommt
    kommen können könnte lang lange lassen machen macht mal mit möchte möchten muss musst müssen
    nenne oft passiert passieren sag sage sagen schon seinem seiner seinen seines soll sollen sollte
    tun tut viel viele war waren weiß weißt welch welche welchem welchen welcher welches weswegen
    weshalb wieder wieso wieviel wieviele will wissen wobei wodurch wofür womit woran worauf woraus
    worin worüber wovon wovor wozu wollen zeig zeige zurzeit die den dem am an in ab zur ist bist
    bin sind gewesen kann darf dürfen bekommt bekommen deinem deiner ihrem ihres

    a actualmente adónde ahora al algo alguien algún alguna alguno algunas algunos ante aún cada con
    cuál cuáles cuánta cuántas cuánto cuántos cuéntame cuenta desde dígame dime en entre era eres es
    estar está están estoy favor fue fueron ser soy ha haber había hace hacen hacer hago han has
    hasta hay hizo hicieron ir llama llaman llamar llamas llamo lo mucha muchas mucho muchos muestra
    nombre nos ocurrió pasa pasó por puede pueden puedo quiere quieren quiero saben saber sabe sabes
    sigue siempre sin sobre suele suelen tanto tener tengo tiene tienen tienes toda todas todo todos
    todavía va van vas voy

    avez avoir combien comment dans du est où pourquoi quand que quel quelle quelles quels qui quoi
    che chi come cosa dove perché quale quali quando quanti quanto onde qual quais quantos
    waar wanneer waarom wat welke wie
"""
# Removed before the text is split into pairs, the longest first.
_ASKING_UNSPACED = """
    请问 告诉 知道 关于 什么时候 什么样 什么 哪里 哪儿 哪一天 哪天 哪个 哪些 哪位 哪 多少 多久 多长
    几点 几个 几号 几 怎么样 怎么 怎样 如何 为什么 为何 谁 名字 名称 可以 一下 现在 目前 吗 呢 吧
    你 我 他 她 它 叫 是 的 了 在 做 有 没有 对 会 要 去 和 跟 与 还 也 都 就 被 把 到 从 给 能 最
"""
# Words that are content in other phrases or languages: "art", "Kind".
_PHRASES = re.compile(
    r"\b(?:(?:kind|sort|type)s? of|for a living|art von|tipo de|clase de)\b", re.IGNORECASE
)
_ASKING_TERMS = frozenset(terms.terms(_ASKING))
_UNSPACED = re.compile("|".join(sorted(_ASKING_UNSPACED.split(), key=len, reverse=True)))
_TIME_TERMS = frozenset(terms.terms(" ".join([*MONTHS, *WEEKDAYS, *UNITS])))
_KANA_OR_HANGUL = re.compile("[\u3040-\u30ff\uac00-\ud7af]")


@dataclass(frozen=True, slots=True)
class ContentWord:
    """A word as it is written, and its terms; a run of Chinese has several.

    `first`: it begins the question, so its capital letter says nothing.
    """

    text: str
    terms: tuple[str, ...]
    first: bool = False

    @property
    def is_name(self) -> bool:
        """True for a word with a capital letter inside a question, and for a script without."""
        return not self.text[:1].islower() and not self.first

    @property
    def is_time(self) -> bool:
        """True for a month, a weekday, a unit of time or a number."""
        return all(map(is_time_term, self.terms))


def is_time_term(term: str) -> bool:
    """Tell if a term is a month, a weekday, a unit of time or a number."""
    return term in _TIME_TERMS or term.isdecimal()


def content_words(question: str) -> list[ContentWord]:
    """Return the different content words of a question, at most MOST_WORDS.

    Empty if it asks about nothing in particular: "What do you know?"
    """
    plain = _PHRASES.sub(" ", question)
    if not _KANA_OR_HANGUL.search(plain):
        plain = _UNSPACED.sub(" ", plain)
    words: dict[tuple[str, ...], ContentWord] = {}
    begins = question.lstrip("¿ ")
    for text, of_word in terms.words(plain):
        if not _ASKING_TERMS.issuperset(of_word):
            words.setdefault(of_word, ContentWord(text, of_word, begins.startswith(text)))
    return list(words.values())[:MOST_WORDS]


def is_asking(of_word: Iterable[str]) -> bool:
    """Tell if a word with these terms only says what is asked, not about what."""
    return _ASKING_TERMS.issuperset(of_word)


def is_latin(text: str) -> bool:
    """Tell if most letters of the text are Latin."""
    letters = [letter for letter in text if letter.isalpha()]
    latin = sum(unicodedata.name(letter, "").startswith("LATIN") for letter in letters)
    return 2 * latin >= len(letters)


def has_known_question_words(text: str) -> bool:
    """Tell if the text is in a script whose question words are known: Latin, or Chinese.

    In other scripts a question word looks like a content word.
    """
    return is_latin(text) or (not _KANA_OR_HANGUL.search(text) and _is_han(text))


def _is_han(text: str) -> bool:
    letters = [letter for letter in text if letter.isalpha()]
    return all("\u3400" <= letter <= "\u9fff" or letter.isascii() for letter in letters)
