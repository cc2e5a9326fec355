"""Bodies of imports."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any

from pydantic import ConfigDict, Field, SkipValidation, field_validator

from api.http.body import OwnRequest
from pipeline.cpu_thread import beside_loop
from pipeline.transfer.records import ImportRecord, OwnerRecord, ScopedRecord, read_lines

# Lines of one request; its size is limited by MEMLANE_MAX_BODY_BYTES.
MOST_LINES = 1_000


class ImportRequest(OwnRequest):
    """Lines of an export. `new_ids`: replace also the ids that rows of the project have."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "records": [
                    {
                        "type": "memory",
                        "user_id": "maya",
                        "id": "7c0c9a60-55b8-4f0e-8f7d-0a4b4f1f8a11",
                        "text": "User lives in Porto",
                        "said_at": "2026-03-01T09:00:00Z",
                        "valid_from": "2026-03-01T09:00:00Z",
                        "created_at": "2026-03-01T09:00:00Z",
                        "updated_at": "2026-03-01T09:00:00Z",
                    }
                ]
            }
        }
    )

    # Validated beside the event loop, by `lines`.
    records: Annotated[
        Annotated[list[ImportRecord], Field(min_length=1, max_length=MOST_LINES)], SkipValidation
    ]
    new_ids: bool = False
    dry_run: bool = False

    @field_validator("records", mode="before")
    @classmethod
    def some_lines(cls, value: Any) -> Any:
        """Limit the number of lines."""
        if not isinstance(value, list) or not 1 <= len(value) <= MOST_LINES:
            raise ValueError(f"give a list of 1 to {MOST_LINES:,} lines")
        return value

    async def lines(self) -> Sequence[ScopedRecord | OwnerRecord]:
        """The lines. Errors: InvalidInput, with the places of the first faults."""
        return await beside_loop(partial(read_lines, self.records))
