"""Difference of two texts by words, readable in one line: `lives in [-Porto-]{+Lisbon+}.`

The work is bounded by a number of comparisons and not by the length of the texts, because texts of
equal tokens ("....") take the square of their length, or more, in any exact comparison.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.text.edit_distance import shared_start

# A run of blanks, a letter of a script without blanks between words, a word, or a sign.
_CJK = "\u3040-\u30ff\u3400-\u9fff"
TOKEN = re.compile(rf"\s+|[{_CJK}]|[^\W{_CJK}]+|[^\w\s]")
# Most tokens between the first and the last difference that are compared word by word.
LONGEST = 1_000
# Most tokens that are added or removed, and most comparisons for two texts: about 5 ms.
MOST_EDITS = 200
MOST_COMPARISONS = 20_000
# Most comparisons for all differences of one response.
MOST_IN_RESPONSE = 100_000

# A kind, and the text.
Difference = tuple[str, str]
SAME, REMOVED, ADDED = "same", "removed", "added"
MARKS = {SAME: "{}", REMOVED: "[-{}-]", ADDED: "{{+{}+}}"}


@dataclass(slots=True)
class DiffBudget:
    """Comparisons that are left for the differences of one response."""

    left: int = MOST_IN_RESPONSE


def word_diff(old: str, new: str, budget: DiffBudget | None = None) -> str | None:
    """The new text, with removed words as `[-…-]` and added words as `{+…+}`.

    The words between the first and the last difference are shown whole, as removed and added, if
    they differ in too much. None if `budget` is used up.

    Source: Myers 1986, An O(ND) Difference Algorithm and Its Variations.
    """
    parts = differences(old, new, budget)
    return None if parts is None else "".join(MARKS[kind].format(text) for kind, text in parts)


def differences(old: str, new: str, budget: DiffBudget | None = None) -> list[Difference] | None:
    """The parts of `word_diff`: texts that are the same, removed or added. None as there."""
    budget = budget or DiffBudget()
    if budget.left <= 0:
        return None
    before, after = TOKEN.findall(old), TOKEN.findall(new)
    budget.left -= (len(before) + len(after)) // 10
    first = shared_start(before, after)
    last = shared_start(before[first:][::-1], after[first:][::-1])
    changed = before[first : len(before) - last], after[first : len(after) - last]
    shared = _shared(*changed, budget) if max(map(len, changed)) <= LONGEST else []
    parts = [
        (SAME, "".join(before[:first])),
        *_marked(*changed, shared),
        (SAME, "".join(before[len(before) - last :])),
    ]
    return [(kind, text) for kind, text in parts if text]


def _marked(
    before: Sequence[str], after: Sequence[str], shared: Sequence[tuple[int, int]]
) -> list[Difference]:
    """The tokens that are shared, removed and added, in order; some parts may be empty."""
    parts = list[Difference]()
    i = j = 0
    for m, n in (*shared, (len(before), len(after))):
        removed, added = "".join(before[i:m]), "".join(after[j:n])
        parts += [(REMOVED, removed), (ADDED, added), (SAME, "".join(before[m : m + 1]))]
        i, j = m + 1, n + 1
    return parts


def _shared(
    before: Sequence[str], after: Sequence[str], budget: DiffBudget
) -> list[tuple[int, int]]:
    """Positions of tokens that stay, in both texts; none if the comparison takes too long."""
    left = MOST_COMPARISONS
    # By diagonal (position in `before` minus position in `after`): how far `before` is read.
    reach = {1: 0}
    trace = []
    for edits in range(MOST_EDITS + 1):
        trace.append(reach.copy())
        for diagonal in range(-edits, edits + 1, 2):
            x = reach[_step(reach, diagonal, edits)] + (not _adds(reach, diagonal, edits))
            start = x
            while (
                x < len(before) and x - diagonal < len(after) and before[x] == after[x - diagonal]
            ):
                x += 1
            reach[diagonal] = x
            left -= x - start + 2
            if x >= len(before) and x - diagonal >= len(after):
                budget.left -= MOST_COMPARISONS - left
                return _path(trace, len(before), len(after))
        if left <= 0:
            break
    budget.left -= MOST_COMPARISONS - left
    return []


def _adds(reach: dict[int, int], diagonal: int, edits: int) -> bool:
    """True if the furthest way to a diagonal adds a token, false if it removes one."""
    if diagonal in (-edits, edits):
        return diagonal == -edits
    return reach[diagonal - 1] < reach[diagonal + 1]


def _step(reach: dict[int, int], diagonal: int, edits: int) -> int:
    """The diagonal before this one."""
    return diagonal + 1 if _adds(reach, diagonal, edits) else diagonal - 1


def _path(trace: Sequence[dict[int, int]], x: int, y: int) -> list[tuple[int, int]]:
    """Positions of the shared tokens, read back from the end of both texts."""
    shared = []
    for edits in reversed(range(len(trace))):
        reach = trace[edits]
        before = _step(reach, x - y, edits)
        from_x, from_y = reach[before], reach[before] - before
        while x > from_x and y > from_y:
            x, y = x - 1, y - 1
            shared.append((x, y))
        x, y = from_x, from_y
    return shared[::-1]
