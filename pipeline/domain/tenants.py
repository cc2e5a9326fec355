"""Tenants: what an API key may do."""

from __future__ import annotations

from enum import StrEnum
from typing import NewType
from uuid import UUID


class Access(StrEnum):
    """What an API key may do; each includes the one before."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"

    def allows(self, needed: Access) -> bool:
        order = list(Access)
        return order.index(self) >= order.index(needed)


ProjectId = NewType("ProjectId", UUID)

OrganizationId = NewType("OrganizationId", UUID)
