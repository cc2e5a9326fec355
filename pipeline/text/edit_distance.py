"""Edit distance of two words: typing errors between them."""

from __future__ import annotations


def distance(word: str, other: str, *, swaps_only: bool = False) -> int:
    """Return the optimal string alignment distance: letters missing, added, wrong or swapped.

    `swaps_only`: a wrong letter counts as two errors, one missing and one added.
    """
    wrong = 2 if swaps_only else 1
    before, last = [0] * (len(other) + 1), list(range(len(other) + 1))
    for at, letter in enumerate(word, start=1):
        row = [at]
        for to, with_letter in enumerate(other, start=1):
            least = min(
                last[to] + 1, row[to - 1] + 1, last[to - 1] + wrong * (letter != with_letter)
            )
            if at > 1 and to > 1 and word[at - 2] == with_letter and letter == other[to - 2]:
                least = min(least, before[to - 2] + 1)
            row.append(least)
        before, last = last, row
    return last[-1]
