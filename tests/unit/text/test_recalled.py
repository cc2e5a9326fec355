"""Recalled memories in messages: the block is cut out, and nothing else."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.text.recalled import fenced, without_recalled

BLOCK = fenced("[1] 2024-05-07 Maya: I bought a tent.\n[2] 2024-05-09 She likes tea.")


@pytest.mark.parametrize(
    ("text", "own"),
    [
        ("I moved to Bern.", "I moved to Bern."),
        (BLOCK, ""),
        (f"{BLOCK}\nI moved to Bern.", "I moved to Bern."),
        (f"Context:\n{BLOCK}\nI moved to Bern.\n{BLOCK}", "Context:\n\nI moved to Bern."),
        (BLOCK.removesuffix("</recalled>") + "I moved to Bern.", "I moved to Bern."),
        ("<recalled>\nI moved to Bern.", "I moved to Bern."),
        ("I recalled it. <b>Bern</b>", "I recalled it. <b>Bern</b>"),
        ("a </recalled> b", "a </recalled> b"),
        ("", ""),
    ],
)
def test_a_message_without_what_it_recalls(text: str, own: str) -> None:
    assert without_recalled(text) == own


def test_no_memories_have_no_fence() -> None:
    assert fenced("") == ""


OLD = re.compile(
    r"[ \t]*<recalled>(?:.*?</recalled>|(?:\s*\n\[\d+\] \d{4}-\d\d-\d\d [^\n]*)*)", re.DOTALL
)
PIECES = ["<recalled>", "</recalled>", " ", "\t", "\n", "[1] 2024-05-07 a", "I moved."]


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_the_scan_cuts_what_the_pattern_of_a_block_matches(text: str) -> None:
    expected = OLD.sub("", text).strip() if "<recalled>" in text else text
    assert without_recalled(text) == expected
