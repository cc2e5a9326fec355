"""Routes, one file a noun. Each parses, calls one use-case and shapes the answer."""
