"""Dialogues through the whole system: right stores with a good model, no harm by a bad one."""

from __future__ import annotations

from tests.eval.scenarios.bad import GOOD
from tests.eval.scenarios.dialogues import load
from tests.eval.scenarios.run import UNORDERED, problems, run

# Three of each language; together they have most themes. `python -m tests.eval.scenarios` has all.
SOME = {
    "maya-moves-once", "tom-breaks-up", "a-quoted-friend", "the-assistant-echoes",
    "bernd-zieht-zweimal-um", "heiko-trennt-sich", "quirin-wiederholt-sich",
    "elena-deja-la-carne", "gloria-tambien", "dos-personas-llamadas-pilar",
    "wangfang-gaizheng", "zhouqiang-fenshou", "qunliao-liangren",
}  # fmt: skip


async def test_some_scenarios_stand_right_in_any_order_and_unharmed_by_bad_models() -> None:
    scenarios = [scenario for scenario in load() if scenario.name in SOME]
    assert len(scenarios) == len(SOME)
    ways = await run(scenarios, [GOOD, UNORDERED, "delete_all", "update_all", "other_ids"])
    assert problems(ways) == []
