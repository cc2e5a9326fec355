"""Questions about long conversations: is what was said found again, and answered?

conversations.py ── reads *.yaml: conversations of two speakers, questions with their answers
methods.py       ── the context of a question: Memlane, chunks (RAG), or everything
reader.py        ── a model that answers from the context, a judge, and a stand-in for both
scores.py        ── F1 and BLEU-1 of an answer
run.py           ── all questions with all methods: figures of each
"""
