"""Search of memories, turns and relations."""
