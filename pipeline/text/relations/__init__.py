"""Relations and entities: names, types, and statements that end a relation."""
