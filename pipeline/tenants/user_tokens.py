"""Users' tokens: short-lived access of one user to their own memories.

A token has some of the rights read, correct and delete, never more than the API key that made it,
and ends with that key, when it is revoked, when it expires, or when the user is erased. Only its
SHA-256 digest is stored.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Row, delete, func, insert, select

from pipeline.domain.errors import NotFound
from pipeline.domain.tenants import ProjectId, Right
from pipeline.ledger.fetching import execute, fetch
from pipeline.ledger.store import LedgerStore
from pipeline.ledger.tables import user_tokens
from pipeline.tenants.api_keys import Grant
from pipeline.tenants.projects import keep
from pipeline.tenants.secret import Secret

PREFIX = "mlu_"
# Maximum number of tokens in one list.
MOST_LISTED = 200
NO_SUCH_TOKEN = "The project has no such token, or it has ended."  # noqa: S105  no secret


@dataclass(frozen=True, slots=True)
class UserToken:
    """A token as listed: all its columns except the token itself."""

    id: UUID
    user_id: str
    rights: Sequence[Right]
    created_at: datetime
    expires_at: datetime


_LISTED = tuple(
    user_tokens.c[name] for name in ("id", "user_id", "rights", "created_at", "expires_at")
)


class UserTokens(LedgerStore):
    """Create, list and revoke users' tokens. `ApiKeys.grants` checks them."""

    async def make(
        self, by: Grant, user_id: str, rights: Collection[Right], lifetime: timedelta
    ) -> tuple[UserToken, Secret]:
        """Create a token of the key's project. Returns it with its secret, which is not stored.

        Tokens that have expired are deleted. Errors: ProjectGone.
        """
        secret = Secret(PREFIX + secrets.token_urlsafe(32))
        row = insert(user_tokens).values(
            digest=secret.digest,
            key_id=by.key_id,
            project_id=by.project.id,
            user_id=user_id,
            rights=[right for right in Right if right in rights],
            expires_at=func.now() + lifetime,
        )
        ended = delete(user_tokens).where(user_tokens.c.expires_at < func.now())
        async with self._engine.begin() as connection:
            await keep(connection, by.project.id)
            await connection.execute(ended)
            made = (await connection.execute(row.returning(*_LISTED))).one()
        return _as_token(made), secret

    async def of(self, project_id: ProjectId, user_id: str | None = None) -> list[UserToken]:
        """The valid tokens of the project, or of one user, newest first, up to MOST_LISTED."""
        query = select(*_LISTED).where(
            user_tokens.c.project_id == project_id, user_tokens.c.expires_at > func.now()
        )
        if user_id is not None:
            query = query.where(user_tokens.c.user_id == user_id)
        query = query.order_by(user_tokens.c.created_at.desc(), user_tokens.c.id)
        rows = await fetch(self._engine, query.limit(MOST_LISTED))
        return [_as_token(row) for row in rows]

    async def revoke(self, project_id: ProjectId, token_id: UUID) -> None:
        """End a token. Errors: NotFound."""
        query = delete(user_tokens).where(
            user_tokens.c.project_id == project_id, user_tokens.c.id == token_id
        )
        if not await execute(self._engine, query):
            raise NotFound(NO_SUCH_TOKEN)

    async def revoke_all(self, project_id: ProjectId, user_id: str) -> int:
        """End all tokens of a user. Returns their number."""
        query = delete(user_tokens).where(
            user_tokens.c.project_id == project_id, user_tokens.c.user_id == user_id
        )
        return await execute(self._engine, query)


def _as_token(row: Row[Any]) -> UserToken:
    return UserToken(**row._asdict() | {"rights": [Right(right) for right in row.rights]})
