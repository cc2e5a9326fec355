"""Responses about seals."""

from __future__ import annotations

from datetime import datetime

from typing_extensions import TypedDict

from api.http.shared_responses import Id, json_of
from pipeline.seals.verification import VerifiedPage


class FaultJson(TypedDict):
    """A row that differs from its seal. `number`: replays, line or version."""

    problem: str
    kind: str
    id: Id | None
    number: int | None
    lane_id: Id | None


class VerifiedPageJson(TypedDict):
    """A page of a verification. `ok` is false without tamper evidence: nothing was verified."""

    ok: bool
    enabled: bool
    state: str
    counter: int
    sealed: int
    waiting: int
    faults: list[FaultJson]
    next: str | None


class HeadJson(TypedDict):
    """A recorded head of a project. `valid`: this server signed it."""

    number: int
    counter: int
    lanes: int
    root: str
    sealed_until: datetime | None
    created_at: datetime
    valid: bool


class HeadsJson(TypedDict):
    """The recorded heads of a project."""

    project_id: Id
    results: list[HeadJson]


def page(row: VerifiedPage) -> VerifiedPageJson:
    """A page of a verification."""
    ok = row.enabled and not row.faults
    faults = [json_of(FaultJson, f, id=f.row_id, number=f.row_no) for f in row.faults]
    return json_of(VerifiedPageJson, row, ok=ok, state=row.state.value, faults=faults)
