"""Members of a project: people with a role, who act through API keys that belong to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from sqlalchemy import ColumnElement, and_, delete, or_, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from pipeline.domain.errors import Conflict, NotFound
from pipeline.domain.tenants import ProjectId
from pipeline.ledger.fetching import execute, fetch
from pipeline.ledger.row_values import value_of
from pipeline.ledger.store import LedgerStore
from pipeline.ledger.tables import api_keys, members, projects
from pipeline.tenants.api_keys import lock_organization, made_by, revoke_keys

NO_SUCH_MEMBER = "No member of the project has this email."


class MemberRole(StrEnum):
    """Role of a member: the keys of a READER can only read."""

    READER = "READER"
    OWNER = "OWNER"


@dataclass(frozen=True, slots=True)
class Member:
    """A person's membership in one project, identified by email."""

    project_id: ProjectId
    email: str
    role: MemberRole
    created_at: datetime


class Members(LedgerStore):
    """List and change the members of projects."""

    async def of(self, project_ids: Sequence[ProjectId]) -> Sequence[Member]:
        """Return all members of these projects, oldest membership first."""
        query = (
            select(members)
            .where(members.c.project_id.in_(project_ids))
            .order_by(members.c.created_at, members.c.email)
        )
        rows = await fetch(self._engine, query)
        return [value_of(Member, row, role=MemberRole(row.role)) for row in rows]

    async def add(self, project_ids: Sequence[ProjectId], email: str, role: MemberRole) -> None:
        """Add a person to each of these projects where they are not a member yet.

        Errors: Conflict if they are already a member of all of them.
        """
        rows = [
            {"project_id": project_id, "email": email, "role": role} for project_id in project_ids
        ]
        query = insert(members).values(rows).on_conflict_do_nothing()
        if not await execute(self._engine, query):
            raise Conflict("This is a member's email already; change the role with PUT.")

    async def change(self, project_ids: Sequence[ProjectId], email: str, role: MemberRole) -> None:
        """Set a member's role in all of these projects.

        The access of the member's keys follows the role. With the role READER, keys that these keys
        created in other projects are revoked.

        Errors: NotFound if the person is a member of none of them.
        """
        person = members.c.project_id.in_(project_ids), members.c.email == email
        async with self._engine.begin() as connection:
            await _lock_organizations(connection, project_ids)
            changed = await connection.execute(update(members).where(*person).values(role=role))
            if not changed.rowcount:
                raise NotFound(NO_SUCH_MEMBER)
            if role is MemberRole.READER:
                made = api_keys.c.id.in_(made_by(_keys_of(project_ids, email)))
                await revoke_keys(connection, and_(made, api_keys.c.project_id.not_in(project_ids)))

    async def remove(self, project_ids: Sequence[ProjectId], email: str) -> None:
        """Remove a member from these projects and revoke the member's keys there.

        All keys created with these keys are revoked, too.

        Errors: NotFound if the person is a member of none of them.
        """
        gone = delete(members).where(
            members.c.project_id.in_(project_ids), members.c.email == email
        )
        of_member = _keys_of(project_ids, email)
        async with self._engine.begin() as connection:
            await _lock_organizations(connection, project_ids)
            removed = await connection.execute(gone)
            if not removed.rowcount:
                raise NotFound(NO_SUCH_MEMBER)
            await revoke_keys(connection, or_(of_member, api_keys.c.id.in_(made_by(of_member))))


def _keys_of(project_ids: Sequence[ProjectId], email: str) -> ColumnElement[bool]:
    """Match the keys of a member in these projects."""
    return and_(api_keys.c.project_id.in_(project_ids), api_keys.c.member == email)


async def _lock_organizations(
    connection: AsyncConnection, project_ids: Sequence[ProjectId]
) -> None:
    """Lock the organizations of these projects, in the order of their ids."""
    query = select(projects.c.organization_id).where(projects.c.id.in_(project_ids)).distinct()
    for organization_id in sorted((await connection.scalars(query)).all()):
        await lock_organization(connection, organization_id)
