"""Difference of two texts by words, readable in one line: `lives in [-Porto-]{+Lisbon+}.`"""

from __future__ import annotations

import re
from difflib import SequenceMatcher

# A run of blanks, a letter of a script without blanks between words, a word, or a sign.
_CJK = "\u3040-\u30ff\u3400-\u9fff"
TOKEN = re.compile(rf"\s+|[{_CJK}]|[^\W{_CJK}]+|[^\w\s]")
# Longest text, in tokens, that is compared word by word: the time grows with the square.
LONGEST = 1_000


def word_diff(old: str, new: str) -> str:
    """The new text, with removed words as `[-…-]` and added words as `{+…+}`.

    Texts of more than LONGEST tokens are shown whole, as removed and added.
    """
    before, after = TOKEN.findall(old), TOKEN.findall(new)
    if max(len(before), len(after)) > LONGEST:
        before, after = [old], [new]
    parts = []
    for operation, i, j, m, n in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if operation == "equal":
            parts.append("".join(after[m:n]))
            continue
        removed, added = "".join(before[i:j]), "".join(after[m:n])
        parts += [f"[-{removed}-]"] * bool(removed) + [f"{{+{added}+}}"] * bool(added)
    return "".join(parts)
