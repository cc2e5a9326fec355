"""POST of a turn: its messages, options and the answer with the event's id."""
