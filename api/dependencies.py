"""The services of the API process, as a dependency of routes. The caller: see api.auth.tenant."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Depends, Request

from api.access_log import AccessLog
from api.auth.key_cache import KeyRing
from api.backpressure import Backpressure
from api.console.shared_part import SharedFrames, SharedPart
from api.events.watch import EventWatch
from api.http.streams import (
    EXPORTS_TOO_MUCH,
    FOLLOWS_TOO_MANY,
    FOLLOWS_TOO_MANY_EVENTS,
    MOST_CONSOLE_STREAMS,
    MOST_EVENT_STREAMS,
    MOST_EXPORTS,
    StreamLimit,
)
from api.search.read_sample import ReadSample
from api.system.figures import Figures
from pipeline import bootstrap
from pipeline.bootstrap import Stores
from pipeline.domain.errors import (
    ModelUnavailable,
    SettingRejected,
    StoreUnavailable,
    TransientError,
)
from pipeline.ledger.failures import LedgerUnavailable
from pipeline.model_settings import ModelSettings
from pipeline.ports import Dispatcher, Reranker
from pipeline.search.concurrency import ConcurrencyLimit
from pipeline.settings import Settings
from pipeline.stores import Ledger
from pipeline.tenants.api_keys import Grant
from pipeline.tenants.projects import Project

PING_S = 2.0
# Longer than the 12 s in which a group of adds is written or fails.
STUCK_S = 20.0


@dataclass(frozen=True, slots=True)
class Api:
    """The services that routes use; one for each process."""

    settings: Settings
    stores: Stores
    dispatcher: Dispatcher
    keys: KeyRing
    watch: EventWatch
    backpressure: Backpressure
    figures: Figures
    accesses: AccessLog
    reads: ReadSample
    reranker: Reranker | None = None
    concurrency_limit: ConcurrencyLimit = field(default_factory=ConcurrencyLimit)
    live: SharedPart = field(default_factory=SharedPart)
    event_frames: SharedFrames = field(default_factory=SharedFrames)
    event_streams: StreamLimit = field(
        default_factory=lambda: StreamLimit(MOST_EVENT_STREAMS, FOLLOWS_TOO_MANY_EVENTS)
    )
    console_streams: StreamLimit = field(
        default_factory=lambda: StreamLimit(MOST_CONSOLE_STREAMS, FOLLOWS_TOO_MANY)
    )
    exports: StreamLimit = field(
        default_factory=lambda: StreamLimit(MOST_EXPORTS, EXPORTS_TOO_MUCH)
    )
    # Load of the local embedder, from the first request with a key on.
    warming: list[asyncio.Task[None]] = field(default_factory=list)

    def in_use(self) -> None:
        """Start to load the local embedder, once: the first search should not wait for it."""
        if not self.warming:
            self.warming.append(asyncio.create_task(bootstrap.warm_embedder(self.stores.embedder)))

    async def health(self) -> dict[str, str]:
        """State of each store and the model: `ok`, the name of the error, or LLM_REJECTED.

        A ledger that only reads is DiskFull or ReadOnly.

        A remote embedder is named too.
        """
        pings = {
            "ledger": self._check_ledger,
            "vectors": self.stores.vectors.ping,
            "model": lambda: self._check_models(*self.settings.llm.chain),
        }
        if not self.settings.embedder.model.startswith("local/"):
            pings["embedder"] = lambda: self._check_models(self.settings.embedder)
        if self.stores.mirroring is not None:
            pings["graph"] = self.stores.mirroring.mirror.ping
        return {name: await _state(ping) for name, ping in pings.items()}

    async def _check_ledger(self) -> None:
        """Ping the ledger.

        Errors: as `Ledger.ping`; LedgerUnavailable if its disk was full at the last add, or is
        full; StoreUnavailable if adds are not written.
        """
        await self.stores.ledger.ping()
        adds = self.stores.ledger.group_commit
        if (error := adds.disk_full(STUCK_S)) is not None:
            raise error
        await self.stores.ledger.disk_space.require()
        if adds.waited_s > STUCK_S:
            raise StoreUnavailable("adds are not written")

    async def _check_models(self, *models: ModelSettings) -> None:
        """Check the circuit breakers of a model and its fallbacks: a call would cost money.

        Errors: SettingRejected if the provider refuses the first model's key or name; else
        ModelUnavailable if all circuits are open.
        """
        failures = [await self.stores.ledger.circuits.failure(model.model) for model in models]
        first = failures[0]
        if first is not None and first.rejected:
            raise SettingRejected(f"{models[0].model} is refused.")
        if all(failure is not None and failure.is_open for failure in failures):
            raise ModelUnavailable(f"{models[0].model} does not answer.")


async def _state(ping: Callable[[], Awaitable[None]]) -> str:
    try:
        async with asyncio.timeout(PING_S):
            await ping()
    except SettingRejected as error:
        return error.code
    except LedgerUnavailable as error:
        return error.refuses_writes or type(error).__name__
    except (TransientError, TimeoutError) as error:
        return type(error).__name__
    return "ok"


@dataclass(frozen=True, slots=True)
class ApiCall:
    """A request with a key: the services, the grant of the key, and the project that it is about.

    The project is that of the key; of an administration, the one named in path, query or body.
    """

    api: Api
    grant: Grant
    project: Project

    @property
    def ledger(self) -> Ledger:
        """The stores of the ledger."""
        return self.api.stores.ledger


async def api_of(request: Request) -> Api:
    """The services of this process."""
    api: Api = request.app.state.api
    return api


Given = Annotated[Api, Depends(api_of)]
