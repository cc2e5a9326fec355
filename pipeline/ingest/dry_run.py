"""Dry run: the stages compute what an add would do, and commit their outputs without effects."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

from pipeline.ingest.stages import Finished
from pipeline.lanes.effects import MemoryEffects


def without_effects(finished: Finished) -> Finished:
    """The result of a stage as a dry run saves it: its output, and the receipt it would write."""
    output = finished.output
    if isinstance(finished.effects, MemoryEffects):
        output = {**output, "receipt": _receipt(finished.effects)}
    return replace(finished, output=output, effects=None)


def _receipt(effects: MemoryEffects) -> list[dict[str, Any]]:
    """The receipt lines, as JSON values. A memory that is not stored yet has no id."""
    stored = effects.seen
    return [
        {
            **{
                name: str(value) if isinstance(value, UUID) else value
                for name, value in line.items()
            },
            "memory_id": str(line["memory_id"]) if line["memory_id"] in stored else None,
        }
        for line in effects.receipt
    ]
