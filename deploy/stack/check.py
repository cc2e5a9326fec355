"""python -m deploy.stack.check REPORT: check that the configured servers and models answer.

It runs while the stack's own servers start, and only if a setting names another server or model. A
setting that cannot work is an error; a failure that may pass is a warning.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx
from kombu.exceptions import KombuError
from sqlalchemy import text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import SQLAlchemyError

from deploy.stack.journal import Report
from deploy.stack.layout import write_private
from pipeline import bootstrap, settings
from pipeline.adapters import litellm_check
from pipeline.adapters.openai_http import PROVIDER as OPENAI
from pipeline.domain.errors import MemlaneError, ModelUnavailable, SettingRejected
from pipeline.ledger.engine import connect
from pipeline.model_settings import NO_MODEL, ModelSettings
from pipeline.settings import Settings
from workers.app import make_app

WITHIN_S = 6.0
CALL_WITHIN_S = 20.0  # a model on a CPU takes seconds for its first token
NO_PROVIDER = (
    "LiteLLM knows no such provider. Write provider/model, for example openai/gpt-4o-mini."
)
ADDS_WAIT = "Until it answers, adds are accepted and wait."


async def check(configured: Settings) -> Report:
    """Run all checks at the same time; each takes a few seconds at most."""
    reports = await asyncio.gather(*(probe(configured) for probe in CHECKS.values()))
    return _joined(reports)


def _joined(reports: Sequence[Report]) -> Report:
    """All lines of these reports."""
    return Report(
        refused=[line for report in reports for line in report.refused],
        warnings=[line for report in reports for line in report.warnings],
    )


async def check_llm(configured: Settings) -> Report:
    """Check the settings of the language model and of its fallbacks."""
    first, *fallbacks = configured.llm.chain
    reports = [await _model("MEMLANE_LLM__{}", first)]
    reports += [await _model("MEMLANE_LLM__FALLBACKS", model) for model in fallbacks]
    return _joined(reports)


async def call_llm(configured: Settings) -> Report:
    """Check the language model and its fallbacks, with one call of one token to each remote one."""
    first, *fallbacks = configured.llm.chain
    reports = [await _answering("MEMLANE_LLM__{}", first)]
    reports += [await _answering("MEMLANE_LLM__FALLBACKS", model) for model in fallbacks]
    return _joined(reports)


async def _answering(setting: str, model: ModelSettings) -> Report:
    """Check one model with a call, unless its settings are wrong already."""
    report = await _model(setting, model)
    if report.warnings and model.model.startswith(OPENAI) and not _base_of(model):
        return Report(refused=report.warnings)  # without a key every call is refused
    if report.refused or report.warnings or model.model.startswith("local/"):
        return report
    named = f"{setting.format('MODEL')}={model.model}"
    chat = bootstrap.build_chat(model, setting=setting.removesuffix("__{}"))
    try:
        async with asyncio.timeout(CALL_WITHIN_S):
            await chat.ping()
    except (TimeoutError, MemlaneError) as error:
        return _failed_call(named, model, error)
    finally:
        await chat.close()
    return Report()


def _base_of(model: ModelSettings) -> str | None:
    """The configured address of an OpenAI model, which may need no key; None: OpenAI's own."""
    return model.api_base or settings.openai_environment().api_base


def _failed_call(named: str, model: ModelSettings, error: Exception) -> Report:
    """The report of a failed call: a warning if the model may answer later, else a refusal."""
    reason = str(error).removeprefix(f"{model.model}: ") or "no answer in time"
    outage = isinstance(error, TimeoutError | ModelUnavailable)
    if outage and not isinstance(error, SettingRejected):
        return Report(warnings=[f"{named}: {reason}. {ADDS_WAIT}"])
    return Report(refused=[f"{named}: {reason}"])


async def _server(name: str, url: Any, answer: Callable[[str], Awaitable[None]]) -> Report:
    """Refuse a setting whose server does not answer."""
    if url is None:
        return Report()
    plain = url if isinstance(url, str) else url.get_secret_value()
    try:
        async with asyncio.timeout(WITHIN_S):
            await answer(plain)
    except TimeoutError:
        reason = f"no answer within {WITHIN_S:g} s"
    except (OSError, SQLAlchemyError, httpx.HTTPError, httpx.InvalidURL, KombuError) as error:
        reason = _first_line(error)
    except (ValueError, KeyError, ImportError) as error:
        reason = f"not a URL that can be used here ({type(error).__name__})"
    else:
        return Report()
    return Report(refused=[f"MEMLANE_{name}{_place(plain)}: {reason}"])


