"""Follow-up questions find more with their conversation, and a new subject finds as much."""

from __future__ import annotations

from statistics import mean

from tests.eval.followups import measure, table
from tests.support.stack import Client


async def test_a_conversation_finds_half_as_much_again(client: Client) -> None:
    recalls = await measure(client)
    lines = "\n".join(table(recalls))
    dialogues = [recall for recall in recalls if recall.kind == "dialogues"]
    assert len(dialogues) == 40
    alone, together = mean(r.alone for r in dialogues), mean(r.together for r in dialogues)
    assert together >= 1.5 * alone, lines
    changes = [recall for recall in recalls if recall.kind == "changes"]
    assert mean(r.together for r in changes) >= mean(r.alone for r in changes), lines
