"""The first five minutes with Memlane: `python -m deploy.demo`, or `make demo`.

It talks to the API as any chat backend would, over HTTP with the project's key; only the last act
reaches behind it, to kill a worker.

    sessions   three chats of one user over three months: posted, watched stage by stage, receipts
    asking     two searches, and the history of a memory that changed
    crash      a burst of turns, kill -9 of the worker in the middle of it, and their receipts

Where things are:

    conversation.json   everything that is said | story: it as values
    client    the HTTP calls | answers: what comes back
    screens   values -> what a terminal shows, pure | tally: counting receipts
"""
