"""A raw scan of PostgreSQL: search every column of every table for words."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import text

from pipeline.stores import Ledger

COLUMNS = text("""
    SELECT table_name, column_name FROM information_schema.columns
    WHERE table_schema = 'public' AND table_name <> 'alembic_version'
""")


async def raw_look(ledger: Ledger, words: Sequence[str]) -> dict[tuple[str, str], list[str]]:
    """Words in the database, by table and column; bytes are searched as text and as hex."""
    paths: dict[tuple[str, str], list[str]] = {}
    async with ledger.engine.connect() as connection:
        for table, column in (await connection.execute(COLUMNS)).all():
            for word in words:
                # As text, a bytea is hex, so search for both forms of the word.
                query = text(f"""
                    SELECT count(*) FROM "{table}"
                    WHERE strpos(CAST("{column}" AS text), :word) > 0
                       OR strpos(CAST("{column}" AS text), :hex) > 0
                """)
                values = {"word": word, "hex": word.encode().hex()}
                if await connection.scalar(query, values):
                    paths.setdefault((table, column), []).append(word)
    return paths
