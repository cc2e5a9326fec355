"""Seals: evidence of changes to events, receipts and history that Memlane did not make."""
