"""`fields`: the keys of a row that an answer keeps, by the names the row has them under."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from pydantic import AfterValidator, Field

from api.schemas.limits import MOST_FIELDS

OF_A_MEMORY = (
    "id", "memory", "user_id", "agent_id", "app_id", "run_id", "session_id", "metadata",
    "categories", "structured_attributes", "immutable", "expiration_date", "attributed_to",
    "event_id", "version", "timestamp", "created_at", "updated_at", "lifecycle_state",
    "replaced_by", "synthesized",
)  # fmt: skip
OF_A_RESULT = ("type", *OF_A_MEMORY, "speaker", "pending", "context", "score", "score_breakdown")
# One key of the metadata: metadata.trip
INSIDE = "metadata."


def _known(names: list[str] | None, known: tuple[str, ...]) -> list[str] | None:
    for name in names or ():
        if name not in known and not name.startswith(INSIDE):
            raise ValueError(f"{name!r} is no field; use {', '.join(known)} or metadata.<key>")
    return names


Fields = Annotated[list[str], Field(max_length=MOST_FIELDS)]
MemoryFields = Annotated[Fields | None, AfterValidator(partial(_known, known=OF_A_MEMORY))]
ResultFields = Annotated[Fields | None, AfterValidator(partial(_known, known=OF_A_RESULT))]
