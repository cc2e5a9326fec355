"""Marks in texts: the words that differ between two texts, and the words a fact came from."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from pipeline.text.terms import terms
from pipeline.text.word_diff import DiffBudget, differences

# Characters of the messages of a page whose words are compared with facts, and of these facts.
MOST_MARKED = 20_000
_WORD = re.compile(r"[^\W_]+(?:['’][^\W\d_]+)*")


@dataclass(frozen=True, slots=True)
class TextPart:
    """A part of a text. `kind`: same, removed or added; in a message: same or source."""

    kind: str
    text: str


@dataclass(slots=True)
class MarkBudget:
    """Characters of messages and of facts that are left to compare on one page."""

    messages: int = MOST_MARKED
    facts: int = MOST_MARKED

    def of_message(self, text: str) -> str:
        """The start of a message that is compared."""
        head = text[: self.messages]
        self.messages -= len(head)
        return head

    def of_fact(self, text: str) -> str:
        """The start of a fact that is compared."""
        head = text[: self.facts]
        self.facts -= len(head)
        return head


def diff_parts(
    old: str | None, new: str | None, budget: DiffBudget | None = None
) -> list[TextPart]:
    """The new text with the removed and added words, in order."""
    parts = differences(old, new, budget) if old and new else None
    parts = parts or [("removed", old or ""), ("added", new or "")]
    return [TextPart(kind, text) for kind, text in parts if text]


def source_parts(message: str, facts: Iterable[str], budget: MarkBudget) -> list[TextPart]:
    """The message with the words that occur in one of the facts, by their terms.

    What is beyond the budget of the page is not marked.
    """
    wanted = {term for fact in facts for term in terms(budget.of_fact(fact))}
    head = budget.of_message(message) if wanted else ""
    parts, end = list[TextPart](), 0
    for match in _WORD.finditer(head):
        if wanted.intersection(terms(match[0])):
            parts += [TextPart("same", head[end : match.start()]), TextPart("source", match[0])]
            end = match.end()
    return [part for part in (*parts, TextPart("same", message[end:])) if part.text]
