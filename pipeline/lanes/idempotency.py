"""Idempotency keys: a client may send an add again without adding it twice.

The table idempotency_keys has the keys of each project, with the event and a digest of the add. A
second add with a key gets the first one's event; with another digest it is refused. The statement
that stores adds checks both: sql/accept.sql. Retention deletes old keys: events/retention.py.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from datetime import UTC, datetime

from pipeline.domain.events import AddOptions, Priority
from pipeline.domain.messages import Message
from pipeline.domain.scope import Scope
from pipeline.lanes.batches import OPTIONS, omission_rows


def digest(
    scope: Scope, messages: Sequence[Message], options: AddOptions, *, said_at: datetime | None
) -> bytes:
    """Digest of an add's content, equal for equal adds even if their JSON differs in form."""
    spoken = [
        (message.role, message.name, message.content, *omission_rows(message.omitted))
        for message in messages
    ]
    chosen = OPTIONS.dump_python(options, mode="json")
    if options.dry_run is not None:
        chosen["dry_run"] |= {"id": None}
    # Digests of earlier releases stay valid.
    if chosen["graph"] is None:
        del chosen["graph"]
    if chosen["priority"] == Priority.NORMAL:
        del chosen["priority"]
    del chosen["utc_offset"]
    utc = said_at and said_at.astimezone(UTC)
    content = [str(scope.lane_id), spoken, chosen, str(utc)]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).digest()
