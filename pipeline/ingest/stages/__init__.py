"""The stages, in order. Each is a coroutine that reads a fixed batch and returns its output.

    extract ─► retrieve ─► consolidate ─► apply ─► relate

A stage writes nothing itself: the runner commits its output, its effects and the lane's next stage
together. So a stage may run twice (a crash, a redelivery) and take effect once. It reads only saved
outputs of earlier stages, and names the next stage, because some can be skipped.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pipeline.domain.events import StageName
from pipeline.domain.usage import Usage
from pipeline.lanes.effects import Effects


@dataclass(frozen=True, slots=True)
class Finished:
    """Result of a stage. `output` is JSON-ready; `next_stage` is None if the batch is done."""

    output: Any
    next_stage: StageName | None
    usage: Usage = field(default_factory=Usage)
    effects: Effects | None = None
