-- To a table of an earlier release, whose graph does not need them: its rows have none.
ALTER TABLE {table} ADD COLUMN IF NOT EXISTS signs bit({bits})
