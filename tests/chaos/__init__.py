"""Kill things and count what is lost: nothing lost, nothing twice, in order."""
