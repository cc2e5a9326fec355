"""Number of tokens of a text, as OpenAI's models count them (o200k_base)."""

from __future__ import annotations

import os
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import tiktoken


def tokens(text: str) -> int:
    """Number of tokens of a text, at least 1."""
    return max(1, len(_encoding().encode(text, disallowed_special=())))


@cache
def _encoding() -> Any:
    """The encoding; LiteLLM ships its file, so nothing is downloaded."""
    spec = find_spec("litellm")
    assert spec is not None
    assert spec.origin is not None
    files = Path(spec.origin).parent / "litellm_core_utils" / "tokenizers"
    os.environ.setdefault("TIKTOKEN_CACHE_DIR", str(files))  # noqa: TID251  tiktoken reads it
    return tiktoken.get_encoding("o200k_base")
