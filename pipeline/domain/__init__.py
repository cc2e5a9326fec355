"""Values and pure rules: frozen, validated at the edge, free of I/O.

A client polls an event. One activation takes a batch of events through the stages. A model extracts
facts from messages. Decisions turn facts into stored memories.
"""
