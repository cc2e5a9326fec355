"""Checks used by the documentation tests: code fences, and outputs that match or differ."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from deploy.docs.members import member_docs
from tests.bench import report
from tests.support.pages import Block, Run, Shell, blocks, parsed

PAGE = """
```sh title="not tested here: needs Docker"
docker ps
```

1. In a list:

   ```sh
   echo one
   ```

```json
{"a": "…"}
```
"""
FIRST, SECOND = "0d865521-65c9-4481-9813-7ad1362689c8", "1d865521-65c9-4481-9813-7ad1362689c8"
RUN: dict[str, Any] = {"per_s": 100.0, "p50_ms": 10.2, "p95_ms": 20.4, "cpu_ms": {"total": 7.1}}
DRAIN = {"events_per_s": 55.0, "cpu_ms_per_event": {"total": 20.0}}
PEER = {"per_s": 20.0, "p50_ms": 40.0, "p95_ms": 60.0, "cpu_ms": 9.0}


def fresh() -> Run:
    return Run(Shell({}, Path("errors")), "http://127.0.0.1:1", Path("data"))


def test_blocks_are_found_with_title_and_in_lists() -> None:
    shown = [(b.language, b.title, b.text.strip(), b.runs) for b in blocks(PAGE)]
    assert shown == [
        ("sh", "not tested here: needs Docker", "docker ps", False),
        ("sh", None, "echo one", True),
        ("json", None, '{"a": "…"}', False),
    ]


@pytest.mark.parametrize(
    ("shown", "real"),
    [
        ({"a": 1}, {"a": 1, "b": 2}),
        ([1], [1, 2]),
        ([], []),
        ({"ms": 1}, {"ms": 7.5}),
        (0.5, 0.7),
        ("ml_…", "ml_abc"),
        ("2026-01-01T00:00:00Z", "2026-02-02T00:00:00Z"),
        ([FIRST, FIRST], [SECOND, SECOND]),
    ],
)
def test_an_output_that_shows_a_part_matches(shown: Any, real: Any) -> None:
    fresh().same(shown, real, "output")


@pytest.mark.parametrize(
    ("shown", "real"),
    [
        ({"a": 1}, {"b": 1}),
        ([1, 2], [1]),
        ([], [1]),
        (1, 2),
        (None, "text"),
        ("Porto", "Bern"),
        ("ml_…", "sk_abc"),
        ([FIRST, FIRST], [FIRST, SECOND]),
    ],
)
def test_another_output_does_not_match(shown: Any, real: Any) -> None:
    with pytest.raises(AssertionError):
        fresh().same(shown, real, "output")


def test_a_text_output_needs_its_words() -> None:
    shown = Block("text", None, "…api…worker…", 1, 0, 0)
    fresh().compare(shown, "postgres\napi\nworker-1")
    with pytest.raises(AssertionError):
        fresh().compare(shown, "worker-1\napi")


def test_the_last_document_of_an_output_counts() -> None:
    assert parsed('{"a": 1}{"b": 2}\n') == {"b": 2}


def test_a_shell_keeps_variables_and_fails_with_its_last_command(tmp_path: Path) -> None:
    with Shell({"PATH": "/usr/bin:/bin"}, tmp_path / "errors") as shell:
        assert shell.run("NAME=maya") == ""
        assert shell.run("echo $NAME") == "maya"
        with pytest.raises(AssertionError, match="broken"):
            shell.run("echo broken; false")


class Sample:
    """Class whose attributes have docstrings."""

    plain = 1
    text: int = 2
    """What it
    means."""


def test_member_docs_are_the_texts_below_the_members() -> None:
    assert member_docs(Sample) == {"text": "What it means."}


def test_a_recorded_run_becomes_tables_and_plots(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "FOLDER", tmp_path)
    searches = dict.fromkeys(report.CALLERS, RUN)
    report.record({"search-chroma": searches})
    report.record(
        {
            "drain-default": {
                "distinct_users": DRAIN,
                "few_users": DRAIN,
                "accept_under_load": searches,
            },
            "mem0-library": {
                "search_1_caller": PEER,
                "search_16_callers": PEER,
                "distinct_users_16_callers": PEER,
            },
        }
    )
    page = (tmp_path / "hosted.md").read_text("utf-8")
    assert "| hosted embedder, Chroma | 10 / 20 | 10 / 20 | 10 / 20 | 100 | 100 | 7.1 |" in page
    assert "| mem0ai 2.2.1, library, pgvector | 40 / 60 | 40 / 60 |  | 20 |  | 9.0 |" in page
    assert "| one worker for each core, 16 users | 55.0 | 20.0 |" in page
    assert (tmp_path / "search.png").read_bytes().startswith(b"\x89PNG")
    assert report.page(report.recorded()) == page
