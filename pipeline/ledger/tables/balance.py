"""The books: numbers of rows, kept by triggers on events, lanes and memories.

    books          one row per count of a project, and of an owner in it
    book_entries   changes of counts, each inserted by the statement that causes it

A count is its row in `books` plus its entries, so it is exact in every snapshot. Entries are only
inserted, so no two transactions wait for each other; the sweeper adds them up into `books`.

    kind               counts
    a status           events with this status
    an event type      events of this type
    REPLAY             replays of events
    NUMBER             sequence numbers that lanes have assigned
    GONE and a kind    the part of a count above whose events are deleted: erased ones, after a time
    MEMORY             ACTIVE memories
    user agent app run ACTIVE memories of the owner
    users agents …     owners with ACTIVE memories, kept by a trigger of `books`
    SEARCH             answered searches
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Identity, Table, Text, Uuid, text

from pipeline.ledger.tables.columns import metadata, partial, time

books = Table(
    "books",
    metadata,
    Column("project_id", Uuid, primary_key=True),
    Column("kind", Text, primary_key=True),
    # The owner of the counted memories; empty if the count is the project's.
    Column("owner", Text, primary_key=True, server_default=""),
    Column("amount", BigInteger, nullable=False),
    # Time of the first creation, and of the last creation or change.
    time("since"),
    time("last_at"),
    # For pages of owners, newest first.
    partial(
        "ix_books_owners",
        "project_id",
        "kind",
        text("since DESC"),
        "owner",
        where="owner <> ''::text AND amount > 0",
    ),
    partial("ix_books_totals", "kind", where="owner = ''::text"),
    partial("ix_books_zero", "amount", where="amount = 0"),
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
