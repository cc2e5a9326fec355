"""Entities and relations: read, rename, merge, split."""
