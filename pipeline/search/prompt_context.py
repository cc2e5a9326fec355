"""Prompt context: search results as dated lines within a budget of tokens.

    <recalled>
    [1] 2024-05-07 Maya: I bought a tent for the lake.
    [2] 2024-05-09 Maya's sister plays the violin.
    </recalled>

If a message contains such a block, no facts are extracted from it (see `pipeline.text.recalled`).
The best results that fit are taken, and written oldest first: models read dated lines in order
better than a ranking.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pipeline.domain.memories import Memory
from pipeline.domain.passages import Turn
from pipeline.text.recalled import END, START, fenced, inside_fence
from pipeline.text.tokens import CHARACTERS_PER_TOKEN, tokens

FENCE_TOKENS = tokens(START + END)
# Tokens of the shortest possible line: a date, a number and a word.
SHORTEST_LINE = 5


@dataclass(frozen=True, slots=True)
class Context:
    """`sources`: the passage of each line, in order; `tokens` is an estimate."""

    text: str
    sources: Sequence[Memory | Turn]
    tokens: int


def assemble(passages: Iterable[Memory | Turn], *, max_tokens: int) -> Context:
    """Take the best passages that fit, and order them by time.

    `passages` come best first. A passage that does not fit is skipped.
    """
    taken: list[Memory | Turn] = []
    left = max_tokens - FENCE_TOKENS
    for passage in passages:
        if left < SHORTEST_LINE:
            break
        line = _line(len(taken) + 1, passage)
        if len(line) <= CHARACTERS_PER_TOKEN * left and (cost := tokens(line) + 1) <= left:
            taken.append(passage)
            left -= cost
    taken.sort(key=lambda passage: (passage.said_at, str(passage.id)))
    lines = [_line(number, passage) for number, passage in enumerate(taken, start=1)]
    text = fenced("\n".join(lines))
    return Context(text, taken, tokens(text))


def labelled(passage: Memory | Turn) -> str:
    """Return the text on one line, after the speaker's name if it is known."""
    text = " ".join(passage.text.split())
    speaker = passage.speaker if isinstance(passage, Turn) else None
    return f"{speaker}: {text}" if speaker and not text.startswith(f"{speaker}:") else text


def _line(number: int, passage: Memory | Turn) -> str:
    return f"[{number}] {passage.said_at:%Y-%m-%d} {inside_fence(labelled(passage))}"
