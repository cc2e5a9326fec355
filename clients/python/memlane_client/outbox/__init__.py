"""The outbox: adds on disk until the server has accepted them.

    add() ──► Journal.append: one line, fsync ──► Ticket
                        │
    Sender (one process, one thread) ──► POST with the add's Idempotency-Key ──► line in *.ends

`journal` knows files, `folder` and `locks` their names and locks, `queue` the order and the waits,
`sender` HTTP, and `outbox` the thread.
"""

from memlane_client.outbox.outbox import Outbox, OutboxStatus

__all__ = ["Outbox", "OutboxStatus"]
