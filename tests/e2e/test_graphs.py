"""Dialogues with a graph through the whole system: right with a good model, no harm by bad ones."""

from __future__ import annotations

from tests.eval.graphs.answers import BAD
from tests.eval.graphs.run import load, problems, run
from tests.eval.scenarios.bad import GOOD

# Two or three of each language; together they have most themes. `python -m tests.eval.graphs` plays
# all of them with the bad models too.
SOME = (
    "divorced", "losing-a-job", "two-jobs-at-once", "the-user-has-a-name", "two-sams",
    "coffee-no-more", "an-earlier-home", "gekuendigt", "nur-ein-vorhaben", "el-divorcio", "离婚",
)  # fmt: skip


async def test_graphs_stand_right_and_are_unharmed_by_bad_models() -> None:
    scenarios = load()
    assert len(scenarios) >= 50
    assert {scenario.name for scenario in scenarios} >= set(SOME)
    ways = await run(scenarios, {GOOD: (), **dict.fromkeys(BAD, SOME)})
    assert problems(ways) == []
