"""Long texts on a page: a short form that shows what matters, beside the whole text.

A page with several texts of 10,000 characters cannot be read. The short form keeps the removed,
added and marked words with some words around them, so a change in the middle stays visible.
"""

from __future__ import annotations

from collections.abc import Sequence

from api.console.word_marks import TextPart

# Characters and lines up to which a text is shown in whole.
MOST_CHARACTERS, MOST_LINES = 1_200, 20
# Characters and lines of the short form.
SHORT_CHARACTERS, SHORT_LINES = 600, 10
# Characters that stay at each end of a part that does not differ.
AROUND = 120
GAP = " … "


def parts_of(text: object) -> list[TextPart]:
    """A text without marks as the list of its parts."""
    return [TextPart("same", str(text))]


def characters(parts: Sequence[TextPart]) -> int:
    """Number of characters of all parts."""
    return sum(len(part.text) for part in parts)


def is_long(parts: Sequence[TextPart]) -> bool:
    """Tell if the parts take more room than a page gives to one text."""
    lines = sum(part.text.count("\n") for part in parts)
    return lines >= MOST_LINES or characters(parts) > MOST_CHARACTERS


def short_form(parts: Sequence[TextPart]) -> list[TextPart]:
    """The start of the text; if words of it are marked, the marked words and those around them."""
    marked = any(part.kind != "same" for part in parts)
    short, room, lines = list[TextPart](), SHORT_CHARACTERS, SHORT_LINES
    for at, part in enumerate(parts):
        text = _ends(part.text, first=at == 0, last=at == len(parts) - 1) if marked else part.text
        head = _head(text, room if part.kind == "same" else min(room, SHORT_CHARACTERS // 2), lines)
        short.append(TextPart(part.kind, head))
        room, lines = room - len(head), lines - head.count("\n")
        if room <= 0 or lines <= 0:
            break
    if not short[-1].text.endswith("…"):
        short.append(TextPart("same", "…"))
    return short


def _ends(text: str, *, first: bool, last: bool) -> str:
    """The ends of a text beside marked words; of the first and the last part, the inner end."""
    if len(text) <= 2 * AROUND + len(GAP):
        return text
    start = "" if first else text[:AROUND]
    end = "" if last else text[-AROUND:]
    return (start + GAP + end).strip(" ") if first or last else start + GAP + end


def _head(text: str, room: int, lines: int) -> str:
    """The start of a text within these limits, with an ellipsis if that is not all."""
    head = "\n".join(text[:room].split("\n", lines)[:lines])
    return head if head == text else head.rstrip() + "…"
