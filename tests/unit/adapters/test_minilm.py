"""The built-in embedder: the pieces in which it works, and their order."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from pipeline.adapters.embedder_minilm import (
    BATCH_TEXTS,
    BATCH_TOKENS,
    MAX_CHARS,
    MAX_TOKENS,
    PIECE_CHARS,
    MiniLM,
    Tokens,
)
from pipeline.cpu_thread import SharedThread, searching
from pipeline.domain.vectors import Vector


class Recorder:
    """Encoder whose tokens are letters. It records its calls; the first run can be held up."""

    def __init__(self) -> None:
        self.tokenized: list[list[int]] = []
        self.ran: list[str] = []
        self.shapes: list[tuple[int, int]] = []
        self.runs, self.go_on = threading.Event(), threading.Event()
        self.go_on.set()

    def tokenize(self, texts: Sequence[str]) -> list[Tokens]:
        self.tokenized.append([min(len(text), MAX_CHARS) for text in texts])
        return [[ord(letter) for letter in text[:MAX_TOKENS]] for text in texts]

    def run(self, batch: Sequence[Tokens]) -> list[Vector]:
        self.ran.append("".join(sorted({chr(tokens[0]) for tokens in batch})))
        self.shapes.append((len(batch), max(map(len, batch))))
        self.runs.set()
        assert self.go_on.wait(60)
        return [np.array([float(len(tokens))], np.float32) for tokens in batch]


@pytest.fixture
def encoder() -> Recorder:
    return Recorder()


@pytest.fixture
def minilm(encoder: Recorder) -> MiniLM:
    return MiniLM(model_path=Path("model.onnx"), load=lambda _: encoder)


async def settled() -> None:
    """Let every task run until it waits."""
    for _ in range(10):
        await asyncio.sleep(0)


async def test_a_question_of_a_search_goes_before_the_rest_of_a_batch_edit(
    minilm: MiniLM, encoder: Recorder
) -> None:
    encoder.go_on.clear()

    async def search() -> None:
        with searching("a project"):
            await minilm.embed(["q" * 40])

    async with asyncio.TaskGroup() as group:
        group.create_task(minilm.embed(["a" * 4_000] * 20))
        await asyncio.to_thread(encoder.runs.wait, 60)
        group.create_task(minilm.embed(["b" * 4_000] * 20))
        await settled()
        group.create_task(search())
        await settled()
        encoder.go_on.set()
    assert encoder.ran[:2] == ["a", "q"]
    assert sorted(encoder.ran[2:]) == ["a"] * 19 + ["b"] * 20


async def test_texts_are_tokenized_and_encoded_in_bounded_pieces(
    minilm: MiniLM, encoder: Recorder
) -> None:
    texts = ["x" * 30_000, *("x" * size for size in range(1, 6_000, 29)), *["y"] * 300]
    vectors = await minilm.embed(texts)
    lengths = [min(len(text), MAX_TOKENS) for text in texts]
    assert [float(vector[0]) for vector in vectors] == lengths
    tokenized = [size for part in encoder.tokenized for size in part]
    assert tokenized == [min(len(text), MAX_CHARS) for text in texts]
    assert all(sum(part) <= PIECE_CHARS or len(part) == 1 for part in encoder.tokenized)
    assert len(encoder.tokenized) > 10
    assert all(texts <= BATCH_TEXTS for texts, _ in encoder.shapes)
    assert all(texts * longest <= BATCH_TOKENS for texts, longest in encoder.shapes)


async def test_a_question_is_one_piece(minilm: MiniLM, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a search would wait for a piece of others twice: before its tokens, and after them."""
    run = SharedThread.run
    pieces = []

    async def counted(thread, piece):
        pieces.append(piece)
        return await run(thread, piece)

    monkeypatch.setattr(SharedThread, "run", counted)
    await minilm.embed(["Where does Ana live?", "Ana"])
    assert len(pieces) == 1


async def test_no_texts_load_no_model(tmp_path: Path) -> None:
    assert await MiniLM(model_path=tmp_path / "missing").embed([]) == []
