"""The composition root: chooses adapters and passes settings to everything below an entry point."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial

from pydantic import SecretStr

from pipeline import tracing
from pipeline.adapters.embedder_cached import CachedEmbedder
from pipeline.adapters.embedder_minilm import MiniLM
from pipeline.adapters.embedder_openai import OpenAIEmbedder
from pipeline.adapters.llm_json import JsonLLM
from pipeline.adapters.model_rules import RulesModel
from pipeline.adapters.openai_http import PROVIDER as OPENAI_COMPATIBLE
from pipeline.adapters.provider_calls import RemoteModel
from pipeline.adapters.vectors_chroma import ChromaVectors
from pipeline.adapters.vectors_pgvector import Pgvector
from pipeline.domain.errors import InvalidInput, StoreUnavailable
from pipeline.domain.summaries import SummaryAfter
from pipeline.events.notifications import EndNotifications, Receiver
from pipeline.events.retention import Retention
from pipeline.graph.mirror import Mirroring
from pipeline.graph.path_search import LedgerPathSearch, MirroredPathSearch
from pipeline.graph.store import Graph
from pipeline.ingest.services import Services
from pipeline.lanes.load import LoadView
from pipeline.lanes.store import Lanes
from pipeline.ledger.engine import ADDS, LONG, connect
from pipeline.ledger.failures import LedgerUnavailable
from pipeline.model_settings import MINILM, NO_MODEL, RULES, LLMSettings, ModelSettings
from pipeline.models.circuit_breaker import GuardedEmbedder, GuardedModel, GuardedReranker
from pipeline.models.circuits import Circuits
from pipeline.models.fallbacks import FallbackModel
from pipeline.models.measured import MeasuredEmbedder, MeasuredModel
from pipeline.models.override import ModelFactory
from pipeline.models.prompted import PromptedModel
from pipeline.models.vector_length import LengthChecked
from pipeline.ports import (
    CompactableStore,
    Embedder,
    MemoryModel,
    Reranker,
    VectorStore,
    WebhookSender,
)
from pipeline.seals.keys import SealKeys
from pipeline.settings import Settings, openai_environment
from pipeline.startup import required
from pipeline.stores import Ledger, Pools
from pipeline.vector_index.compaction import Compaction
from pipeline.vector_index.index import VectorIndex
from pipeline.vector_index.projector import Projector
from pipeline.webhooks.delivery import WebhookDelivery
from pipeline.webhooks.sender_on_demand import SenderOnDemand
from pipeline.webhooks.store import Webhooks

# Seconds that a worker collects stale vectors before it writes them, so that a collection gets one
# request instead of one for each event. Must be well below the delay of the sweeper's repair.
GATHER_S = 20.0
# In addition to MEMLANE_DATABASE_POOL, opened on demand.
ADDS_CONNECTIONS = LONG_CONNECTIONS = 4
# A budget reads the costs of up to a month.
MONTH_DAYS = 32
# Groups of settings of the models, for errors.
LLM, EMBEDDER, RERANKER = "MEMLANE_LLM", "MEMLANE_EMBEDDER", "MEMLANE_RERANKER"


@dataclass(frozen=True, slots=True)
class Stores:
    """The ledger, the vector store and the embedder, as the API and the workers use them.

    `index` is the index of memories; `turns` that of turns, or None if turns are not embedded.
    `mirroring`: None without a graph server. `compaction`: None if the vector store needs none.
    """

    ledger: Ledger
    vectors: VectorStore
    embedder: Embedder
    index: VectorIndex
    turns: VectorIndex | None
    mirroring: Mirroring | None = None
    compaction: Compaction | None = None

    @property
    def indexes(self) -> list[VectorIndex]:
        """All vector indexes that are in use."""
        return [self.index, self.turns] if self.turns else [self.index]

    async def heal(self) -> None:
        """Find vectors that the store lost, after a wipe or a restore, and mark them stale.

        Likewise for the graph server. Errors: StoreUnavailable; a part that fails stops no other
        one.
        """
        failure: StoreUnavailable | None = None
        for part in (part for index in self.indexes for part in (index.heal, index.large.check)):
            try:
                await part()
            except StoreUnavailable as error:
                failure = error
        if self.mirroring:
            await self.mirroring.heal()
        if failure is not None:
            raise failure

    async def fill_large(self) -> None:
        """Fill the requested own collections of large scopes."""
        for index in self.indexes:
            await index.fill_large()

    async def compact(self) -> None:
        """Compact the collections that have more deleted records than others."""
        if self.compaction:
            await self.compaction.run()

    async def close(self) -> None:
        """Close all connections."""
        await self.vectors.close()
        await self.embedder.close()
        if self.mirroring:
            await self.mirroring.close()
        await self.ledger.close()


def stores(settings: Settings, *, name: str = "memlane") -> Stores:
    """Build the stores. `name`: name of the connections in pg_stat_activity."""
    ledger = build_ledger(settings, name)
    mirroring = build_mirroring(settings, ledger)
    if mirroring:
        walks = LedgerPathSearch(ledger.engine)
        mirrored = MirroredPathSearch(mirroring.mirror, mirroring.outbox, walks)
        ledger.graph = Graph(ledger.engine, mirrored)
    vectors = build_vectors(settings, ledger)
    embedder = MeasuredEmbedder(build_embedder(settings.embedder, ledger))
    index = VectorIndex(
        vectors,
        ledger.memory_vectors,
        embedder,
        buckets=settings.buckets,
        own_rows=settings.own_collection_rows,
    )
    turns = index.of(ledger.turn_vectors) if settings.turn_vectors == "on" else None
    compaction = (
        Compaction(vectors, ledger.memory_vectors.compactions)
        if isinstance(vectors, CompactableStore)
        else None
    )
    return Stores(ledger, vectors, embedder, index, turns, mirroring, compaction)


def services(settings: Settings, built: Stores) -> Services:
    """Build everything that the stages use, on top of the stores."""
    allowed = settings.replay_models
    return Services(
        ledger=built.ledger,
        model=build_llm(settings.llm, built.ledger.circuits),
        embedder=built.embedder,
        index=built.index,
        projector=Projector(built.index, gather_s=GATHER_S),
        turn_projector=Projector(built.turns, gather_s=GATHER_S) if built.turns else None,
        graph=settings.graph == "on",
        neighbours=settings.neighbours,
        retire_share=settings.retire_share,
        max_attempts=settings.max_attempts,
        outage_budget_s=settings.outage_budget_s,
        summary_after=build_summary_after(settings),
        model_factory=ModelFactory.of(
            lambda name: build_model(settings.llm.named(name, allowed), built.ledger.circuits),
            lambda name: build_embedder(settings.embedder.named(name, allowed), built.ledger),
        ),
    )


def build_summary_after(settings: Settings) -> SummaryAfter | None:
    """Messages after which a summary is due; None if there are none, as with the rules."""
    if settings.llm.model == RULES or not settings.summary_messages:
        return None
    return SummaryAfter(settings.summary_messages, settings.summary_tokens)


def build_webhook_sender(settings: Settings) -> WebhookSender:
    """The HTTP client of webhooks. The caller closes it."""
    # Imported on demand: httpx takes 7 MB of a process that may never deliver a webhook.
    from pipeline.adapters.sender_httpx import HttpSender  # noqa: PLC0415

    private = settings.webhook_private == "on"
    return HttpSender(timeout_s=settings.webhook_timeout_s, private=private)


def build_webhook_delivery(
    settings: Settings, webhooks: Webhooks
) -> tuple[WebhookDelivery, SenderOnDemand]:
    """The delivery of webhooks and its HTTP sender; the caller closes the sender."""
    sender = SenderOnDemand(partial(build_webhook_sender, settings))
    webhook_delivery = WebhookDelivery(
        webhooks,
        sender,
        tries=settings.webhook_tries,
        first_retry_s=settings.webhook_first_retry_s,
        lease=timedelta(seconds=2 * settings.webhook_timeout_s),
    )
    return webhook_delivery, sender


def build_ledger(settings: Settings, name: str) -> Ledger:
    """Build all stores of the ledger with their pools. `name`: as in `stores`.

    Errors: InvalidInput if MEMLANE_DATABASE_URL is not set.
    """
    url = required(settings.database_url, "database_url")
    engine = connect(url, pool_size=settings.database_pool, name=name)
    lanes = Lanes(
        engine,
        lease_s=settings.lease_s,
        queued_grace_s=settings.queued_grace_s,
        batch_events=settings.batch_events,
        batch_tokens=settings.batch_tokens,
        context_messages=settings.context_messages,
    )
    adds = connect(url, pool_size=ADDS_CONNECTIONS, name=name, limits=ADDS)
    long = connect(url, pool_size=LONG_CONNECTIONS, name=name, limits=LONG)
    pools = Pools(engine, long, adds, verifying=connect(url, pool_size=1, name=name))
    return Ledger(
        pools,
        lanes,
        answers_for=timedelta(hours=settings.dry_run_hours),
        seal_keys=SealKeys([key.encode() for key in settings.seal_keys]),
        checkpoint_every=timedelta(seconds=settings.seal_head_s),
    )


def build_end_notifications(settings: Settings, receiver: Receiver) -> EndNotifications:
    """Notifications of ended events, on one more connection of this process."""
    url = required(settings.database_url, "database_url")
    return EndNotifications(connect(url, pool_size=1), receiver)


def build_vectors(settings: Settings, ledger: Ledger) -> VectorStore:
    """The configured vector store. Errors: InvalidInput if its URL is not set."""
    match settings.vectors:
        case "chroma":
            return ChromaVectors(required(settings.chroma_url, "chroma_url"))
        case "pgvector":
            return Pgvector(ledger.engine)
        case "qdrant":
            # Imported on demand, as httpx in `build_webhook_sender`.
            from pipeline.adapters.vectors_qdrant import Qdrant  # noqa: PLC0415

            url = required(settings.qdrant_url, "qdrant_url")
            return Qdrant(url, api_key=_secret(settings.qdrant_api_key))


def build_mirroring(settings: Settings, ledger: Ledger) -> Mirroring | None:
    """The configured graph server; None if the graph is in the ledger only.

    Errors: InvalidInput if its URL is not set, or its driver is not installed.
    """
    if settings.graph_store != "bolt":
        return None
    try:
        # Imported on demand: an optional dependency.
        from pipeline.adapters.graph_bolt import BoltGraph  # noqa: PLC0415
    except ImportError as error:
        raise InvalidInput("MEMLANE_GRAPH_STORE=bolt needs `pip install memlane[bolt]`.") from error
    server = BoltGraph(
        required(settings.bolt_url, "bolt_url"),
        user=settings.bolt_user,
        password=_secret(settings.bolt_password),
        database=settings.bolt_database,
        timeout_s=settings.bolt_timeout_s,
    )
    return Mirroring(server, ledger.graph_outbox)


def build_retention(settings: Settings, ledger: Ledger) -> Retention:
    """Deletion of rows after the configured lifetimes."""
    days = settings.retention_days
    usage_days = max(settings.usage_days, MONTH_DAYS) if settings.usage_days else None
    return Retention(
        ledger.pools.long,
        keys_for=timedelta(hours=settings.idempotency_hours),
        outputs_for=timedelta(days=days) if days else None,
        audit_for=timedelta(days=settings.audit_days) if settings.audit_days else None,
        reads_for=timedelta(days=settings.search_sample_days),
        usage_for=timedelta(days=usage_days) if usage_days else None,
        profiles_for=timedelta(days=settings.profile_days) if settings.profile_days else None,
        states_for=timedelta(days=settings.past_state_days) if settings.past_state_days else None,
        erased_for=timedelta(days=settings.erasure_days) if settings.erasure_days else None,
    )


def build_llm(settings: LLMSettings, circuits: Circuits) -> MemoryModel:
    """The configured language model with its fallbacks. Errors: as `build_model`."""
    models = [
        build_model(model, circuits, setting=f"{LLM}__FALLBACKS" if number else LLM)
        for number, model in enumerate(settings.chain)
    ]
    return FallbackModel(models) if len(models) > 1 else models[0]


def build_model(settings: ModelSettings, circuits: Circuits, *, setting: str = LLM) -> MemoryModel:
    """One language model; a remote one has metrics and a circuit breaker.

    `setting`: the name of these settings, for errors.

    Errors: InvalidInput for an unknown local model.
    """
    if settings.model == RULES:
        return RulesModel()
    if settings.model.startswith("local/"):
        raise InvalidInput(f"{settings.model}: the only local model is {RULES}.")
    llm = build_chat(settings, setting=setting)
    return GuardedModel(MeasuredModel(PromptedModel(llm)), circuits)


def build_chat(settings: ModelSettings, *, setting: str = LLM) -> JsonLLM:
    """The client of a remote language model."""
    # Imported on demand: LiteLLM costs memory and seconds of CPU that built-in models do not need.
    from pipeline.adapters.llm_litellm import LiteLLM  # noqa: PLC0415
    from pipeline.adapters.llm_openai import OpenAIChat  # noqa: PLC0415

    client = OpenAIChat if _speaks_openai(settings) else LiteLLM
    return client(_remote(settings, setting))


def build_embedder(settings: ModelSettings, ledger: Ledger | None = None) -> Embedder:
    """The configured embedder behind an LRU cache.

    With a ledger, a remote embedder also gets a circuit breaker, and its vectors are checked.
    Errors: InvalidInput for an unknown local model.
    """
    embedder = _uncached_embedder(settings)
    if ledger is not None and not settings.model.startswith("local/"):
        checked = LengthChecked(embedder, ledger.memory_vectors.length)
        embedder = GuardedEmbedder(checked, ledger.circuits)
    return CachedEmbedder(embedder)


def _uncached_embedder(settings: ModelSettings) -> Embedder:
    if settings.model == MINILM:
        return MiniLM()
    if settings.model.startswith("local/"):
        raise InvalidInput(f"{settings.model}: the only local embedder is {MINILM}.")
    if _speaks_openai(settings):
        return OpenAIEmbedder(_remote(settings, EMBEDDER))
    from pipeline.adapters.embedder_litellm import LiteLLMEmbedder  # noqa: PLC0415

    return LiteLLMEmbedder(_remote(settings, EMBEDDER))


def _remote(settings: ModelSettings, setting: str) -> RemoteModel:
    """Address of the model. The direct client uses the same OpenAI variables as LiteLLM.

    The key of the environment is not sent to a configured address.
    """
    remote = RemoteModel(
        settings.model,
        api_base=settings.api_base,
        api_key=_secret(settings.api_key),
        timeout_s=settings.timeout_s,
        setting=setting,
    )
    if not _speaks_openai(settings):
        return remote
    variables = openai_environment()
    return replace(
        remote,
        api_base=remote.api_base or variables.api_base,
        api_key=remote.api_key or (None if remote.api_base else variables.api_key),
        organization=variables.organization,
    )


def _speaks_openai(settings: ModelSettings) -> bool:
    """True if the model is called over plain HTTP: an `openai/` model with a base URL or a key."""
    given = settings.api_base or settings.api_key or openai_environment().api_key
    return bool(given) and settings.model.startswith(OPENAI_COMPATIBLE)


def build_reranker(settings: ModelSettings, circuits: Circuits | None = None) -> Reranker | None:
    """The configured reranker, or None: then results keep the order of the fusion.

    It gets a circuit breaker, if `circuits` is given, so that searches do not wait for a server
    that is down.
    Errors: InvalidInput for a local model, because there is none.
    """
    if settings.model == NO_MODEL:
        return None
    if settings.model.startswith("local/"):
        raise InvalidInput(f"{settings.model}: there is no local reranker.")
    from pipeline.adapters.reranker_litellm import LiteLLMReranker  # noqa: PLC0415

    reranker = LiteLLMReranker(_remote(settings, RERANKER))
    return GuardedReranker(reranker, circuits) if circuits is not None else reranker


def trace(settings: Settings, *, process: str) -> None:
    """Record the traces of this process, if `MEMLANE_TRACES_URL` is set. The SDK takes 9 MB."""
    if settings.traces_url is not None:
        from pipeline.adapters.traces_otlp import OtlpTracer, exporter_to  # noqa: PLC0415

        exporter = exporter_to(settings.traces_url, _pairs(settings.traces_headers))
        share, texts = settings.traces_share, settings.traces_texts == "on"
        tracing.use(OtlpTracer(exporter, process=process, share=share, texts=texts))


def _pairs(value: SecretStr | None) -> dict[str, str]:
    """A setting of the form `name=value,name=value`."""
    pairs = value.get_secret_value().split(",") if value else []
    return {name.strip(): text.strip() for name, _, text in (p.partition("=") for p in pairs)}


async def warm(*models: ModelSettings) -> None:
    """Load LiteLLM now, not during the first event or search, if one of these models needs it."""
    if any(_needs_litellm(settings) for settings in models):
        from pipeline.adapters import litellm_client  # noqa: PLC0415

        await asyncio.to_thread(litellm_client.load)


def _needs_litellm(settings: ModelSettings) -> bool:
    """True for a remote model that is not called over plain HTTP."""
    is_remote = not settings.model.startswith("local/") and settings.model != NO_MODEL
    return is_remote and not _speaks_openai(settings)


async def warm_embedder(embedder: Embedder) -> None:
    """Load the local embedder now. A process that is not used never loads it: it takes 90 MB."""
    if embedder.name == MINILM:  # a remote embedder may cost money
        await embedder.embed(["warm"])


async def warm_used_embedder(stores: Stores) -> None:
    """Load the local embedder at the start, if the installation is in use.

    Without events it takes memory that may never be used; then the first request or stage loads it.
    """
    with suppress(LedgerUnavailable):
        if await LoadView(stores.ledger.engine).is_used():
            await warm_embedder(stores.embedder)


def _secret(value: SecretStr | None) -> str | None:
    return value.get_secret_value() if value else None
