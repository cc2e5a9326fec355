"""The stages, in order. Each is a coroutine over a frozen batch that returns what it put out.

A stage may run twice (a crash, a redelivery), so it acts only on saved outputs of earlier stages
and on idempotent writes. Where nothing is left to do it names the stage to go on with.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pipeline.domain import StageName, Usage

ORDER = tuple(StageName)


@dataclass(frozen=True, slots=True)
class Finished:
    """`output` is JSON-ready; `next_stage` overrides the order where stages have nothing to do."""

    output: Any
    usage: Usage = field(default_factory=Usage)
    next_stage: StageName | None = None


def following(stage: StageName) -> StageName:
    return ORDER[ORDER.index(stage) + 1]
