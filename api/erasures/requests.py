"""Requests about erasures."""

from __future__ import annotations

from pydantic import ConfigDict

from api.http.body import EntityIdFields, OwnRequest
from pipeline.domain.errors import InvalidInput
from pipeline.erasure.store import OwnerKey
from pipeline.tenants.owners import KINDS


class ErasureRequest(OwnRequest, EntityIdFields):
    """The user, agent, app or run to erase: exactly one id."""

    model_config = ConfigDict(json_schema_extra={"example": {"user_id": "maya"}})

    def owner(self) -> OwnerKey:
        """The owner to erase. Errors: InvalidInput unless exactly one id is given."""
        owners = [OwnerKey(kind, value) for kind in KINDS if (value := getattr(self, KINDS[kind]))]
        if len(owners) != 1:
            raise InvalidInput("Give exactly one of user_id, agent_id, app_id, run_id.")
        return owners[0]
