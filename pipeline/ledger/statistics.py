"""Statistics of tables that have grown, for PostgreSQL's planner.

A connection keeps the plan of a statement until its tables are analyzed, and autovacuum looks once
a minute. Without this, the first import of a new installation runs with the plans of empty tables,
which read a whole table for each row of another one.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import text

from pipeline.ledger.store import LedgerStore

# Rows below which no plan is slow; and a table is analyzed again when it is TIMES as large.
# Each ANALYZE costs half a second of CPU, because all connections plan their statements again.
FEW, TIMES = 500, 4
# reltuples is the number of rows at the last ANALYZE, or -1; n_live_tup grows with each commit.
# A role may only analyze its own tables.
GROWN = text("""
    SELECT quote_ident(s.schemaname) || '.' || quote_ident(s.relname)
    FROM pg_stat_user_tables s JOIN pg_class c ON c.oid = s.relid
    WHERE s.schemaname = current_schema() AND pg_has_role(c.relowner, 'USAGE')
      AND s.n_live_tup > greatest(CAST(:times AS integer) * c.reltuples, CAST(:few AS bigint))
    ORDER BY 1
""")


class Statistics(LedgerStore):
    """Analyze tables of the ledger before autovacuum does."""

    async def analyze_grown(self) -> Sequence[str]:
        """Analyze the tables that have more than TIMES the rows of their last ANALYZE.

        Returns their names. A table that another session vacuums, analyzes or alters is left out.
        """
        async with self._single.connect() as connection:
            tables = (await connection.scalars(GROWN, {"few": FEW, "times": TIMES})).all()
            for table in tables:
                # Sent as it is: in text(), a colon in the name would be a parameter.
                await connection.exec_driver_sql(f"ANALYZE (SKIP_LOCKED) {table}")
        return tables
