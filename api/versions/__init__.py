"""Earlier states of memories: as of a time, changes between two times, restore."""
