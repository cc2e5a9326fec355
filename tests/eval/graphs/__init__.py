"""Dialogues, each with the graph that must exist at its end.

*.yaml     ── turns in the form of tests/eval/scenarios; facts with the relations they begin and end
answers.py ── a good model, which answers from the facts, and bad ones, each spoiled in one way
play.py    ── a dialogue as a user of a real stack, and the graph that the API then returns
verdict.py ── expected against final graph, and relations that were harmed
"""
