"""Evaluation: how good extraction, decisions, search and answers are, measured over HTTP."""
