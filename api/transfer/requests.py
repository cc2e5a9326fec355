"""Bodies of imports."""

from __future__ import annotations

from pydantic import ConfigDict, Field

from api.http.body import OwnRequest
from pipeline.transfer.records import ImportRecord

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

    records: list[ImportRecord] = Field(min_length=1, max_length=MOST_LINES)
    new_ids: bool = False
    dry_run: bool = False
