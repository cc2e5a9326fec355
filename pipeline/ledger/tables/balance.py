"""The books: how many there are of what, kept by triggers on events, lanes and memories.

    books          one row a count of a project, and of an owner in it
    book_entries   changes of counts, each written by the statement that causes it

A count is its row in `books` plus its entries: exact in every snapshot. Entries are only ever
inserted, so no two transactions wait for each other; the sweeper folds them into `books`.

    kind               counts
    a status           events that have it
    an event type      events of that type
    REPLAY             how often events were put back
    NUMBER             sequence numbers that lanes have given out
    MEMORY             ACTIVE memories
    user agent app run ACTIVE memories of the owner
    SEARCH             searches answered
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Identity, Index, Table, Text, Uuid, text

from pipeline.ledger.tables.projects import metadata, time

books = Table(
    "books",
    metadata,
    Column("project_id", Uuid, primary_key=True),
    Column("kind", Text, primary_key=True),
    # Whose memories are counted; empty where the count is the project's.
    Column("owner", Text, primary_key=True, server_default=""),
    Column("amount", BigInteger, nullable=False),
    # When the first of them was created, and when one of them was last created or changed.
    time("since"),
    time("last_at"),
    Index("ix_books_totals", "kind", postgresql_where=text("owner = ''::text")),
    Index("ix_books_zero", "amount", postgresql_where=text("amount = 0")),
)

book_entries = Table(
    "book_entries",
    metadata,
    Column("project_id", Uuid, primary_key=True),
    Column("id", BigInteger, Identity(), primary_key=True),
    Column("kind", Text, nullable=False),
    Column("owner", Text, nullable=False, server_default=""),
    Column("amount", BigInteger, nullable=False),
    time("since"),
    time("last_at"),
)
