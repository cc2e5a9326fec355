"""python -m deploy.stack.check REPORT: do the servers and models of the settings answer?

Run beside the start of the stack's own servers, and only where a setting names something else than
these. What cannot work is refused by the setting's name; what may come back is a warning.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
from kombu.connection import Connection
from kombu.exceptions import KombuError
from sqlalchemy import text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import SQLAlchemyError

from deploy.stack.journal import Report
from deploy.stack.layout import write_private
from pipeline import bootstrap, settings
from pipeline.adapters import litellm_check
from pipeline.errors import MemlaneError, ModelUnavailable
from pipeline.ledger import connect
from pipeline.settings import NO_MODEL, ModelSettings, Settings

WITHIN_S = 6.0
NO_PROVIDER = (
    "LiteLLM knows no such provider. Write provider/model, for example openai/gpt-4o-mini."
)
MEANWHILE = "Until it answers, adds are accepted and wait."


async def check(configured: Settings) -> Report:
    """All checks at once, each within seconds."""
    report = Report()
    await asyncio.gather(
        _server(report, "DATABASE_URL", configured.database_url, _database),
        _server(report, "BROKER_URL", configured.broker_url, _broker),
        _server(report, "CHROMA_URL", configured.chroma_url, _http),
        _server(report, "QDRANT_URL", configured.qdrant_url, _http),
        _models(report, configured),
        _embedder(report, configured.embedder),
    )
    return report


async def _server(
    report: Report, name: str, url: Any, answer: Callable[[str], Awaitable[None]]
) -> None:
    if url is None:
        return
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
        return
    report.refused.append(f"MEMLANE_{name}{_place(plain)}: {reason}")


def _place(url: str) -> str:
    """Host and port, for the message: the rest of a URL may be secret."""
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


async def _broker(url: str) -> None:
    def ask() -> None:
        with Connection(url, connect_timeout=WITHIN_S) as connection:  # type: ignore[no-untyped-call]
            connection.ensure_connection(max_retries=1, interval_start=0.5)

    await asyncio.to_thread(ask)


async def _http(url: str) -> None:
    async with httpx.AsyncClient(timeout=WITHIN_S) as client:
        await client.get(url)


async def _models(report: Report, configured: Settings) -> None:
    for name in ("llm", "reranker"):
        model: ModelSettings = getattr(configured, name)
        if model.model.startswith("local/") or model.model == NO_MODEL:
            continue
        setting = f"MEMLANE_{name.upper()}"
        if not await asyncio.to_thread(litellm_check.has_provider, model.model, model.api_base):
            report.refused.append(f"{setting}__MODEL={model.model}: {NO_PROVIDER}")
        elif model.api_base:
            if reason := await _unreachable(model.api_base):
                where = f"{setting}__API_BASE{_place(model.api_base)}"
                report.warnings.append(f"{where}: {reason}. {MEANWHILE}")
        elif model.api_key is None and (keys := litellm_check.missing_keys(model.model)):
            report.warnings.append(
                f"{setting}__MODEL={model.model}: no key. Set {setting}__API_KEY or"
                f" {', '.join(keys)}, unless this provider needs none here."
            )


async def _unreachable(url: str) -> str | None:
    """Why nothing answers there; None where something does, whatever its status."""
    try:
        await _http(url)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return _first_line(error)
    return None


async def _embedder(report: Report, model: ModelSettings) -> None:
    """A text embedded. One that does not answer may come back: adds are kept until then."""
    if model.model.startswith("local/"):
        return
    setting = f"MEMLANE_EMBEDDER__MODEL={model.model}"
    if not await asyncio.to_thread(litellm_check.has_provider, model.model, model.api_base):
        report.refused.append(f"{setting}: {NO_PROVIDER}")
        return
    if model.api_base and (reason := await _unreachable(model.api_base)):
        where = f"MEMLANE_EMBEDDER__API_BASE{_place(model.api_base)}"
        report.warnings.append(f"{where}: {reason}. {MEANWHILE}")
        return
    embedder = bootstrap.build_embedder(model)
    try:
        async with asyncio.timeout(WITHIN_S * 2):
            await embedder.embed(["check"])
    except (TimeoutError, ModelUnavailable) as error:
        reason = str(error) or "no answer in time"
        report.warnings.append(f"{setting}: {reason}. {MEANWHILE}")
    except MemlaneError as error:
        report.refused.append(f"{setting}: {error}")
    finally:
        await embedder.close()


def main() -> None:
    report = asyncio.run(check(settings.load()))  # noqa: TID251  a process of its own, no worker
    write_private(Path(sys.argv[1]), report.model_dump_json())


if __name__ == "__main__":
    main()
