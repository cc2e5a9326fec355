"""Responses reduced to the keys that an agent needs, because each key costs tokens."""

from __future__ import annotations

from typing import Any

# Keys of a memory, turn or event that are useless to an agent.
NOISE = frozenset(
    (
        *("session_id", "structured_attributes", "immutable", "version", "synthesized"),
        *("score_breakdown", "updated_at", "data", "prompts"),
        *("said_at", "memory_type", "subject", "attribute", "slot", "confidence", "valid_from"),
        *("payload", "usage", "stages", "stage", "graph_status", "replays", "latency", "owner"),
    )
)
# Keys that a relation of the graph keeps: since when it holds.
TIMES = frozenset({"valid_from"})
EMPTY: tuple[object, ...] = (None, [], {}, "")


def compact(answer: Any) -> Any:
    """An object or a page without useless and empty keys, and without links to other pages.

    An agent cannot follow links; it requests a page by its number.
    """
    match answer:
        case {"results": list(rows)}:
            links = {"next", "previous"}
            rest = {key: value for key, value in answer.items() if key not in links}
            more = {"more_pages": True} if answer.get("next") else {}
            return rest | more | {"results": [_row(row) for row in rows]}
        case dict():
            return _row(answer)
        case _:
            return answer


def _row(row: Any) -> Any:
    """A row, and those in it: receipt lines, and turns around a hit."""
    if not isinstance(row, dict):
        return row
    times = TIMES if "relationship" in row else frozenset()
    return {
        key: [_row(part) for part in value] if isinstance(value, list) else value
        for key, value in row.items()
        if _says(key, value) or (key in times and value not in EMPTY)
    }


def _says(key: str, value: object) -> bool:
    usual = (key, value) == ("lifecycle_state", "active")
    return not usual and key not in NOISE and value is not False and value not in EMPTY
