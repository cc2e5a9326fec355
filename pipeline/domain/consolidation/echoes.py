"""Echoes: statements that an assistant repeats from the memories it was given. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.domain.consolidation.conservation import THE_USER, matter
from pipeline.text.equality import same_text, signed_words
from pipeline.text.statements import polarity
from pipeline.text.statements.values import Value, stated
from pipeline.text.terms import terms

# Terms with which an assistant introduces what it remembers.
_RECALLING = frozenset(
    terms("""
        remember recall know say tell mention already memory memories right yes ok okay sure
        erinnere erinnerung weiß gesagt erzählt erwähnt bereits schon genau gemerkt gern gut
        recuerdo recuerda sé dijiste dijo contaste mencionaste memoria claro sí bien
        我记得 我知道 你说过 你提到过 我记住了 好的 是的
    """)
)


def is_echo(text: str, stored: str) -> bool:
    """Tell if a stored statement has all values and all matter of a statement, and its polarity.

    Also its signed words: a blood type A- is no echo of A+.
    """
    text = THE_USER.sub("", text)
    about, stored_signed = matter(text), signed_words(stored)[0]
    covered = about <= matter(stored) and signed_words(text)[0] <= stored_signed
    values, takes_back = stated(text).values, polarity.takes_back(text)
    return bool(about) and covered and _has(stored, values, takes_back)


def is_quoted(text: str, message: str, stored: Sequence[str]) -> int | None:
    """Position of the stored statement that a message quotes and that a statement rewords, or None.

    Only for a message that consists of stored statements and of words such as "I remember": any
    other word may be the source of the statement.
    """
    rest, quoted = same_text(message), []
    for position, other in enumerate(stored):
        sought = same_text(other)
        before, quote, after = rest.partition(sought) if sought else (rest, "", "")
        if quote:
            rest = f"{before} . {after}"
            quoted.append(position)
    if not quoted or matter(rest) - _RECALLING or stated(rest).values:
        return None
    values, takes_back = stated(text).values, polarity.takes_back(text)
    return next((place for place in quoted if _has(stored[place], values, takes_back)), None)


def _has(stored: str, values: Sequence[Value], takes_back: bool) -> bool:
    """Tell if a stored statement has these values, and the same polarity."""
    same = takes_back == polarity.takes_back(stored)
    return same and all(map(stated(stored).keeps, values))
