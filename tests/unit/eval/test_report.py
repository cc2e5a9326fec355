"""The page of the evaluation: figures of several models and parts, merged in any order."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.eval import report
from tests.eval.questions.conversations import KINDS
from tests.eval.scenarios.bad import GOOD
from tests.eval.scenarios.dialogues import load
from tests.eval.scenarios.play import Played
from tests.eval.scenarios.run import UNORDERED, Way, problems

[MAYA] = [scenario for scenario in load() if scenario.name == "maya-moves-once"]
USAGE = {"calls": 2, "prompt_tokens": 900, "completion_tokens": 50}
EVENT = {"status": "SUCCEEDED", "results": [], "usage": USAGE}


def way(name: str, *texts: str) -> Way:
    memories = [{"id": text, "memory": text} for text in texts]
    return Way(name, [Played(MAYA, "maya", [EVENT], memories)], {}, {}, 1.0, {"extract": 500})


def method(f1: float) -> dict[str, Any]:
    return {
        "f1": f1, "bleu1": f1, "judge": None, "f1_by_kind": dict.fromkeys(KINDS, f1),
        "context_tokens": 300, "search_ms": [10.0, 20.0], "total_ms": [30.0, 40.0],
    }  # fmt: skip


def test_parts_and_models_are_merged_into_one_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "FOLDER", tmp_path)
    monkeypatch.setattr(report, "RECORD", tmp_path / "evaluation.json")
    right = way(GOOD, *(text.plain for text in MAYA.expected))
    report.record("scenarios", {GOOD: right.figures()})
    report.record("questions", {"methods": {"Memlane": method(81.5)}}, "openai/live")
    report.record("precision", "exact sets: 75 %")
    row = {"dialogues": 2, "times": 5, "right": 4, "missing": 0, "extra": 1}
    report.record("graphs_late", {"en": row, "all": row})
    page = (tmp_path / "evaluation.md").read_text("utf-8")
    assert "| good | 1 of 1 | 0 of 0 | 2 of 2 | 0 | 0 | 0 of 1 | 2 | 900 | 900 | 1 |" in page
    assert "`openai/live`:" in page
    assert "| Memlane | 81.5 | 81.5 |  | 81.5 |" in page
    assert "exact sets: 75 %" in page
    section = page.split("## Graphs after shuffled arrival\n")[1].split("\n## ")[0]
    assert "Command: `.venv/bin/python -m tests.eval.graphs.late`." in section
    assert "| all | 2 | 4 of 5 | 0 | 1 |" in section
    assert (tmp_path / "evaluation.png").read_bytes().startswith(b"\x89PNG")
    assert report.page(report.recorded()) == page


def test_another_store_out_of_order_is_a_problem() -> None:
    bern, cat, porto = (fact.text.plain for fact in MAYA.facts.values())
    assert problems([way(GOOD, cat, porto), way(UNORDERED, porto, cat)]) == []
    [line] = problems([way(GOOD, cat, porto), way(UNORDERED, cat, bern)])
    assert "maya-moves-once" in line


def test_a_part_that_was_recorded_later_has_its_own_date(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "FOLDER", tmp_path)
    monkeypatch.setattr(report, "RECORD", tmp_path / "evaluation.json")
    report.record("precision", "exact sets: 75 %")
    report.RECORD.write_text(
        json.dumps(report.recorded() | {"at": "2020-01-02", "dates": {}}), encoding="utf-8"
    )
    report.record("candidates", "all found")
    page = report.page(report.recorded())
    assert "Recorded 2020-01-02, " in page.split("\n## ")[0]
    [older] = [part for part in page.split("\n## ") if "75 %" in part]
    [newer] = [part for part in page.split("\n## ") if "all found" in part]
    assert "Recorded" not in older
    assert newer.count("Recorded 20") == 1
