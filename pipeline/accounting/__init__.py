"""Accounting: the balance of events, and the costs of model calls."""
