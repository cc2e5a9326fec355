"""Sessions of the console, and the one-time links that begin them.

A session stands for an API key: it has the key's rights, and ends with it. Only SHA-256 digests of
the tokens are stored.
"""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from sqlalchemy import delete, func, insert, select

from pipeline.ledger.fetching import execute, fetch_value
from pipeline.ledger.store import LedgerStore
from pipeline.ledger.tables import api_keys, console_sessions
from pipeline.tenants.api_keys import Grant
from pipeline.tenants.secret import Secret

# Lifetime of a one-time link.
LINK_FOR = timedelta(minutes=10)


class ConsoleSessions(LedgerStore):
    """Open, look up and end sessions."""

    async def open(self, grant: Grant, lifetime: timedelta) -> Secret:
        """Open a session for the key of the grant. Returns its token, which is not stored."""
        return await self._make(grant.key_id, lifetime, link=False)

    async def link(self, grant: Grant) -> Secret:
        """Create a link that opens one session for the key of the grant. Returns its token."""
        return await self._make(grant.key_id, LINK_FOR, link=True)

    async def redeem(self, token: Secret, lifetime: timedelta) -> Secret | None:
        """Open the session of a link, and delete the link; None if it was used or has expired."""
        used = (
            delete(console_sessions)
            .where(
                console_sessions.c.digest == token.digest,
                console_sessions.c.link,
                console_sessions.c.expires_at > func.now(),
            )
            .returning(console_sessions.c.key_id)
        )
        key_id = await fetch_value(self._single, used)
        return None if key_id is None else await self._make(key_id, lifetime, link=False)

    async def key(self, token: Secret) -> bytes | None:
        """Digest of the API key that a session stands for; None if it has ended.

        Tells nothing about the key itself, which may be revoked.
        """
        query = (
            select(api_keys.c.digest)
            .join(console_sessions, console_sessions.c.key_id == api_keys.c.id)
            .where(
                console_sessions.c.digest == token.digest,
                ~console_sessions.c.link,
                console_sessions.c.expires_at > func.now(),
            )
        )
        digest: bytes | None = await fetch_value(self._engine, query)
        return digest

    async def close(self, token: Secret) -> None:
        """End a session; one that has ended is left as it is."""
        query = delete(console_sessions).where(console_sessions.c.digest == token.digest)
        await execute(self._engine, query)

    async def _make(self, key_id: UUID, lifetime: timedelta, *, link: bool) -> Secret:
        """Store a new token, and delete those that have expired."""
        token = Secret()
        values = {"digest": token.digest, "key_id": key_id, "link": link}
        row = insert(console_sessions).values(**values, expires_at=func.now() + lifetime)
        ended = delete(console_sessions).where(console_sessions.c.expires_at < func.now())
        async with self._engine.begin() as connection:
            await connection.execute(ended)
            await connection.execute(row)
        return token
