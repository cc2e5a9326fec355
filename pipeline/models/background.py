"""Background of an extraction: the summary and the earlier turns, within a budget of tokens.

    summary   =   as it is, or its sentences that fit SUMMARY_TOKENS: those with a time first
    turns     =   the newest ones that fit the rest of BACKGROUND_TOKENS, at least the last one

Both only explain "she" or "there", and are paid for in each add. A turn is cut to CONTEXT_CHARS.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pipeline.domain.messages import Message
from pipeline.models.prompts import CONTEXT_CHARS
from pipeline.text.times.kept_times import sentences, times
from pipeline.text.tokens import tokens

# Estimated tokens. Source: docs/benchmarks/evaluation.md, "Tokens of an add".
BACKGROUND_TOKENS, SUMMARY_TOKENS = 200, 120
# Tokens of the role and the quotes of a turn.
TURN_TOKENS = 5


def within_budget(
    summary: str | None, turns: Sequence[Message]
) -> tuple[str | None, Sequence[Message]]:
    """Shorten the summary and the turns, oldest first, to the budget."""
    brief = shortened(summary, SUMMARY_TOKENS) if summary else None
    left = BACKGROUND_TOKENS - (tokens(brief) if brief else 0)
    shown: list[Message] = []
    for turn in reversed(turns):
        cut = replace(turn, content=turn.content[:CONTEXT_CHARS])
        left -= tokens(cut.content) + TURN_TOKENS
        if left < 0 and shown:
            break
        shown.append(cut)
    return brief, shown[::-1]


def shortened(summary: str, limit: int) -> str:
    """The sentences of a summary that fit the limit, in their order.

    Sentences with a time are taken first, and of two alike the later one; a sentence that does not
    fit is skipped.
    """
    if tokens(summary) <= limit:
        return summary
    parts = sentences(summary)
    numbers: set[int] = set()
    for number in sorted(range(len(parts)), key=lambda n: (not times(parts[n]), -n)):
        if tokens(_joined(parts, numbers | {number})) <= limit:
            numbers.add(number)
    return _joined(parts, numbers)


def _joined(parts: Sequence[str], numbers: set[int]) -> str:
    return " ".join(parts[number].strip() for number in sorted(numbers))
