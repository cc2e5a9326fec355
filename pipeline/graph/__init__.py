"""The graph of entities and relations."""
