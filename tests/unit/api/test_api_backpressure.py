"""The API's count of a project's busy lanes."""

from __future__ import annotations

from uuid import UUID

from api.backpressure import Backpressure
from pipeline.domain.backpressure import Limits
from pipeline.domain.tenants import ProjectId
from pipeline.lanes.load import LoadView
from pipeline.ledger.engine import connect

CROWDED, QUIET = ProjectId(UUID(int=1)), ProjectId(UUID(int=2))


def test_lanes_woken_since_the_last_look_count_for_their_project_alone() -> None:
    view = LoadView(connect("postgresql://nobody@127.0.0.1:1/none", pool_size=1))
    backpressure = Backpressure(view, Limits(scope_events=1, project_events=1, lag_s=1))
    assert [backpressure.woken(CROWDED) for _ in range(12)] == list(range(1, 13))
    assert backpressure.woken(QUIET) == 1
