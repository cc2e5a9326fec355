"""The ledger, PostgreSQL: what every store shares: connections, tables, migrations."""
