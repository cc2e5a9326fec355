"""Equality of texts: a hash for stored memories, and broader keys for the facts of a batch."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from functools import lru_cache

from pipeline.text.marks import bounded
from pipeline.text.word_lists import words_of

# Words that change no statement: articles of English, German and Spanish, "that" and "muy".
_SMALL_WORDS = words_of("""
    a an the that
    der die das dem den des ein eine einem einen einer eines
    el la las lo los un una unas unos muy
""")
# Prepositions joined with an article; "am" is an English verb too.
_JOINED = {
    "im": "in", "ins": "in", "ans": "an", "zum": "zu", "zur": "zu", "vom": "von",
    "beim": "bei", "al": "a", "del": "de",
}  # fmt: skip
# Short forms, written out: "I'm" is "I am". Others, such as "'s", have several meanings.
_SHORT_FORMS = {"m": "am", "re": "are", "ve": "have", "ll": "will"}
# A word, a sign that belongs to a word or number ("C++", "$5", "5%", "#3", "@maya"), and a minus in
# front of a number or behind a word ("-5", "A-").
_WORDS_AND_SIGNS = re.compile(
    r"(?P<word>[^\W_]+)(?:'(?P<short>m|re|ve|ll)(?!\w))?"
    r"|[$€£¥₹%‰#@&^+<>=~±×÷°]"
    r"|(?<!\w)-(?=\d)|(?<=\w)-(?!\w)"
)
# A word with a sign that is a part of it: "A+", "C++", "C#", "5%", "$5", "-5".
_SIGNED = re.compile(r"(?<!\w)(?:[-$€£<>~±]\d+(?:[.,]\d+)*\w*|\w+[+#%]+|[^\W\d_]-)(?!\w)")
_ASCII = str.maketrans("’−‐‑", "'---")


def text_hash(text: str) -> bytes:
    """Return a hash that ignores case, spacing and final full stops.

    The hashes are stored, and no two active memories of a lane have the same one: a change of this
    function needs a migration.
    """
    normal = " ".join(text.casefold().split()).rstrip(" .")
    return hashlib.blake2b(normal.encode(), digest_size=16).digest()


def same_text(text: str) -> str:
    """Return a key that ignores case, spacing, the form of letters, and final full stops."""
    folded = unicodedata.normalize("NFKC", bounded(text)).casefold()
    return " ".join(folded.split()).rstrip(".!。 ")


# Cached, because a fact is compared with each of its neighbours.
@lru_cache(maxsize=4096)
def exact_words(text: str) -> tuple[str, ...]:
    """Return the words and signs of a text in order, without case, articles and punctuation.

    Every other word counts, so "flies to Rome" and "flies from Rome", "had" and "has", "A+" and
    "A-", -5 and 5 differ.
    """
    normal = unicodedata.normalize("NFKC", bounded(text)).casefold().translate(_ASCII)
    words: list[str] = []
    for match in _WORDS_AND_SIGNS.finditer(normal):
        word = match["word"] or match[0]
        if word not in _SMALL_WORDS:
            words.append(_JOINED.get(word, word))
        if match["short"]:
            words.append(_SHORT_FORMS[match["short"]])
    return tuple(words)


def signed_words(text: str) -> tuple[frozenset[str], str]:
    """Return the words with a sign that is a part of them, in lower case, and the text without."""
    plain = text.translate(_ASCII)
    words = frozenset(word.lower() for word in _SIGNED.findall(plain))
    return words, _SIGNED.sub(" ", plain) if words else text
