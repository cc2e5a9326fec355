"""The audit log: who changed what, and when.

An entry is written before a request changes something, and gets the status of its response before
that is sent. An entry without a status belongs to a process that ended in between: the change may
have been made. Entries have no text and no id of a user; an erasure leaves them as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import BigInteger, SmallInteger, Uuid, bindparam, insert, select, update

from pipeline.domain.tenants import ProjectId
from pipeline.ledger.fetching import fetch
from pipeline.ledger.store import LedgerStore
from pipeline.ledger.tables import api_keys, audit_entries
from pipeline.tenants.api_keys import Grant

BEGIN = (
    insert(audit_entries)
    .values(
        {
            name: bindparam(name, type_=audit_entries.c[name].type)
            for name in ("project_id", "key_id", "token_id", "action", "target")
        }
    )
    .returning(audit_entries.c.id)
)
END = (
    update(audit_entries)
    .where(
        audit_entries.c.project_id == bindparam("of_project", type_=Uuid),
        audit_entries.c.id == bindparam("entry_id", type_=BigInteger),
    )
    .values(status=bindparam("status", type_=SmallInteger), target=bindparam("target", type_=Uuid))
)
# Id above all others: the cursor of the first page.
NEWEST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """A request that changed something, or tried to.

    `key`: name of the API key; None if the key is deleted. `member`: whose key it is. `token_id`:
    the user's token, if the request had one. `status`: of the response.
    """

    id: int
    at: datetime
    key_id: UUID
    key: str | None
    member: str | None
    token_id: UUID | None
    action: str
    target: UUID | None
    status: int | None


class AuditLog(LedgerStore):
    """Store of the audit log."""

    async def begin(
        self, project_id: ProjectId, grant: Grant, action: str, target: UUID | None
    ) -> int:
        """Write the entry of a request that is about to change something. Returns its id."""
        values = {"project_id": project_id, "key_id": grant.key_id, "action": action}
        values |= {"target": target, "token_id": grant.user and grant.user.token_id}
        [row] = await self._direct.rows(BEGIN, values)
        return int(row.id)

    async def end(
        self, project_id: ProjectId, entry_id: int, status: int, target: UUID | None
    ) -> None:
        """Add the status of the response, and the row that the request was about."""
        values = {"of_project": project_id, "entry_id": entry_id}
        await self._direct.rows(END, values | {"status": status, "target": target})

    async def page(
        self,
        project_id: ProjectId,
        *,
        before: int | None = None,
        key_id: UUID | None = None,
        limit: int,
    ) -> Sequence[AuditEntry]:
        """Entries with an id below `before`, newest first; with `key_id`, those of one key."""
        names = ("id", "at", "key_id", "token_id", "action", "target", "status")
        query = (
            select(
                *(audit_entries.c[name] for name in names),
                api_keys.c.name.label("key"),
                api_keys.c.member,
            )
            .outerjoin(api_keys, api_keys.c.id == audit_entries.c.key_id)
            .where(
                audit_entries.c.project_id == project_id,
                audit_entries.c.id < (NEWEST if before is None else before),
            )
            .order_by(audit_entries.c.id.desc())
        )
        if key_id is not None:
            query = query.where(audit_entries.c.key_id == key_id)
        rows = await fetch(self._single, query.limit(limit))
        return [AuditEntry(**row._asdict()) for row in rows]
