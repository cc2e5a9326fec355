"""Differences between two statements of the same words: another time, another wish, another role.

    they lived in Oslo     User lives in Oslo.                time
    they want a dog        User has a dog.                    wish
    their ex-wife is Ana   User's wife is Ana.                role

A request to forget one is none for the other. Only the words count that one of the two has alone;
in doubt two statements differ. English, German, Spanish, French and Chinese.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from pipeline.text.terms import stem
from pipeline.text.times.past import MOST_CHARS
from pipeline.text.word_lists import IRREGULAR, groups_in, words_of

_WORD = re.compile(r"[^\W\d_]+")
# Most words of a text that are read: each is compared with each one of the other text.
MOST_WORDS = 60
# Words of the past beside another verb.
_PAST = words_of(
    """
    was were had did used hatte hatten war waren wurde wurden
    estaba estaban estuvo había era eran fue fueron tenía tuvo
    était étais étaient avait avais avaient
    """
)
# The present of a form of the past that has no beginning in common with it.
_PRESENT_OF = {
    past: words_of(present)
    for pasts, present in groups_in("past_verbs.txt").items()
    for past in pasts.split()
}
# Endings of the past, and those of the present that take their place.
_ENDINGS = (
    (
        re.compile(r"^(?:ge)?(?P<verb>\w{2,}?)e?te(?:n|st|t)?$|^ge(?P<other>\w{2,}?)e?t$"),
        words_of("e t et en st"),
    ),
    (
        re.compile(
            r"^(?P<verb>\w{2,}?)(?:aba|abas|ábamos|aban|ía|ías|íamos|ían|ió|ó|aron|ieron|é|í)$"
        ),
        words_of("a o e an en as es amos emos imos"),
    ),
    (
        re.compile(r"^(?P<verb>\w{2,}?)(?:ais|ait|aient|ions|iez|ée?s?)$"),
        words_of("e es ent s t ons ez"),
    ),
)
# Words of a wish or a plan, of a possession and of a liking: other words of the same class may
# stand in a request.
_CLASSES = {name: words_of(words) for name, words in groups_in("verb_classes.txt").items()}
_CHINESE = {
    "wish": re.compile(r"想(?!起|念)|打算|希望|计划"),
    "possession": re.compile(r"(?<!没)有|养"),
    "liking": re.compile(r"喜欢|爱"),
}
# A role or a thing of an earlier time.
_FORMER = re.compile(
    r"\b(?:ex|former|previous|late|deceased|ehemalige[nrms]?|frühere[nrms]?|vorherige[nrms]?"
    r"|alte[nrms]?|verstorbene[nrms]?|antigu[oa]s?|anterior(?:es)?|viej[oa]s?|difunt[oa]s?"
    r"|ancien(?:ne)?s?|précédente?s?|défunte?s?)\b"
    r"|\bex(?:wife|husband|boyfriend|girlfriend|partner|frau|mann|mujer|marido|novi[oa]|femme"
    r"|mari)\b"
    r"|(?<!how )(?<!year[ -])(?<!years )(?<!months )(?<!weeks )\bold\b(?! are\b| is\b)"
    r"|前(?=妻|夫|任|女友|男友|雇主|公司|老板)|以前的|旧",
    re.IGNORECASE,
)
_NEW = re.compile(r"\b(?:new|neue[nrms]?|nuev[oa]s?|nouve(?:au|lle)s?)\b|新", re.IGNORECASE)


def states_another(request: str, memory: str) -> bool:
    """Tell if what a request names is another statement than a memory, of the same words."""
    request, memory = request[:MOST_CHARS], memory[:MOST_CHARS]
    if bool(_FORMER.search(request)) != bool(_FORMER.search(memory)):
        return True
    if _NEW.search(request) and not _NEW.search(memory):
        return True
    words, others = _words(request), _words(memory)
    own, other = words - others, others - words
    return _is_past(own, other) != _is_past(other, own) or _differ(
        _classes(own, request, memory), _classes(other, memory, request)
    )


def names_one_of(request: str, memory: str) -> bool:
    """Tell if a request names one thing of which a memory has several: "their pet"."""
    words, others = _words(request[:MOST_CHARS]), _words(memory[:MOST_CHARS])
    return any(f"{word}{end}" in others for word in words - others for end in ("s", "es"))


def _differ(named: Collection[str], stated: Collection[str]) -> bool:
    """Tell if the classes of the words of a request are not those of a memory.

    A request may name a thing without a verb; a thing that is wished for is not there.
    """
    if "wish" in named and "wish" not in stated:
        return True
    if stated == {"wish"} and "wish" not in named:
        return True
    return bool(named) and bool(stated) and set(named).isdisjoint(stated)


def _classes(own: Collection[str], text: str, without: str) -> set[str]:
    """The classes of the words that one text has alone."""
    classes = {name for name, words in _CLASSES.items() if not words.isdisjoint(own)}
    return classes | {
        name for name, word in _CHINESE.items() if word.search(text) and not word.search(without)
    }


def _is_past(own: Collection[str], others: Collection[str]) -> bool:
    """Tell if a word of one text is of the past, or in the past a verb that the other has."""
    return not _PAST.isdisjoint(own) or any(_is_past_of(word, others) for word in own)


def _is_past_of(word: str, others: Collection[str]) -> bool:
    """Tell if a word is a form of the past, and one of others a form of the present of its verb."""
    if not _PRESENT_OF.get(word, frozenset()).isdisjoint(others):
        return True
    if word.endswith("ed") or word in IRREGULAR:
        verb = stem(word)
        present = (other for other in others if not other.endswith("ed") and other not in IRREGULAR)
        if any(stem(other) == verb for other in present):
            return True
    for form, endings in _ENDINGS:
        if (match := form.match(word)) is not None:
            verb = next(group for group in match.groups() if group)
            if any(f"{verb}{ending}" in others for ending in ("", *endings)):
                return True
    return False


def _words(text: str) -> frozenset[str]:
    """The words of a text in small letters, with their accents."""
    return frozenset(_WORD.findall(text.lower())[:MOST_WORDS])
