"""A demonstration of Memlane in five minutes: `make demo`, or `memlane demo`."""
