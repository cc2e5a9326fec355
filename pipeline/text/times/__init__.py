"""Times that a text names, and statements about a time that is over."""
