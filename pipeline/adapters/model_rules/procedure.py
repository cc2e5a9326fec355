"""Log of a procedure: the messages of an agent's work, numbered and in full."""

from __future__ import annotations

from pipeline.domain.facts import Fact, MemoryType
from pipeline.domain.messages import Role
from pipeline.ports import ExtractionRequest


def procedure_log(request: ExtractionRequest) -> tuple[Fact, ...]:
    """One fact: the first message as the objective, and the messages after it as actions."""
    log = [
        sourced
        for sourced in request.messages
        if sourced.message.role is not Role.SYSTEM and sourced.message.content.strip()
    ]
    if not log:
        return ()
    first, *later = log
    lines = [f"1. Objective: {first.message.content.strip()}"]
    if later:
        lines.append("2. Actions:")
    for number, sourced in enumerate(later, start=1):
        lines.append(f"2.{number} {sourced.message.role}: {sourced.message.content.strip()}")
    return (
        Fact(
            "\n".join(lines),
            first.source,
            first.message.role,
            speaker=first.message.name,
            memory_type=MemoryType.PROCEDURAL,
        ),
    )
