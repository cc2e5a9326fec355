"""Users, agents, apps and runs: list, register, delete."""
