"""Edit distance of two words: typing errors between them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

# Fewest letters of names that are compared letter by letter.
MIN_NAME = 3


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


def one_letter_apart(first: str, other: str) -> bool:
    """Tell if one letter is replaced, added or left out between two different words.

    A digit is no letter: `Pier 3` and `Pier 4` are two places and not one misspelt.
    """
    if abs(len(first) - len(other)) > 1 or first == other or min(len(first), len(other)) < MIN_NAME:
        return False
    start = shared_start(first, other)
    end = shared_start(first[start:][::-1], other[start:][::-1])
    differing = first[start : len(first) - end] + other[start : len(other) - end]
    return max(len(first), len(other)) - start - end == 1 and differing.isalpha()


def shared_start(first: Sequence[str], other: Sequence[str]) -> int:
    """Number of letters or words at the start that are equal."""
    pairs = zip(first, other, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
