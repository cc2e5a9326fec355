"""Words as they are compared: one pure tokenizer, for what is stored and for what is asked.

    "Maya's dogs loved the Köln zoo"   maya dog love koln zoo
    "她喜欢绿茶"                         她喜 喜欢 欢绿 绿茶

Case and accents are folded, possessives and English endings taken off, function words of English,
German and Spanish left out. A script without spaces is cut into pairs of characters. Words of other
languages lose at most an ending that English has too, stored and asked alike.

German writes several words as one. What is stored stays whole; a question's word is looked for
inside longer ones by its `root`: Versicherungen finds Haftpflichtversicherung.

Source: recall@10 of BM25 on LoCoMo with Snowball and irregular forms 63.4, with a plain suffix
stripper 61.8, without stemming and stop words 59.3.
"""

from __future__ import annotations

import asyncio
import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache

import snowballstemmer

from pipeline.text.marks import bounded
from pipeline.text.word_lists import IRREGULAR, STOP_WORDS

# A stored text of more terms than this is compared by its first ones.
MOST_TERMS = 2_000
# A question of more different terms is compared by its first ones.
MOST_ASKED = 64
# Letters that are cut at once: 20,000 take about 20 ms, and a body of a megabyte takes seconds.
MOST_AT_ONCE = 20_000
# Longer runs are data (keys, encoded files), not words.
LONGEST_WORD = 64

# Han and kana are written without spaces between words; Hangul's words inflect inside.
_UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003134f"
_TOKEN = re.compile(rf"(?P<unspaced>[{_UNSPACED}]+)|(?P<word>[^\W_{_UNSPACED}]+(?:['’][^\W\d_]+)*)")

_ENGLISH = snowballstemmer.stemmer("english")
_GERMAN = snowballstemmer.stemmer("german")
_ASCII_APOSTROPHE = str.maketrans("’", "'")


def terms(text: str) -> list[str]:
    """The terms of a text in their order, repeats included; at most MOST_TERMS."""
    found: list[str] = []
    for term in _terms(text):
        found.append(term)
        if len(found) == MOST_TERMS:
            break
    return found


async def cut(texts: Sequence[str]) -> list[list[str]]:
    """The terms of each; beside the event loop where they are so long that others would wait."""
    if sum(map(len, texts)) <= MOST_AT_ONCE:
        return [terms(text) for text in texts]
    return await asyncio.to_thread(lambda: [terms(text) for text in texts])


def asked(text: str) -> list[str]:
    """The different terms of a question, in their order; at most MOST_ASKED."""
    return list(dict.fromkeys(terms(text)))[:MOST_ASKED]


def fold(text: str) -> str:
    """Without case and accents: Köln and KOLN are one word."""
    if text.isascii():
        return text.lower()
    # Folding may bring letters to light that fold once more: a mathematical A is an A, is an a.
    plain = unicodedata.normalize("NFKD", bounded(text)).casefold()
    parts = unicodedata.normalize("NFKD", plain)
    bare = "".join(part for part in parts if not unicodedata.combining(part))
    return unicodedata.normalize("NFKC", bare)


def _terms(text: str) -> Iterator[str]:
    for token in _TOKEN.finditer(fold(text)):
        if token["unspaced"]:
            yield from _pairs(token["unspaced"])
        elif (term := _term(token["word"])) is not None:
            yield term


def _pairs(run: str) -> Iterator[str]:
    if len(run) == 1:
        yield run
    for at in range(len(run) - 1):
        yield run[at : at + 2]


@lru_cache(maxsize=50_000)
def _term(word: str) -> str | None:
    head = word.translate(_ASCII_APOSTROPHE).split("'")[0]
    if head in _FOLDED_STOP_WORDS or len(word) > LONGEST_WORD:
        return None
    return stem(head)


_FOLDED_STOP_WORDS = frozenset(fold(word) for word in STOP_WORDS)


def stem(word: str) -> str:
    """The form that an English word shares with its other forms: bought and buying are buy."""
    stemmed: str = _ENGLISH.stemWord(IRREGULAR.get(word, word))
    return stemmed


@lru_cache(maxsize=10_000)
def root(term: str) -> str:
    """The part of a German word that stays the same inside a compound: all but its ending."""
    rooted: str = _GERMAN.stemWord(term)
    return rooted
