"""Scenarios: dialogues of our own with the memories that must stand at their end.

dialogues.py ── reads *.yaml: turns, the facts they state, relations between these facts
oracle.py    ── a good model: answers prompts from the facts and the memories it is shown
bad.py       ── bad models: the good answers, spoiled in one way each
server.py    ── either of them behind an OpenAI-compatible API
play.py      ── a scenario as a user of a real stack: turns over HTTP, in or out of order
verdict.py   ── expected against final memories, and memories that were harmed
"""
