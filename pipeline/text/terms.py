"""Terms: words in the form in which they are compared, for stored texts and for queries.

    "Maya's dogs loved the Köln zoo"   maya dog love koln zoo
    "她喜欢绿茶"                         她喜 喜欢 欢绿 绿茶

Case and accents are folded, possessives and English endings removed, function words of English,
German and Spanish left out. Text in a script without spaces is split into pairs of characters.
Words of other languages lose at most an ending that exists in English, too, in texts and queries
alike.

German joins words into compounds. Stored words stay whole; a query's word is searched inside longer
ones by its `root`: Versicherungen finds Haftpflichtversicherung.

Source: recall@10 of BM25 on LoCoMo with Snowball and irregular forms 63.4, with a plain suffix
stripper 61.8, without stemming and stop words 59.3.
"""

from __future__ import annotations

import asyncio
import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice

import snowballstemmer

from pipeline.text.marks import bounded
from pipeline.text.word_lists import IRREGULAR, STOP_WORDS

# Version of the tokenizer. If it is raised, see pipeline/search/words/term_rebuild.
CUT = 2
# Maximum number of terms of a stored text; the rest is not compared.
MOST_TERMS = 2_000
# Maximum number of different terms of a query; the rest is not compared.
MOST_ASKED = 64
# Letters that are split on the event loop: 20,000 take about 20 ms, and a megabyte takes seconds.
MOST_AT_ONCE = 20_000
# Longer runs are data (keys, encoded files), not words.
LONGEST_WORD = 64

# Han and kana have no spaces between words; words in Hangul have inflected forms.
_UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003134f"
_TOKEN = re.compile(rf"(?P<unspaced>[{_UNSPACED}]+)|(?P<word>[^\W_{_UNSPACED}]+(?:['’][^\W\d_]+)*)")

_ENGLISH = snowballstemmer.stemmer("english")
_GERMAN = snowballstemmer.stemmer("german")
_ASCII_APOSTROPHE = str.maketrans("’", "'")


def terms(text: str) -> list[str]:
    """Return the terms of a text in order, with repeats; at most MOST_TERMS."""
    return list(islice(_terms(text), MOST_TERMS))


async def cut(texts: Sequence[str]) -> list[list[str]]:
    """Return the terms of each text. Long texts are split in a thread, not on the event loop."""
    if sum(map(len, texts)) <= MOST_AT_ONCE:
        return [terms(text) for text in texts]
    return await asyncio.to_thread(lambda: [terms(text) for text in texts])


def query_terms(text: str) -> list[str]:
    """Return the different terms of a query, in order; at most MOST_ASKED."""
    return list(dict.fromkeys(terms(text)))[:MOST_ASKED]


def words(text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each word that is no stop word, as it is written, with its different terms.

    A run of a script without spaces is one word, with all of its pairs.
    """
    for token in _TOKEN.finditer(unicodedata.normalize("NFC", bounded(text))):
        if of_word := tuple(dict.fromkeys(_terms(token[0]))):
            yield token[0], of_word


def fold(text: str) -> str:
    """Remove case and accents: Köln and KOLN give the same word."""
    if text.isascii():
        return text.lower()
    # Decompose and fold twice: a mathematical A first becomes A, then a.
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
    """Return the common form of an English word: bought and buying give buy."""
    stemmed: str = _ENGLISH.stemWord(IRREGULAR.get(word, word))
    return stemmed


@lru_cache(maxsize=10_000)
def root(term: str) -> str:
    """Return a German word without its ending, as it occurs inside compounds."""
    rooted: str = _GERMAN.stemWord(term)
    return rooted
