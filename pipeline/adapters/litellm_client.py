"""One network call through LiteLLM, with its import, in-call retries and error names.

Shared by the adapters named *_litellm; nothing else imports litellm.

- litellm is imported on first use, in a thread: 1.5 to 7 CPU seconds that must not stop the loop.
- LiteLLM's errors carry prompts, answers and headers in their text: none of it leaves this module.
- The default transport (aiohttp) and its cached clients belong to one event loop: one a process.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import logging
import os
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

from pipeline.adapters.llm_json import rejection
from pipeline.adapters.provider_calls import (
    PASSING_STATUSES,
    RetryPolicy,
    Throttled,
    retried,
    retry_after_s,
)
from pipeline.domain.errors import ModelRejected, ModelUnavailable

# Read by litellm while it is imported. Without the first it fetches a price list from the network
# (3 attempts with back-off); in its DEV mode it loads any `.env` it finds into the environment.
# Source: litellm 1.106 litellm_core_utils/get_model_cost_map.py, __init__.py
_ENVIRONMENT = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS": "True",
    "LITELLM_MODE": "PRODUCTION",
}
_LOADING = threading.Lock()
# They quote prompts and answers: LiteLLM in its errors, openai at DEBUG.
_TALKATIVE = ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy", "openai")
# LiteLLM reports as HTTP 500 what no retry mends: a key that was never given, and a provider that
# does not do what it is asked for.
_NO_KEY = re.compile(
    r"missing (credentials|\w+ api key)|api_key.{0,40}must be set|api[ _]key is required",
    re.IGNORECASE,
)
_CANNOT = re.compile(r"unsupported provider: \w+", re.IGNORECASE)


class LiteLLMClient:
    """One model at one provider.

    Where `api_base` is given, only the given key is ever sent to it: an OPENAI_API_KEY that happens
    to be in the environment is not.
    """

    def __init__(
        self,
        model: str,
        *,
        api_base: str | None,
        api_key: str | None,
        timeout_s: float,
        retry: RetryPolicy,
    ) -> None:
        self.model = model
        self._timeout_s = timeout_s
        self._retry = retry
        self._arguments: dict[str, Any] = {
            "model": model,
            "api_base": api_base,
            "api_key": api_key or ("none" if api_base else None),
            "max_retries": 0,
            "num_retries": 0,
        }

    async def litellm(self) -> Any:
        """The litellm module, imported without stopping the event loop."""
        return load() if _load.cache_info().currsize else await asyncio.to_thread(load)

    async def call(self, function: str, **arguments: Any) -> Any:
        """What `litellm.<function>` answers.

        Errors: ModelUnavailable, ModelRejected (FormatRefused where response_format is at fault).
        """
        litellm = await self.litellm()
        ask = getattr(litellm, function)

        async def once(limit_s: float) -> Any:
            return await self._once(ask, limit_s, arguments)

        return await retried(once, self._retry, timeout_s=self._timeout_s, model=self.model)

    async def _once(self, ask: Any, limit_s: float, arguments: Mapping[str, Any]) -> Any:
        try:
            async with asyncio.timeout(limit_s):
                return await ask(**self._arguments, **arguments, timeout=limit_s)
        except TimeoutError:
            raise ModelUnavailable(f"{self.model}: no answer within {limit_s:g} s") from None
        except _openai_error() as error:
            raise translated(error, self.model) from None


def translated(error: Exception, model: str) -> ModelUnavailable | ModelRejected:
    """The error by what helps. Only the class and the HTTP status are told."""
    status: int | None = getattr(error, "status_code", None)
    told = f"{model}: {type(error).__name__}" + (f" (HTTP {status})" if status else "")
    if _NO_KEY.search(str(error)):
        return ModelRejected(f"{model}: no API key is set")
    if status == 500 and _CANNOT.search(str(error)):
        return ModelRejected(f"{model}: LiteLLM knows no such service of this provider")
    if status == 429:
        return Throttled(told, retry_after_s=retry_after_s(_headers(error)))
    if status is None or status >= 500 or status in PASSING_STATUSES:
        return ModelUnavailable(told, retry_after_s=retry_after_s(_headers(error)))
    return rejection(status, str(error))(told)


def _headers(error: Exception) -> Mapping[str, str]:
    found = getattr(getattr(error, "response", None), "headers", None)
    found = found or getattr(error, "litellm_response_headers", None) or {}
    return {str(name).lower(): str(value) for name, value in found.items()}


def load() -> Any:
    """litellm, made quiet and with its lazy parts in place.

    Slow the first time: not to be called in an event loop. Threads that ask at once wait for one.
    """
    with _LOADING:
        return _load()


@cache
def _load() -> Any:
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)  # noqa: TID251 (litellm's own, not ours)
    with _collector_paused():
        litellm: Any = importlib.import_module("litellm")
        litellm.suppress_debug_info = True
        litellm.drop_params = True
        for name in _TALKATIVE:
            logging.getLogger(name).setLevel(logging.CRITICAL)
        # The first call imports 470 more modules (0.37 s): one without a network does it in here.
        importlib.import_module("openai.resources")
        turn = {"role": "user", "content": "-"}
        litellm.completion(model="openai/warm-up", messages=[turn], mock_response="-")
    return litellm


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Import without garbage collections, and keep what was imported out of all later ones.

    Measured (litellm 1.106, 2 cores): import 2.3 -> 1.5 CPU s; longest stall of other threads
    0.17 -> 0.015 s; every later full collection 0.2 s -> below 1 ms.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        if was_on:
            gc.enable()


def _openai_error() -> type[Exception]:
    """The root of every error litellm raises on purpose."""
    root: type[Exception] = importlib.import_module("openai").OpenAIError
    return root
