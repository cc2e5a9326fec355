"""Lookups: the statements that compare the words of a query with a large scope.

An inverted index selects the memories to score. The statistics it needs are counted before, in
the newest texts of the scope. See pipeline/search/words/large_scopes.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import (
    BigInteger,
    ClauseElement,
    Float,
    Integer,
    Select,
    Text,
    case,
    cast,
    false,
    func,
    literal_column,
    select,
    true,
)
from sqlalchemy.dialects.postgresql import ARRAY, distinct_on

from pipeline.domain.filters import ENTITY_IDS
from pipeline.ledger.filter_conditions import shown_of
from pipeline.ledger.tables import memories
from pipeline.search.candidate_columns import WITH_TERMS, best_first, fact_columns, placed_facts
from pipeline.search.sql import statement
from pipeline.search.where import Shape
from pipeline.search.words.bm25 import found_words, ranking_by_forms
from pipeline.search.words.large_scopes import QueryLookups, WordStatistics

# Texts of a scope, the newest ones, in which words are counted; and most different words.
MOST_COUNTED, MOST_WORDS = 20_000, 50_000
# Parameters of the function word_keys.
WORD_KEYS_OF = ("project_id", "lane_id", *ENTITY_IDS, "terms")


def by_lookups(shape: Shape) -> ClauseElement:
    """Select the ranked ones of the memories that the lookups of a query read, as candidates.

    `limited` in each row: a lookup has read as many as it may, so there may be more.
    """
    reads = _reads(shape).cte("reads")
    scope = (
        select(*fact_columns(reads), reads.c.terms)
        .where(shape.on_current(reads))
        .ext(distinct_on(reads.c.id))
        .cte("scope")
    )
    ranked = ranking_by_forms(scope).cte("ranked")
    # A full join is a hash join. The planner expects a few rows of an inner one, and compares each
    # passage with each ranked one.
    first = (
        select(scope, *found_words(ranked))
        .join(ranked, ranked.c.id == scope.c.id, full=True)
        .where(func.num_nonnulls(ranked.c.id, scope.c.id) == literal_column("2"))
        .cte("first")
    )
    its_terms = case((WITH_TERMS, first.c.terms)).label("terms")
    texts = select(func.count()).select_from(scope).scalar_subquery()
    limited = select(func.coalesce(func.bool_or(reads.c.is_last), false())).scalar_subquery()
    placed = placed_facts(first, *found_words(first), its_terms)
    return best_first(placed, texts=texts, limited=limited)


def _reads(shape: Shape) -> Select[Any]:
    """Select the memories that each lookup reads, up to its limit.

    Those of temporary runs are left out before the limit: the statistics do not count them.
    """
    lookup = statement("lookups").columns(most=Integer, wanted=ARRAY(BigInteger)).subquery("lookup")
    rows = memories.alias("rows")
    keys = func.word_keys(*(rows.c[name] for name in WORD_KEYS_OF), type_=ARRAY(BigInteger))
    # OFFSET 0: with these conditions alone, no plan can read the memories by another index.
    having_words = (
        select(rows)
        .where(keys.contains(lookup.c.wanted), rows.c.state == literal_column("'ACTIVE'"))
        .correlate(lookup)
        .offset(literal_column("0"))
        .subquery("having_words")
    )
    read = (
        select(having_words, func.row_number().over().label("number"))
        .where(shown_of(having_words, shape.tree))
        .limit(lookup.c.most)
        .lateral("read")
    )
    # Not the vector, which has a kilobyte or more.
    columns = [read.c[column.name] for column in memories.c if column.name != "embedding"]
    is_last = (read.c.number == lookup.c.most).label("is_last")
    return select(*columns, is_last).select_from(lookup.join(read, true()))


def looking(
    lookups: QueryLookups, statistics: WordStatistics, pins: Mapping[str, str]
) -> dict[str, Any]:
    """Parameters of `by_lookups`."""
    owners = [f"{name}/{value}" for name, value in pins.items()]
    keys = [
        (number, lookup.most, key)
        for number, lookup in enumerate(lookups.lookups)
        for key in (*owners, *(f"term/{term}" for term in lookup.terms))
    ]
    return {
        "lookups": [number for number, _, _ in keys],
        "mosts": [most for _, most, _ in keys],
        "keys": [key for _, _, key in keys],
        "forms": [form.term for form in lookups.forms],
        "asked": [form.position for form in lookups.forms],
        "weights": [form.weight for form in lookups.forms],
        "holding": list(lookups.holding),
        "texts": float(statistics.texts),
        "length": float(statistics.length),
    }


def word_counts(shape: Shape) -> ClauseElement:
    """Select the words of the newest memories, the most frequent ones first, and their counts."""
    newest = (
        select(memories.c.terms)
        .where(shape.on_facts)
        .order_by(memories.c.created_at.desc())
        .limit(literal_column(str(MOST_COUNTED)))
        .cte("newest")
    )
    each = select(func.unnest(newest.c.terms, type_=Text()).label("term")).subquery("each")
    count = func.count().label("count")
    words = (
        select(each.c.term, count)
        .group_by(each.c.term)
        .order_by(count.desc(), each.c.term)
        .limit(literal_column(str(MOST_WORDS)))
        .subquery("words")
    )
    length = func.avg(func.cardinality(newest.c.terms), type_=Float())
    return select(
        select(func.count()).select_from(newest).scalar_subquery().label("counted"),
        select(cast(length, Float)).select_from(newest).scalar_subquery().label("length"),
        func.array_agg(words.c.term).label("terms"),
        func.array_agg(words.c["count"]).label("counts"),
    )


def owner_names(pins: Mapping[str, str]) -> dict[str, list[str]]:
    """Parameters of memory_number.sql: the books of these owners; without any, of the project."""
    owners = {name.removesuffix("_id"): value for name, value in pins.items()} or {"MEMORY": ""}
    return {"kinds": list(owners), "owners": list(owners.values())}
