"""One hostile tenant at a time, and what another tenant waits for in the meantime."""
