"""BM25 over a set of rows, in one statement: the rarity of a term is counted in this set alone.

So a word that is rare for a tenant is rare regardless of other tenants' texts, and the cost grows
with the set. Source: tests/bench/search.py; ts_rank_cd of PostgreSQL ignores rarity and finds far
less.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import CTE, ColumnElement, Float, FromClause, Integer, Text, TextualSelect, Uuid
from sqlalchemy.dialects.postgresql import ARRAY

from pipeline.search.sql import statement
from pipeline.text import terms

# Okapi BM25's usual constants. Source: Robertson & Zaragoza 2009, The Probabilistic Relevance
# Framework, and Lucene's defaults.
K1, B = 1.2, 0.75

# Minimum letters of a compound, and of a part of one.
COMPOUND, PART = 6, 4
# Weight of a compound that contains the query's word, and of a word that the query's compound
# contains. Source: of 58 German questions about compounds, the first hit answers 31 % without these
# and 86 % with them; recall@10 on LoCoMo, which is English, is 63.3 without and 64.1 with them.
HELD_IN, HELD_BY = 0.5, 0.3
# Most words of a query, the longest ones, that are searched inside compounds and for their parts:
# each is compared with every word of the scope. Other words match whole words only.
MOST_COMPOUND = 8
_COLUMNS: dict[str, Any] = {
    "id": Uuid,
    "ordinal": Integer,
    "share": Float,
    "words": ARRAY(Text),
    "parts": ARRAY(Float),
}


def ranking(scope: CTE) -> TextualSelect:
    """Statement for the rows of `scope` with any of the terms, best first: see ranking.sql.

    `scope` has the columns id, ordinal and terms. The terms and the limit are parameters: see
    `asking`.
    """
    ranked = statement("ranking").bindparams(
        compound=COMPOUND, part=PART, held_in=HELD_IN, held_by=HELD_BY, k1=K1, b=B
    )
    return ranked.columns(**_COLUMNS).add_cte(scope)


def ranking_by_forms(scope: CTE) -> TextualSelect:
    """The same statement for the rows of `scope` that are some of a large scope.

    The forms of the query's terms, and the scope's statistics, are parameters.
    """
    ranked = statement("ranking_by_forms").bindparams(k1=K1, b=B)
    return ranked.columns(**_COLUMNS).add_cte(scope)


def found_words(ranked: FromClause) -> list[ColumnElement[Any]]:
    """Columns of a ranking: the share of a row, and the words of the query that it has."""
    return [ranked.c.share, ranked.c.words, ranked.c.parts]


def asking(terms: Sequence[str], *, limit: int) -> dict[str, Any]:
    """Parameters of a ranking by these terms."""
    longest = set(sorted(terms, key=len, reverse=True)[:MOST_COMPOUND])
    long = [term for term in terms if term in longest and term.isalpha() and len(term) >= COMPOUND]
    return {
        "terms": list(terms),
        "inside": [_inside(term) if term in longest else None for term in terms],
        "compounds": " ".join(long),
        "limit": limit,
    }


def part_inside(term: str) -> str | None:
    """Return the part of a word that its compounds contain; None for a short word, or no word."""
    root = terms.root(term)
    part = root if len(root) >= PART else term
    return part if part.isalpha() and len(part) >= PART else None


def _inside(term: str) -> str | None:
    """Return a LIKE pattern for compounds with a word; None for a short word, or for no word."""
    part = part_inside(term)
    return part and f"%{part}%"
