"""Meaning of a statement: its slot, values, polarity and topics, and the end of another one."""
