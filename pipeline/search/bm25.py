"""BM25 over a set of rows, in one statement: how rare a term is, is counted in that set alone.

A tenant's rare word is rare, no matter what others write, and the cost grows with the set.
Source: tests/bench/search.py; ts_rank_cd of PostgreSQL knows no rarity and finds far less.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import CTE, Float, Integer, TextualSelect, Uuid

from pipeline.search.sql import statement
from pipeline.text import terms

# Okapi BM25's usual constants. Source: Robertson & Zaragoza 2009, The Probabilistic Relevance
# Framework, and Lucene's defaults.
K1, B = 1.2, 0.75

# Letters that a compound has at least, and a part of one.
COMPOUND, PART = 6, 4
# What a compound of the question's word counts for, and a part of it. Source: of 58 German
# questions about compounds BM25 answers 31 % with its first hit without them, and 86 % with them;
# recall@10 on LoCoMo, which is English, is 63.3 without and 64.1 with them.
HELD_IN, HELD_BY = 0.5, 0.3


def ranking(scope: CTE) -> TextualSelect:
    """(id, ordinal, share) of the rows of `scope` that hold any of the terms, best first.

    `scope` has id, ordinal and terms, and its name; which terms, and how many rows: see `asking`.
    """
    ranked = statement("ranking").bindparams(
        compound=COMPOUND, part=PART, held_in=HELD_IN, held_by=HELD_BY, k1=K1, b=B
    )
    return ranked.columns(id=Uuid, ordinal=Integer, share=Float).add_cte(scope)


def asking(asked: Sequence[str], *, limit: int) -> dict[str, Any]:
    """The values of a ranking by these terms."""
    long = [term for term in asked if term.isalpha() and len(term) >= COMPOUND]
    return {
        "terms": list(asked),
        "inside": [_inside(term) for term in asked],
        "compounds": " ".join(long),
        "limit": limit,
    }


def _inside(term: str) -> str | None:
    """A pattern for the compounds of a word; none of what is short, or no word."""
    root = terms.root(term)
    part = root if len(root) >= PART else term
    return f"%{part}%" if part.isalpha() and len(part) >= PART else None
