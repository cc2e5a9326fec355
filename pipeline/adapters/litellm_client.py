"""Calls through LiteLLM: its import, retries and errors.

Shared by the adapters named *_litellm; no other module imports litellm.

- The first use imports litellm in a thread: it takes 1.5 to 7 CPU seconds.
- LiteLLM's error texts contain prompts, answers and headers; none of it leaves this module.
- Its default transport (aiohttp) and cached clients belong to one event loop per process.
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
from functools import cache, partial
from typing import Any

from pipeline.adapters.embedder_batched import UnusableVectors, reports_unusable
from pipeline.adapters.llm_json import rejection
from pipeline.adapters.provider_calls import (
    PASSING_STATUSES,
    RemoteModel,
    Throttled,
    retried,
    retry_after_s,
)
from pipeline.adapters.refused_settings import redirects, refused_setting
from pipeline.domain.errors import ModelRejected, ModelUnavailable, SettingRejected

# Read by litellm while it is imported. Without the first it fetches a price list from the network
# (3 attempts with back-off); in its DEV mode it loads any `.env` it finds into the environment.
# Source: litellm 1.106 litellm_core_utils/get_model_cost_map.py, __init__.py
_ENVIRONMENT = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS": "True",
    "LITELLM_MODE": "PRODUCTION",
}
_LOADING = threading.Lock()
# Loggers that quote prompts and answers: LiteLLM in its errors, openai at DEBUG.
_TALKATIVE = ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy", "openai")
# Maximum number of causes of an error that are read: LiteLLM wraps openai's, that httpx's.
MOST_CAUSES = 10
# LiteLLM reports permanent errors as HTTP 500: a missing key, an operation that the provider does
# not support, a loop of redirects.
_NO_KEY = re.compile(
    r"missing (credentials|\w+ api key)|api_key.{0,40}must be set|api[ _]key is required",
    re.IGNORECASE,
)
_CANNOT = re.compile(r"unsupported provider: \w+", re.IGNORECASE)


class LiteLLMClient:
    """Client of one model at one provider.

    If `api_base` is set, only the configured key is sent to it, never an OPENAI_API_KEY of the
    environment.
    """

    def __init__(self, remote: RemoteModel) -> None:
        self.model = remote.name
        self._remote = remote
        self._arguments: dict[str, Any] = {
            "model": remote.name,
            "api_base": remote.api_base,
            "api_key": remote.api_key or ("none" if remote.api_base else None),
            "max_retries": 0,
            "num_retries": 0,
        }

    async def litellm(self) -> Any:
        """The litellm module, imported without stopping the event loop."""
        return load() if _load.cache_info().currsize else await asyncio.to_thread(load)

    async def call(self, function: str, **arguments: Any) -> Any:
        """Call `litellm.<function>` and return its response.

        Errors: ModelUnavailable, ModelRejected (FormatRefused if it is about response_format).
        """
        litellm = await self.litellm()
        ask = getattr(litellm, function)
        return await retried(partial(self._once, ask, arguments), self._remote)

    async def _once(self, ask: Any, arguments: Mapping[str, Any], limit_s: float) -> Any:
        """One attempt within `limit_s` seconds. Errors: ModelUnavailable, ModelRejected."""
        try:
            async with asyncio.timeout(limit_s):
                return await ask(**self._arguments, **arguments, timeout=limit_s)
        except TimeoutError:
            raise ModelUnavailable(f"{self.model}: no answer within {limit_s:g} s") from None
        except importlib.import_module("openai").OpenAIError as error:
            raise translated(error, self._remote, str(arguments)) from None


def translated(
    error: Exception, remote: RemoteModel, sent: str = ""
) -> ModelUnavailable | ModelRejected:
    """The error of a failed call: the class and the HTTP status, because a text can repeat `sent`.

    A refused setting also quotes the provider: see refused_settings.py.
    """
    model = remote.name
    status: int | None = getattr(error, "status_code", None)
    text = f"{model}: {type(error).__name__}" + (f" (HTTP {status})" if status else "")
    if final := _no_outage(error, remote):
        return final
    words = _with_code(error) if status == 429 else str(error)
    if refused := refused_setting(remote, status, words, sent):
        return refused
    if status == 429:
        words = "" if "retryDelay" in sent else f"{error} {getattr(error, 'body', '')}"
        return Throttled(text, retry_after_s=retry_after_s(_headers(error), words, throttled=True))
    if status is None or status >= 500 or status in PASSING_STATUSES:
        return ModelUnavailable(text, retry_after_s=retry_after_s(_headers(error)))
    return rejection(status, str(error))(text)


def _no_outage(error: Exception, remote: RemoteModel) -> ModelUnavailable | ModelRejected | None:
    """The error, if it is one of those that LiteLLM reports as HTTP 500 although no retry helps."""
    model = remote.name
    if _NO_KEY.search(str(error)):
        return SettingRejected(f"{model}: no API key is set. Set {remote.setting}__API_KEY.")
    if any(type(cause).__name__ == "TooManyRedirects" for cause in _causes(error)):
        return SettingRejected(redirects(remote))
    if reports_unusable(getattr(error, "status_code", None), str(error)):
        return UnusableVectors(f"{model}: a vector without numbers")
    if getattr(error, "status_code", None) == 500 and _CANNOT.search(str(error)):
        return ModelRejected(f"{model}: LiteLLM knows no such service of this provider")
    return None


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error, and each error that it was raised for."""
    cause: BaseException | None = error
    for _ in range(MOST_CAUSES):
        if cause is None:
            return
        yield cause
        cause = cause.__cause__ or cause.__context__


def _with_code(error: Exception) -> str:
    """The text of an error with the provider's code, which LiteLLM leaves out of it."""
    body = getattr(error, "body", None)
    code = body.get("code") if isinstance(body, Mapping) else None
    return f"{error} {code}" if isinstance(code, str) else str(error)


def _headers(error: Exception) -> Mapping[str, str]:
    headers = getattr(getattr(error, "response", None), "headers", None)
    headers = headers or getattr(error, "litellm_response_headers", None) or {}
    return {str(name).lower(): str(value) for name, value in headers.items()}


def load() -> Any:
    """Import litellm, silence its loggers and load its lazy parts.

    Slow the first time: do not call it in an event loop. Only one thread imports; others wait.
    """
    with _LOADING:
        return _load()


@cache
def _load() -> Any:
    """Import litellm once, with its environment set, and make one mock call."""
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)  # noqa: TID251 (litellm's own, not ours)
    with _collector_paused():
        litellm: Any = importlib.import_module("litellm")
        litellm.suppress_debug_info = True
        litellm.drop_params = True
        for name in _TALKATIVE:
            logging.getLogger(name).setLevel(logging.CRITICAL)
        # The first call imports 470 more modules (0.37 s): a call without a network does it here.
        importlib.import_module("openai.resources")
        turn = {"role": "user", "content": "-"}
        litellm.completion(model="openai/warm-up", messages=[turn], mock_response="-")
    return litellm


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Pause the garbage collector during an import, and exclude the imported objects later.

    Measured (litellm 1.106, 2 cores): import 2.3 -> 1.5 CPU s; longest stall of other threads
    0.17 -> 0.015 s; every later full collection 0.2 s -> below 1 ms.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        if was_enabled:
            gc.enable()
