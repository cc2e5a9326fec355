"""Accounting: the balance of events, and what models cost."""
