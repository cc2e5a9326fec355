"""Names of things: the form in which they are compared, and the names that a text may contain.

plain_name("the Café Müller!")   cafe muller
plain_name("Maya's")             maya
names_in("Where is Maya Lopez?") where, is, maya, lopez, where is, …, maya lopez, …
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from pipeline.text.terms import fold
from pipeline.text.word_lists import words_of

# Most words of a name, most characters of a name in a script without spaces, and most words of a
# text that are read.
MOST_WORDS = 6
MOST_UNSPACED = 8
MOST_READ = 400
# Most names that are looked for in one text, the longest first: each takes one reading of it.
MOST_NAMES = 100
# Least characters of a part that stands for a name.
LEAST_SPACED, LEAST_UNSPACED = 4, 2

_UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
_TOKEN = re.compile(rf"[{_UNSPACED}]+|[^\W_{_UNSPACED}]+")
_POSSESSIVE = re.compile(r"['’`´]s?(?=\W|$)")
_ARTICLES = words_of("the a an der die das el la los las le les")
# Legal forms of companies; they are no part of a name.
_LEGAL_FORMS = words_of("ag gmbh inc ltd llc co corp plc sa sl kg se")
_SELF = words_of(
    """
    user users i me my myself mine self speaker ich mich mir mein meine meiner meinem meinen meines
    benutzer benutzerin nutzer nutzerin yo mi mis usuario usuaria 用户 我 本人
    """
)


def plain_name(name: str) -> str:
    """A name without case, accents, punctuation, article and possessive ending; "" for no name."""
    tokens = _tokens(name)
    if len(tokens) > 1 and tokens[0] in _ARTICLES:
        tokens = tokens[1:]
    while len(tokens) > 1 and tokens[-1] in _LEGAL_FORMS:
        tokens = tokens[:-1]
    return " ".join(tokens)


def is_self(name: str) -> bool:
    """True for the words with which a speaker without a name is meant: User, I, ich, 我."""
    return plain_name(name) in _SELF


def names_self(text: str) -> bool:
    """True if a text speaks of its speaker: "my sister", "wo wohne ich", "我的"."""
    return any(token in _SELF or token.startswith("我") for token in _tokens(text)[:MOST_READ])


def names_in(text: str) -> list[str]:
    """All plain names that a text may contain: its runs of up to MOST_WORDS words, without repeats.

    Of a run without spaces, all parts of up to MOST_UNSPACED characters; of a word with a final s
    also the word without it, for the German genitive.
    """
    names: dict[str, None] = {}
    tokens = _tokens(text)[:MOST_READ]
    for at, token in enumerate(tokens):
        if re.match(rf"[{_UNSPACED}]", token):
            names.update(dict.fromkeys(_parts(token[:MOST_READ])))
        run = ""
        for word in tokens[at : at + MOST_WORDS]:
            for form in (word, word[:-1]) if len(word) > 3 and word.endswith("s") else (word,):
                names[f"{run}{form}"] = None
            run = f"{run}{word} "
    return list(names)


def named_in(text: str, names: Iterable[str]) -> set[str]:
    """Return the plain names in a text, without those that are only part of a longer one.

    "Quit at Stadtwerke Ulm" names stadtwerke ulm, and not ulm.
    """
    rest = " ".join(_tokens(text)[:MOST_READ])
    present, possible = set(), set(names_in(rest))
    for name in sorted(possible.intersection(names), key=len, reverse=True)[:MOST_NAMES]:
        if name in possible:
            present.add(name)
            rest = rest.replace(name, " / ")
            possible = set(names_in(rest))
    return present


def says(text: str, name: str) -> bool:
    """True if a text contains a name or a longer word of it: "Porto" of Porto Alegre.

    Words for the speaker are in every text.
    """
    if is_self(name):
        return True
    plain = plain_name(name)
    least = LEAST_UNSPACED if re.match(rf"[{_UNSPACED}]", plain) else LEAST_SPACED
    parts = {part for part in names_in(name) if len(part) >= least} | {plain}
    return not parts.isdisjoint(names_in(text))


def words_in(text: str) -> list[str]:
    """The words of a text as names are compared, at most MOST_READ: "Maya's" gives maya."""
    return _tokens(text)[:MOST_READ]


def _tokens(text: str) -> list[str]:
    return _TOKEN.findall(fold(_POSSESSIVE.sub(" ", text)))


def _parts(run: str) -> Sequence[str]:
    return [
        run[at : at + size]
        for at in range(len(run))
        for size in range(1, min(MOST_UNSPACED, len(run) - at) + 1)
    ]
