"""Audit log: its entries at the edge, and the page that lists them."""
