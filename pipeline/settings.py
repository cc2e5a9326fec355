"""All settings. The environment variable is `MEMLANE_` and the field's name, `__` between levels.

The commands of the local stack add the variables of `MEMLANE_DATA_DIR/env` to their environment
first: see deploy/stack/saved_settings.py.

The text below a field is its entry in docs/reference/settings.md, which `python -m deploy.docs`
writes. A process does not start with an unknown variable that begins with MEMLANE_.
"""

from __future__ import annotations

import difflib
import ipaddress
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    BeforeValidator,
    Field,
    SecretStr,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict, SettingsError

from pipeline.domain.errors import InvalidInput
from pipeline.model_settings import (
    MINILM,
    NO_MODEL,
    RULES,
    LLMSettings,
    ModelSettings,
    without_space,
    words_of,
)
from pipeline.search.ranking import calibration
from pipeline.search.weights import Weights

PREFIX = "MEMLANE_"
# Stages at once of a worker that waits for models, and of one that computes: they delay each other.
WAITING_STAGES, COMPUTING_STAGES = 100, 8
SEAL_KEYS = ("seal_key", "seal_keys_old")
BROKER_SCHEMES = ("redis", "rediss", "sentinel", "amqp", "amqps")


def default_api_processes() -> int:
    """Half the number of cores, at least 2 and at most 4; 1 on a single core."""
    cores = os.cpu_count() or 1
    return min(cores, max(2, min(cores // 2, 4)))


def default_workers() -> int:
    """Number of cores, at most 8."""
    return min(os.cpu_count() or 1, 8)


def _names(value: object) -> object:
    """The names in a text such as `a, b`; any value that is not a string is returned unchanged."""
    return words_of(value) if isinstance(value, str) else value


class Settings(BaseSettings):
    """All settings of a process, read from its environment. They do not change while it runs."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_nested_delimiter="__",
        env_ignore_empty=True,
        # With only MEMLANE_LLM__API_KEY set, the default model stays.
        nested_model_default_partial_update=True,
        frozen=True,
        # An error of several settings together would show their values, which may be secret.
        hide_input_in_errors=True,
    )

    # ── Local stack ──
    data_dir: Path = Path(".memlane")
    """Folder of the local stack: `env` (these settings, mode 600), `api_key` (mode 600), `logs/`,
    `run/*.pid` and the data of its servers.
    """
    host: str = "127.0.0.1"
    """Address that the API binds."""
    port: Annotated[int, Field(ge=1, le=65535)] = 8000
    """Port of the API. The other services take free ports on 127.0.0.1."""
    api_processes: Annotated[int, Field(ge=1, le=64)] = Field(default_factory=default_api_processes)
    """API processes of the local stack, which share the port. One process uses one core and about
    300 MB. By default one starts, and the others once it is busy. A number that is set starts at
    once.
    """
    workers: Annotated[int, Field(ge=1, le=64)] = Field(default_factory=default_workers)
    """Worker processes of the local stack. One worker uses one core and about 300 MB."""
    worker_concurrency: Annotated[int, Field(ge=1, le=500)] | None = None
    """Maximum number of stages that one worker runs at the same time. Default: 100, because most
    stages wait for a model; 8 if model and embedder are both `local/…`, because stages that compute
    only delay each other.
    """
    low_share: Annotated[float, Field(gt=0, le=1)] = 0.25
    """Largest share of these stages that a worker gives to events of low priority, such as an
    import; a tenth of it while there are other events.
    """

    # ── Servers ──
    database_url: SecretStr | None = None
    """PostgreSQL 15 or newer. Without it the local stack starts its own server."""
    broker_url: SecretStr | None = None
    """Broker of the hints: `redis://` or `rediss://` (Redis, Valkey), `sentinel://` (Redis
    Sentinel), `amqp://` or `amqps://` (RabbitMQ); see [Brokers](../howto/production.md#brokers).
    Without it the local stack starts its own Valkey server.
    """
    broker_ca: Path | None = None
    """File with the certificates that sign the certificate of a `rediss://` or `amqps://` broker.
    Default: those of the system.
    """
    broker_sentinel_master: str | None = None
    """Name under which Sentinel knows the Redis servers; required with `sentinel://`."""
    broker_sentinel_password: SecretStr | None = None
    """Password of the Sentinel processes themselves. That of the Redis servers is in
    `MEMLANE_BROKER_URL`.
    """
    chroma_url: str | None = None
    """Chroma server. Without it the local stack starts its own."""
    qdrant_url: str | None = None
    """Qdrant server, 1.16 or newer; required with `MEMLANE_VECTORS=qdrant`."""
    qdrant_api_key: SecretStr | None = None
    """API key of the Qdrant server."""
    bolt_url: str | None = None
    """Graph server, such as `neo4j://graph:7687`; required with `MEMLANE_GRAPH_STORE=bolt`."""
    bolt_user: str | None = None
    """User of the graph server. Without it no credentials are sent."""
    bolt_password: SecretStr | None = None
    """Password of the graph server."""
    bolt_database: str | None = None
    """Database of the graph server. Default: the server's default database."""
    bolt_timeout_s: Annotated[float, Field(gt=0)] = 5.0
    """Timeout of a connection to the graph server and of a transaction there, in seconds."""
    searches_at_once: Annotated[int, Field(ge=1)] | None = None
    """Maximum number of searches that one API process computes at the same time; further ones
    queue. Default: no limit where PostgreSQL is external, else three for each core, divided by the
    number of API processes (two with pgvector, which computes inside PostgreSQL).
    """
    database_pool: Annotated[int, Field(ge=1, le=200)] = 16
    """Connections in the pool of one process. Up to 9 more are opened under load: 4 for adds only,
    4 for undo, erasure and replays, and one for verifications of seals. The API keeps one more to
    listen for ended events. While several projects send requests, each uses a quarter of a pool, at
    least 2. With PgBouncer see [Connection poolers](../howto/production.md#connection-poolers).
    """

    # ── Vectors ──
    vectors: Literal["chroma", "pgvector", "qdrant"] = "chroma"
    """Vector store. Changing it requires `make reindex`; see [Vector stores](../howto/vectors.md).
    """
    vector_buckets: Annotated[int, Field(ge=1, le=1024)] = 64
    """Number of Chroma collections that the vectors are spread over. Changing it requires `make
    reindex`.
    """
    own_collection_rows: Annotated[int, Field(ge=0)] = 3_000
    """Number of memories, or of turns, from which a scope that is read has a collection of them
    beside the buckets; 0: no scope has one. See [Large scopes](../howto/vectors.md#large-scopes).
    """
    turn_vectors: Literal["on", "off"] = "on"
    """`off`: turns are not embedded; a search finds them by their words only. After switching it on
    again, the turns stored in between are embedded in the background.
    """

    # ── Models ──
    llm: LLMSettings = LLMSettings(model=RULES)
    """Language model of extract, consolidate and relate."""
    embedder: ModelSettings = ModelSettings(model=MINILM)
    """Embedding model. Changing it requires `make reindex`."""
    reranker: ModelSettings = ModelSettings(model=NO_MODEL, timeout_s=5.0)
    """Reranker of searches with `rerank`, such as `cohere/rerank-v3.5`. Its timeout includes a
    second attempt.
    """
    graph: Literal["on", "off"] = "on"
    """`off`: no relate stage, so no entities and relations."""
    graph_store: Literal["postgresql", "bolt"] = "postgresql"
    """Store in which searches follow relations. `bolt`: a graph server that mirrors the ledger's
    graph, such as Neo4j or Memgraph; needs `memlane[bolt]`. See
    [Graph stores](../howto/graph-stores.md).
    """
    replay_models: Annotated[tuple[str, ...], NoDecode, BeforeValidator(_names)] = ()
    """Models that a replay may name beside the configured ones: exact names of the same provider,
    separated by commas.
    """

    # ── Search ──
    search: Weights = Weights()
    """Weights of the terms of a search score."""
    semantic_scale: str | None = None
    """Maps cosine similarity to semantic score, as increasing pairs: `0.1:0.3,0.5:0.7` maps a
    cosine of 0.1 to a score of 0.3. Built in for `local/minilm`. Set it for an embedder whose good
    answers have cosines on another scale than thresholds of 0.1 to 0.3 expect.
    """
    search_embedder_timeout_s: Annotated[float, Field(gt=0)] = 5.0
    """Timeout of a remote embedder in a search, in seconds. After it the search uses words only and
    answers `degraded: true`.
    """

    # ── Engine ──
    lease_s: Annotated[float, Field(gt=0)] = 5.0
    """Lease of a lane, in seconds: how long a hanging worker blocks a lane. After a crash the lane
    is free in less than half of it.
    """
    queued_grace_s: Annotated[float, Field(gt=0)] = 5.0
    """Seconds until a hint that no worker has taken is published again."""
    sweep_s: Annotated[float, Field(gt=0)] = 1.0
    """Interval of the sweeper, in seconds."""
    stop_s: Annotated[float, Field(ge=0)] = 20.0
    """Seconds that a worker has to finish its stages after SIGTERM. Then it releases their lanes
    and exits within 5 s.
    """
    stuck_s: Annotated[float, Field(gt=0)] = 60.0
    """Seconds after which a worker or an API process exits if its event loop hangs, or a worker if
    it takes none of the waiting hints.
    """
    loop_slow_s: Annotated[float, Field(gt=0)] = 1.0
    """Seconds after which a blocked event loop of a worker or an API process is logged as
    `loop_blocked`, with its stack, and counted.
    """
    max_attempts: Annotated[int, Field(ge=1)] = 5
    """Worker crashes that one event may cause before it fails with POISON_CRASH."""
    outage_budget_s: Annotated[float, Field(gt=0)] = 86_400.0
    """Seconds that an event waits for a model or a store before it fails with DEADLINE. They count
    from the moment at which a worker first takes it; the wait behind other events is not limited.
    """
    batch_events: Annotated[int, Field(ge=1, le=64)] = 8
    """Maximum number of events in a batch."""
    batch_tokens: Annotated[int, Field(ge=100)] = 6_000
    """Maximum number of estimated tokens in a batch."""
    context_messages: Annotated[int, Field(ge=0, le=100)] = 10
    """Number of earlier messages in the extraction prompt."""
    summary_messages: Annotated[int, Field(ge=0, le=500)] = 20
    """Number of messages after which the summary of their conversation is renewed, in a task of its
    own; it is a part of the extraction prompt. `0`: no summaries. `local/rules` makes none.
    """
    summary_tokens: Annotated[int, Field(ge=100)] = 2_000
    """Estimated tokens of messages after which the summary is renewed earlier."""
    neighbours: Annotated[int, Field(ge=1, le=50)] = 12
    """Number of related memories that a fact is compared with; several facts share twice that."""
    retire_share: Annotated[float, Field(ge=0, le=1)] = 0.2
    """Share of a scope's memories that one event may retire by a model's decision, but at least 3;
    further deletes become suggestions."""

    # ── Curator ──
    curator_suggestions: Annotated[int, Field(ge=1, le=1_000)] = 50
    """Maximum number of suggestions of one run of the curator."""
    curator_tokens: Annotated[int, Field(ge=1_000)] = 200_000
    """Maximum number of tokens of one run of the curator. The step that reaches it is the last."""

    # ── Profiles ──
    profile_pause_s: Annotated[float, Field(gt=0)] = 60.0
    """Seconds from the first change of a user's memories to the event that generates the profile
    again; the changes between are read together.
    """

    # ── Retention ──
    idempotency_hours: Annotated[float, Field(gt=0)] = 24.0
    """Lifetime of an idempotency key, in hours."""
    dry_run_hours: Annotated[float, Field(gt=0)] = 1.0
    """Hours that the model answers of a dry run are kept for the real run."""
    temporary_run_hours: Annotated[float, Field(gt=0)] = 24.0
    """Hours after which a temporary run is erased, if its request names no time."""
    retention_days: Annotated[float, Field(ge=0)] = 30.0
    """Days that stage outputs are kept after their event has ended; a replay with recorded answers
    reads them. `0`: no limit. Events, messages, receipts and history are kept. Adds to a private
    run are refused for as long after its end.
    """

    audit_days: Annotated[float, Field(ge=0)] = 365.0
    """Days that the audit log is kept. `0`: no limit."""
    search_sample_days: Annotated[float, Field(ge=0)] = 30.0
    """Days that a sample of the searches that returned a memory is kept, at most ten a memory, with
    the start of the question. `0`: no sample is taken.
    """
    usage_days: Annotated[float, Field(ge=0)] = 400.0
    """Days that the daily costs of each user are kept; those of the project always stay. `0`: no
    limit. Budgets of a month need 32 days: less counts as that.
    """

    profile_days: Annotated[float, Field(ge=0)] = 365.0
    """Days that a value of a profile is kept after it was replaced; an `as_of` further back lacks
    it. Current values always stay. `0`: no limit.
    """

    past_state_days: Annotated[float, Field(ge=0)] = 0.0
    """Days that a state of a memory is kept after another one replaced it: an `as_of` further back,
    and a `valid_at` that only this state answers, lack it. Its text stays in the history. `0`: no
    limit.
    """

    erasure_days: Annotated[float, Field(ge=0)] = 730.0
    """Days that the receipt of an erasure is kept, and the numbers that it leaves of events; the
    counts of the project stay. `0`: no limit. Projects with seals keep both without a limit.
    """

    # ── Back-pressure ──
    max_scope_events: Annotated[int, Field(ge=1)] = 1_000
    """Maximum number of waiting events of one scope; further adds get 429 with `Retry-After`."""
    max_project_events: Annotated[int, Field(ge=1)] = 20_000
    """Maximum number of waiting events of one project; further adds get 429 with `Retry-After`."""
    max_project_replays: Annotated[int, Field(ge=1)] = 10
    """Maximum number of open replays of one project (neither switched nor deleted); further ones
    get 409. A replay also gets 409 if the waiting events of all replays would exceed
    `MEMLANE_MAX_PROJECT_EVENTS`.
    """
    max_lag_s: Annotated[float, Field(gt=0)] = 3_600.0
    """Maximum backlog of the whole server, in seconds of work; beyond it every add gets 503 with
    `Retry-After`. Before that, a backlog is measured for a minute, or for the limit if that is
    shorter.
    """
    max_key_requests_per_min: Annotated[int, Field(ge=0)] = 6_000
    """Rate limit of one API key, in requests a minute for each API process; further requests get
    429 with `Retry-After`. `0`: no limit.
    """

    # ── HTTP edge ──
    max_body_bytes: Annotated[int, Field(ge=1_000)] = 1_000_000
    """Maximum size of a request body."""
    max_connections: Annotated[int, Field(ge=2)] = 4_000
    """Maximum number of open connections of one API process. A further one takes the place of the
    connection that has waited longest for a request; if all have one, it gets 503 with
    `Retry-After`.
    """
    max_address_connections: Annotated[int, Field(ge=1)] | None = None
    """The same for the connections from one address, except from trusted proxies. Default: a tenth
    of `MEMLANE_MAX_CONNECTIONS`.
    """
    trusted_proxies: Annotated[tuple[str, ...], NoDecode, BeforeValidator(_names)] = ()
    """Addresses or networks of reverse proxies, separated by commas: `10.0.0.7,172.16.0.0/12`. A
    request from one of them comes from the right-most address in `X-Forwarded-For` that is not one
    of them, by the scheme in `X-Forwarded-Proto`. Default: none, and these headers are ignored.
    """
    public_url: Annotated[str, Field(pattern=r"^https?://[^\s/?#]+(/[^\s?#]*)?$")] | None = None
    """Public base URL of the API, such as `https://memory.example.com`, for links to the next page.
    Default: the `Host` header of each request.
    """
    cors_origins: str = ""
    """Origins whose scripts may call the API from a browser, separated by commas:
    `https://chat.example.com,chrome-extension://<id>`. `*`: all of them.
    """
    console: Literal["on", "off"] = "on"
    """`off`: no [console](../howto/console.md)."""
    console_hours: Annotated[float, Field(gt=0, le=720)] = 12.0
    """Hours after which a session of the console ends. It also ends with its API key."""
    docs: Literal["on", "off"] = "on"
    """`off`: no `/docs`, `/redoc` and `/openapi.json`."""
    sync_wait_s: Annotated[float, Field(gt=0)] = 30.0
    """Seconds that `infer=false` and `async_mode=false` wait for the result before they answer
    PENDING.
    """
    seal_key: SecretStr | None = None
    """Key that signs the seals of projects with tamper evidence: 32 random bytes or more, which the
    database must not contain. Without it no project can have tamper evidence. The API and the
    sweeper need it.
    """
    seal_keys_old: SecretStr | None = None
    """Former values of `MEMLANE_SEAL_KEY`, separated by commas: what they signed is accepted, and
    the sweeper signs it with the present key.
    """
    seal_head_s: Annotated[float, Field(ge=1)] = 300.0
    """Seconds between two recorded heads of a project with tamper evidence, as a log line
    (`seal_head`) and for webhooks. No head is recorded without new seals.
    """
    metrics_token: SecretStr | None = None
    """Bearer token of `/metrics`. Without it `/metrics` answers only if `MEMLANE_HOST` is a
    loopback address, and no request that a reverse proxy has passed on.
    """
    probe_port: Annotated[int, Field(ge=0, le=65_535)] | None = None
    """Port of a worker or sweeper for `/livez`, `/readyz` and `/metrics`, on `MEMLANE_HOST`. Set it
    where each process has an address of its own, as a container has; without it there is no port.
    """
    traces_url: Annotated[str, Field(pattern=r"^https?://")] | None = None
    """Address that receives traces as OTLP over HTTP, such as `http://127.0.0.1:4318/v1/traces`.
    Without it no traces are recorded.
    """
    traces_headers: SecretStr | None = None
    """Headers of each request to `MEMLANE_TRACES_URL`, as `name=value,name=value`."""
    traces_share: Annotated[float, Field(ge=0, le=1)] = 1.0
    """Share of the traces that are recorded. A request with a `traceparent` header follows it."""
    traces_texts: Literal["on", "off"] = "off"
    """`on`: spans contain texts of users: queries, and the memories that a stage has changed."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """Minimum level of log lines. Libraries write none below `info`."""

    # ── Webhooks ──
    webhook_private: Literal["on", "off"] = "off"
    """`on`: webhooks may be delivered to private, loopback and link-local addresses."""
    webhook_timeout_s: Annotated[float, Field(gt=0, le=60)] = 10.0
    """Timeout of one delivery, in seconds."""
    webhook_tries: Annotated[int, Field(ge=1, le=20)] = 8
    """Attempts before a delivery is given up."""
    webhook_first_retry_s: Annotated[float, Field(gt=0)] = 5.0
    """Pause before the second attempt, in seconds. Each further pause is four times as long, up to
    six hours.
    """

    @field_validator("*", mode="before")
    @classmethod
    def trimmed(cls, value: object, info: ValidationInfo) -> object:
        """Remove white space around a text; that of a key of seals may have signed some."""
        return value if info.field_name in SEAL_KEYS else without_space(value)

    @field_validator("database_url")
    @classmethod
    def of_postgresql(cls, value: SecretStr | None) -> SecretStr | None:
        """Check the scheme of the database's URL. Errors: ValueError, for pydantic."""
        scheme, separator, _ = value.get_secret_value().partition("://") if value else ("", "", "")
        if separator and scheme.partition("+")[0].lower() not in ("postgresql", "postgres"):
            raise ValueError("it must begin with postgresql://")
        return value

    @property
    def broker_scheme(self) -> str:
        """Scheme of the broker's URL; empty without a URL."""
        url = self.broker_url.get_secret_value() if self.broker_url else ""
        return url.partition("://")[0].lower()

    @model_validator(mode="after")
    def usable_broker(self) -> Settings:
        """Check the broker's URL and the settings beside it. Errors: ValueError, for pydantic."""
        if self.broker_url is not None and self.broker_scheme not in BROKER_SCHEMES:
            known = ", ".join(f"{scheme}://" for scheme in BROKER_SCHEMES)
            raise ValueError(f"MEMLANE_BROKER_URL must begin with one of {known}")
        sentinel = self.broker_scheme == "sentinel"
        if sentinel and self.broker_sentinel_master is None:
            raise ValueError("sentinel:// needs MEMLANE_BROKER_SENTINEL_MASTER")
        if not sentinel and (self.broker_sentinel_master or self.broker_sentinel_password):
            raise ValueError("MEMLANE_BROKER_SENTINEL_… needs a MEMLANE_BROKER_URL of sentinel://")
        return self

    @field_validator("cors_origins")
    @classmethod
    def origins_only(cls, value: str) -> str:
        """Check the list of origins. Errors: ValueError, for pydantic."""
        for origin in words_of(value):
            if origin not in ("*", "null") and not re.fullmatch(r"[a-z-]+://[^\s/?#]+", origin):
                raise ValueError(f"{origin} is no origin; write scheme://host[:port], or *")
        return value

    @property
    def origins(self) -> list[str]:
        """Origins whose scripts may call the API; none by default."""
        return words_of(self.cors_origins)

    @field_validator("trusted_proxies")
    @classmethod
    def networks_only(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        """Check the list of proxies. Errors: ValueError, for pydantic."""
        for network in value:
            ipaddress.ip_network(network)
        return value

    @property
    def seal_keys(self) -> list[str]:
        """Keys of seals, the one that signs first; none without MEMLANE_SEAL_KEY."""
        if self.seal_key is None:
            return []
        former = self.seal_keys_old.get_secret_value() if self.seal_keys_old else ""
        return [self.seal_key.get_secret_value(), *words_of(former)]

    @field_validator("semantic_scale")
    @classmethod
    def increasing(cls, value: str | None) -> str | None:
        """Check that the pairs of the scale increase. Errors: ValueError, for pydantic."""
        if value is not None:
            calibration.parse(value)
        return value

    @property
    def low_places(self) -> int:
        """Maximum number of stages of low priority of one worker, at least one."""
        return max(1, int(self.stages_at_once * self.low_share))

    @property
    def stages_at_once(self) -> int:
        """Maximum number of stages of one worker."""
        computes = (self.llm.model, self.embedder.model) == (RULES, MINILM)
        return self.worker_concurrency or (COMPUTING_STAGES if computes else WAITING_STAGES)

    @property
    def buckets(self) -> int:
        """Number of collections that the vectors are spread over: 1 for every store except Chroma.

        Chroma's filter reads all records of a collection; the others have an index on the owner.
        """
        return self.vector_buckets if self.vectors == "chroma" else 1


def known_names() -> set[str]:
    """Names of all environment variables that are settings."""
    return {name for name, _ in _variables()}


def secret_names() -> set[str]:
    """Names of the variables whose values are secret."""
    return {name for name, kind in _variables() if SecretStr in (kind, *get_args(kind))}


def _variables() -> Iterator[tuple[str, Any]]:
    """All environment variables that are settings, each with its type."""
    for name, info in Settings.model_fields.items():
        variable = PREFIX + name.upper()
        yield variable, info.annotation
        for part, kind in _parts(info.annotation):
            yield f"{variable}__{part.upper()}", kind


def _parts(annotation: Any) -> list[tuple[str, Any]]:
    """The fields of a group of settings with their types; none if the type is not a group."""
    if is_dataclass(annotation):
        return [(part.name, part.type) for part in fields(annotation)]
    models = annotation.model_fields if hasattr(annotation, "model_fields") else {}
    return [(name, info.annotation) for name, info in models.items()]


def given_names() -> list[str]:
    """All environment variables that start with MEMLANE_, including unknown ones."""
    names = os.environ  # noqa: TID251  the module that reads the environment
    return sorted(name for name in names if name.upper().startswith(PREFIX))


@dataclass(frozen=True, slots=True)
class OpenAIVariables:
    """OpenAI's variables that LiteLLM reads, too; None if not set."""

    api_base: str | None
    api_key: str | None = field(repr=False)
    organization: str | None


def openai_environment() -> OpenAIVariables:
    """OpenAI's variables of this process."""
    names = os.environ  # noqa: TID251  the module that reads the environment

    def read(name: str) -> str | None:
        return names.get(name, "").strip() or None

    return OpenAIVariables(
        read("OPENAI_BASE_URL") or read("OPENAI_API_BASE"),
        read("OPENAI_API_KEY"),
        read("OPENAI_ORGANIZATION"),
    )


def load() -> Settings:
    """The settings of this process, read from its environment.

    Errors: InvalidInput for an unknown variable, and for a text as the value of a whole group;
    pydantic's ValidationError for an invalid value.
    """
    require_known(given_names())
    try:
        return Settings()
    except SettingsError as error:
        raise InvalidInput(_not_a_group(str(error))) from None


def _not_a_group(error: str) -> str:
    """The sentence for an error of pydantic-settings, which names the field of the group."""
    named = re.search(r'field "(\w+)"', error)
    group = PREFIX + named[1].upper() if named else "A group of settings"
    return f"{group} is a group of settings: name the model in {group}__MODEL."


def require_known(names: Iterable[str], *, source: str = "") -> None:
    """Check that these variables are settings. `source`: where they stand, for the error.

    Errors: InvalidInput that names the first other one.
    """
    known = known_names()
    for name in names:
        if name.upper() not in known:
            near = difflib.get_close_matches(name.upper(), known, n=1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise InvalidInput(f"{source}{name} is not a Memlane setting.{hint}")
