"""A demonstration of Memlane in five minutes: `python -m deploy.demo`, or `make demo`.

It calls the API as any chat backend does, over HTTP with the project's key. Only the last act also
kills a worker process.

    sessions   three chats of one user over three months: posted, followed, with receipts
    asking     two searches, and the history of a memory that changed
    crash      a burst of turns, kill -9 of the worker during it, and their receipts

Modules:

    conversation.json   all texts | story: its parsed values
    client    the HTTP calls | answers: the responses
    screens   values -> output for a terminal, pure | tally: counts of receipts
"""
