"""Tenants: ids of projects and organizations, access levels of API keys, rights of users."""

from __future__ import annotations

from enum import StrEnum
from typing import NewType
from uuid import UUID


class Access(StrEnum):
    """Access level of an API key; each level includes the ones before it."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"

    def allows(self, needed: Access) -> bool:
        """True if this level includes `needed`."""
        order = list(Access)
        return order.index(self) >= order.index(needed)


class Right(StrEnum):
    """Right of a user's token, on the memories of that user."""

    READ = "read"
    CORRECT = "correct"
    DELETE = "delete"


ProjectId = NewType("ProjectId", UUID)
"""The tenant: a project id from an API key or from a row of the ledger.

Stores take this type and no plain UUID, so a query without a tenant, or with another id in its
place, does not type-check. tests/house lists the few places that create one.
"""

OrganizationId = NewType("OrganizationId", UUID)
"""The organization of an authenticated API key, or of a row of the ledger."""
