"""Responses about entities of the graph."""

from __future__ import annotations

from typing import Any

from pipeline.graph.editing import EntityView


def entity(row: EntityView) -> dict[str, Any]:
    """An entity, with those that are merged into it."""
    return {
        "id": str(row.id),
        "name": row.name,
        "type": row.kind,
        "qualifier": row.qualifier,
        "mentions": row.mentions,
        "merged_into": str(row.merged_into) if row.merged_into else None,
        "merge_reason": row.merge_reason,
        "merged_at": row.merged_at,
        "members": [{"id": str(node_id), "name": name} for node_id, name in row.members],
        "created_at": row.created_at,
    }
