"""The stand-in of an evaluation: a good or a bad model behind an OpenAI-compatible API."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import tiktoken

from tests.eval.scenarios.bad import Answers
from tests.support.llm_server import LLMServer


class EvalServer(LLMServer):
    """Stand-in that counts tokens as OpenAI's models do (o200k_base)."""

    def __init__(self, answers: Answers) -> None:
        super().__init__(answers=answers, tokens=tokens)
        self.answers = answers
        self.tokens = tokens


def settings(server: LLMServer) -> Mapping[str, str]:
    """Settings of a stack that calls this server."""
    return {
        "MEMLANE_LLM__MODEL": "openai/stand-in",
        "MEMLANE_LLM__API_BASE": server.base_url,
        "MEMLANE_LLM__API_KEY": "sk-eval",
    }


def tokens(text: str) -> int:
    """Number of tokens of a text."""
    return max(1, len(_encoding().encode(text, disallowed_special=())))


@cache
def _encoding() -> Any:
    """The encoding of OpenAI's models; LiteLLM ships its file, so nothing is downloaded."""
    spec = find_spec("litellm")
    assert spec is not None
    assert spec.origin is not None
    files = Path(spec.origin).parent / "litellm_core_utils" / "tokenizers"
    os.environ.setdefault("TIKTOKEN_CACHE_DIR", str(files))  # noqa: TID251  tiktoken reads it
    return tiktoken.get_encoding("o200k_base")
