"""Seals: evidence of changes of events, receipts and history behind Memlane's back."""
