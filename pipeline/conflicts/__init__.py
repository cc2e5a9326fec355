"""Open conflicts: statements that cannot both hold, and their resolution by people."""