def _place(url: str) -> str:
    """Host and port of a URL, for messages: the rest may be secret."""
    with contextlib.suppress(ValueError, SQLAlchemyError):
        parts = make_url(url) if "://" in url else None
        if parts is not None and parts.host:
            return f" ({parts.host}" + (f":{parts.port})" if parts.port else ")")
    return ""


def _first_line(error: Exception) -> str:
    cause = error.__cause__ if isinstance(error, SQLAlchemyError) else None
    return (str(cause or error) or type(error).__name__).splitlines()[0]


async def _database(url: str) -> None:
    engine = connect(url, pool_size=1, name="memlane check")
    try:
        async with engine.connect() as connection:
            await connection.execute(text("SELECT 1"))
    finally:
        await engine.dispose()


async def _broker(configured: Settings) -> None:
    def ask() -> None:
        with make_app(configured).connection_for_write(connect_timeout=WITHIN_S) as connection:
            try:
                connection.ensure_connection(max_retries=1, interval_start=0.5)
            except (*connection.connection_errors, *connection.channel_errors) as error:
                raise OSError(_first_line(error)) from None

    await asyncio.to_thread(ask)


async def _http(url: str) -> None:
    async with httpx.AsyncClient(timeout=WITHIN_S) as client:
        await client.get(url)


async def _model(setting: str, model: ModelSettings) -> Report:
    """Check provider, address and key of a model, without a paid call.

    `setting`: the variable, with a place for MODEL, API_BASE or API_KEY unless it has all of them.
    """
    named = f"{setting.format('MODEL')}={model.model}"
    if model.model.startswith("local/") or model.model == NO_MODEL:
        return Report()
    if (problem := await _address_problem(setting, model)) is not None:
        return problem
    has_key = model.api_base or model.api_key  # a server of one's own may need none
    keys = [] if has_key else litellm_check.missing_keys(model.model)
    if not keys:
        return Report()
    names = f"{setting.format('API_KEY')} or {', '.join(keys)}"
    return Report(warnings=[f"{named}: no key. Set {names}, unless this provider needs none here."])


async def _address_problem(setting: str, model: ModelSettings) -> Report | None:
    """The report of an unknown provider, or of an address at which nothing answers; else None."""
    if not await asyncio.to_thread(litellm_check.has_provider, model.model, model.api_base):
        return Report(refused=[f"{setting.format('MODEL')}={model.model}: {NO_PROVIDER}"])
    if model.api_base:
        try:
            await _http(model.api_base)  # any status is an answer
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            where = f"{setting.format('API_BASE')}{_place(model.api_base)}"
            return Report(warnings=[f"{where}: {_first_line(error)}. {ADDS_WAIT}"])
    return None


async def check_embedder(configured: Settings) -> Report:
    """Embed one text. A failure is only a warning: adds wait until the embedder answers."""
    model = configured.embedder
    if model.model.startswith("local/"):
        return Report()
    if (problem := await _address_problem("MEMLANE_EMBEDDER__{}", model)) is not None:
        return problem
    embedder = bootstrap.build_embedder(model)
    try:
        async with asyncio.timeout(WITHIN_S * 2):
            await embedder.embed(["check"])
    except (TimeoutError, MemlaneError) as error:
        return _failed_call(f"MEMLANE_EMBEDDER__MODEL={model.model}", model, error)
    finally:
        await embedder.close()
    return Report()


# Each check passes if its setting is not set.
CHECKS: Mapping[str, Callable[[Settings], Awaitable[Report]]] = {
    "database": lambda configured: _server("DATABASE_URL", configured.database_url, _database),
    "broker": lambda configured: _server(
        "BROKER_URL", configured.broker_url, lambda _: _broker(configured)
    ),
    "chroma": lambda configured: _server("CHROMA_URL", configured.chroma_url, _http),
    "qdrant": lambda configured: _server("QDRANT_URL", configured.qdrant_url, _http),
    "llm": check_llm,
    "reranker": lambda configured: _model("MEMLANE_RERANKER__{}", configured.reranker),
    "embedder": check_embedder,
}


def main() -> None:
    """Check every configured server and write the report to a file."""
    report = asyncio.run(check(settings.load()))  # noqa: TID251  a separate process
    write_private(Path(sys.argv[1]), report.model_dump_json())


if __name__ == "__main__":
    main()
