"""SQL files: parts that several statements share are inserted where they are named."""

from __future__ import annotations

from importlib import resources

import pytest

from pipeline.lanes.sql import statement
from pipeline.ledger.sql_files import PART

FENCED = [
    "count_suspect_attempt", "end_batch", "finish_apply", "finish_relate", "finish_stage", "pause",
]  # fmt: skip


@pytest.mark.parametrize("name", FENCED)
def test_a_named_part_is_inserted(name: str) -> None:
    fence = resources.files("pipeline.lanes.sql").joinpath("fence.sql").read_text("utf-8").strip()
    assert fence in statement(name).text
    assert not PART.search(statement(name).text)


def test_a_statement_is_read_once() -> None:
    assert statement("pause") is statement("pause")
