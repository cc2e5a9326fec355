"""The ledger, PostgreSQL: connections, tables and migrations, shared by all stores."""
