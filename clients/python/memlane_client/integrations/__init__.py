"""Memory for agent frameworks; each module needs the extra of the same name."""
