"""Erasure of a user, and its receipt."""
