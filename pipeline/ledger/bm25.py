"""BM25 over a set of rows, in one statement: how rare a term is, is counted in that set alone.

A tenant's rare word is rare, whatever others talk about, and the cost grows with the set.
Source: tests/bench/search; ts_rank_cd of PostgreSQL knows no rarity and finds far less.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import CTE, Float, Select, Text, any_, cast, func, literal, select, true
from sqlalchemy.dialects.postgresql import ARRAY

# Okapi BM25's usual constants. Source: Robertson & Zaragoza 2009, The Probabilistic Relevance
# Framework, and Lucene's defaults.
K1, B = 1.2, 0.75


def ranking(scope: CTE, asked: Sequence[str]) -> Select[Any]:
    """(id, ordinal, share) of the rows of `scope` that hold any of the terms, best first.

    `scope` has id, ordinal and terms. `share` is the score as a share of what a text of average
    length gets that holds each term once; terms that no row holds do not count.
    """
    question = literal(list(asked), ARRAY(Text))
    size = (
        select(
            func.count().label("texts"),
            func.greatest(func.avg(func.cardinality(scope.c.terms)), 1).label("length"),
        )
        .select_from(scope)
        .cte("size")
    )
    held = func.unnest(scope.c.terms).table_valued("term").render_derived("held")
    times = (
        select(
            scope.c.id,
            scope.c.ordinal,
            func.cardinality(scope.c.terms).label("length"),
            held.c.term,
            func.count().label("times"),
        )
        .select_from(scope)
        .join(held, true())
        .where(scope.c.terms.op("&&")(question), held.c.term == any_(question))
        .group_by(scope.c.id, scope.c.ordinal, func.cardinality(scope.c.terms), held.c.term)
        .cte("times")
    )
    holding = func.count()
    rarity = (
        select(
            times.c.term,
            func.ln(1 + (size.c.texts - holding + 0.5) / (holding + 0.5)).label("weight"),
        )
        .join(size, true())
        .group_by(times.c.term, size.c.texts)
        .cte("rarity")
    )
    damped = K1 * (1 - B + B * times.c.length / size.c.length)
    gained = rarity.c.weight * times.c.times * (K1 + 1) / (times.c.times + damped)
    possible = select(func.sum(rarity.c.weight)).scalar_subquery()
    share = cast(func.sum(gained) / possible, Float).label("share")
    return (
        select(times.c.id, times.c.ordinal, share)
        .join(rarity, rarity.c.term == times.c.term)
        .join(size, true())
        .group_by(times.c.id, times.c.ordinal)
        .order_by(share.desc(), times.c.id, times.c.ordinal)
    )
