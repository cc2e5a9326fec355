"""Tamper evidence: verify the seals, and list the signed heads."""
