"""Values and pure rules: frozen, validated at the edge, free of I/O.

An event is what a client polls; a batch is the run of events one activation takes through the
stages together; a fact is what a model found in a message; a memory is what is stored.
"""
