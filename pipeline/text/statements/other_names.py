"""Statements that give a person another name, and say nothing else: "Robert is also known as Bob".

    says_other_name("Robert is also known as Bob.", "Robert", "Bob")         True
    says_other_name("Robert's dog is called Bob.", "Robert", "Bob")          False
    says_other_name("Bob is also the name of a river.", "Robert", "Bob")     False

The whole statement must have one of the forms in words/other_names.txt. English, German, Spanish
and Chinese.
"""

from __future__ import annotations

import re
from itertools import product

from pipeline.text.names import is_self
from pipeline.text.word_lists import lines_of

# Longest statement that is read, in characters: a longer one says more than a name.
MOST_CHARS = 200

_FORM = re.compile("|".join(f"(?:{form.strip()})" for form in lines_of("other_names.txt")))
# A letter of a script with spaces.
_LETTER = r"[^\W\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]"
_SPEAKER = ("user", "用户")


def says_other_name(text: str, name: str, other: str) -> bool:
    """True if a statement says that two names are those of one person or thing, in either order."""
    if len(text) > MOST_CHARS:
        return False
    words = " ".join(text.casefold().split()).rstrip(".!。！ ")
    spellings = [_SPEAKER if is_self(each) else (each.casefold(),) for each in (name, other)]
    return any(
        _FORM.fullmatch(_marked(words, *pair)) is not None
        for both in product(*spellings)
        for pair in (both, both[::-1])
    )


def _marked(words: str, name: str, other: str) -> str:
    """The words with S and N in place of the two names, of which one may be a part of the other."""
    longer, shorter = sorted((name, other), key=len, reverse=True)
    # A name may have a final s, of a German genitive.
    either = f"(?:({re.escape(longer)})|{re.escape(shorter)})"
    whole = rf"(?<!{_LETTER}){either}(?!(?!s(?!{_LETTER})){_LETTER})"
    marks = ("S", "N") if longer == name else ("N", "S")
    return re.sub(whole, lambda match: marks[0] if match[1] else marks[1], words)
