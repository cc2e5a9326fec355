"""The stages, in order. Each is a coroutine over a frozen batch that reads, thinks, and returns.

    extract ─► retrieve ─► consolidate ─► apply ─► relate

A stage writes nothing itself: its output, its effects and the lane's next stage are one commit,
made by the runner. So it may run twice (a crash, a redelivery) and take effect once. It acts
only on saved outputs of earlier stages, and names the stage to go on with: some have nothing to do.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pipeline.domain.events import StageName
from pipeline.domain.usage import Usage
from pipeline.lanes.effects import Effects


@dataclass(frozen=True, slots=True)
class Finished:
    """`output` is JSON-ready; `next_stage` is None where the batch is done."""

    output: Any
    next_stage: StageName | None
    usage: Usage = field(default_factory=Usage)
    effects: Effects | None = None
