"""Client of Memlane.

    from memlane_client import AsyncMemlane

    async with AsyncMemlane(key, outbox="~/.memlane/outbox") as memlane:
        ticket = await memlane.add("I moved to Porto.", user_id="maya")   # on disk
        receipt = await ticket.receipt(timeout=60)                       # what was stored
        hits = await memlane.search("Where does Maya live?", user_id="maya")

`client` has both clients, `operations` the calls of the API, `calls` retries and the circuit
breaker, `outbox` the adds on disk.
"""

from memlane_client.calls import Retries
from memlane_client.client import AsyncMemlane, Memlane
from memlane_client.errors import (
    AccessDenied,
    ApiError,
    CircuitOpen,
    EventFailed,
    MemlaneError,
    Missing,
    NotEnded,
    OutboxClosed,
    OutboxFull,
    Rejected,
    Unavailable,
    Unreachable,
)
from memlane_client.outbox import OutboxStatus
from memlane_client.receipts import (
    MemoryPage,
    MemoryRow,
    Progress,
    Receipt,
    ReceiptLine,
    SearchAnswer,
    SearchHit,
)
from memlane_client.tickets import AsyncTicket, Ticket

__all__ = [
    "AccessDenied",
    "ApiError",
    "AsyncMemlane",
    "AsyncTicket",
    "CircuitOpen",
    "EventFailed",
    "Memlane",
    "MemlaneError",
    "MemoryPage",
    "MemoryRow",
    "Missing",
    "NotEnded",
    "OutboxClosed",
    "OutboxFull",
    "OutboxStatus",
    "Progress",
    "Receipt",
    "ReceiptLine",
    "Rejected",
    "Retries",
    "SearchAnswer",
    "SearchHit",
    "Ticket",
    "Unavailable",
    "Unreachable",
]
