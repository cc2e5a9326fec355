"""Every setting, once. Environment names are `MEMLANE_` + the field, `__` between levels.

A variable that starts with MEMLANE_ and is not in here is refused at start by name: a misspelt
setting that is silently ignored costs an evening.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Collection, Iterable
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, Field, SecretStr, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from pipeline import calibration
from pipeline.errors import InvalidInput
from pipeline.fusion import Weights

PREFIX = "MEMLANE_"


# The built-in models: no key, no network.
RULES, MINILM = "local/rules", "local/minilm"
NO_MODEL = "none"


class ModelSettings(BaseModel):
    model: str
    api_base: str | None = None
    api_key: SecretStr | None = None
    timeout_s: Annotated[float, Field(gt=0)] = 60.0

    def named(self, model: str, allowed: Collection[str]) -> ModelSettings:
        """The configured model, or another allowed one of its provider, by its exact name.

        Errors: InvalidInput for any other name. A part of a model's name may hold the host that
        is called, so no prefix is enough; and the key is for the configured provider alone.
        """
        provider = self.model.partition("/")[0]
        names = {self.model} | {one for one in allowed if one.partition("/")[0] == provider}
        if model not in names:
            known = " or ".join(sorted(names))
            raise InvalidInput(
                f"{model} cannot be used in a replay: name {known}, or have the operator add it to"
                " MEMLANE_REPLAY_MODELS."
            )
        return self.model_copy(update={"model": model})


def default_workers() -> int:
    """One process per core, for each is bound by one: at most eight, of some 300 MB each."""
    return min(os.cpu_count() or 1, 8)


def _names(value: object) -> object:
    """The names in `a, b`; anything but a text as it is."""
    if not isinstance(value, str):
        return value
    return [name.strip() for name in value.split(",") if name.strip()]


class Settings(BaseSettings):
    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_nested_delimiter="__",
        env_ignore_empty=True,
        # MEMLANE_LLM__API_KEY alone keeps the default model.
        nested_model_default_partial_update=True,
        frozen=True,
    )

    # The local stack
    data_dir: Path = Path(".memlane")
    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=1, le=65535)] = 8000
    api_processes: Annotated[int, Field(ge=1, le=64)] = 1
    workers: Annotated[int, Field(ge=1, le=64)] = Field(default_factory=default_workers)
    worker_concurrency: Annotated[int, Field(ge=1, le=500)] = 100

    # Servers: the local stack starts its own where these are not given
    database_url: SecretStr | None = None
    broker_url: SecretStr | None = None
    chroma_url: str | None = None
    qdrant_url: str | None = None
    qdrant_api_key: SecretStr | None = None
    searches_at_once: Annotated[int, Field(ge=1)] | None = None
    database_pool: Annotated[int, Field(ge=1, le=200)] = 16

    # Vectors
    vectors: Literal["chroma", "pgvector", "qdrant"] = "chroma"
    vector_buckets: Annotated[int, Field(ge=1, le=1024)] = 64
    turn_vectors: Literal["on", "off"] = "on"

    # Models
    llm: ModelSettings = ModelSettings(model=RULES)
    embedder: ModelSettings = ModelSettings(model=MINILM)
    # Somebody waits for a search: its model has seconds, not a minute.
    reranker: ModelSettings = ModelSettings(model=NO_MODEL, timeout_s=5.0)
    graph: Literal["on", "off"] = "on"
    # What a replay may name beside the configured models.
    replay_models: Annotated[tuple[str, ...], NoDecode, BeforeValidator(_names)] = ()

    # What each term of a search score counts for
    search: Weights = Weights()
    # Cosines as semantic scores, `cosine:score,…`; unset: what is known of the embedder
    semantic_scale: str | None = None

    # Engine
    lease_s: Annotated[float, Field(gt=0)] = 5.0
    queued_grace_s: Annotated[float, Field(gt=0)] = 5.0
    sweep_s: Annotated[float, Field(gt=0)] = 1.0
    stop_s: Annotated[float, Field(ge=0)] = 20.0
    stuck_s: Annotated[float, Field(gt=0)] = 60.0
    max_attempts: Annotated[int, Field(ge=1)] = 5
    outage_budget_s: Annotated[float, Field(gt=0)] = 86_400.0
    batch_events: Annotated[int, Field(ge=1, le=64)] = 8
    batch_tokens: Annotated[int, Field(ge=100)] = 6_000
    context_messages: Annotated[int, Field(ge=0, le=100)] = 10
    neighbours: Annotated[int, Field(ge=1, le=50)] = 5

    search_embedder_timeout_s: Annotated[float, Field(gt=0)] = 5.0

    # Retention
    # As long as an event may wait by default: a key outlives the event it stands for.
    idempotency_hours: Annotated[float, Field(gt=0)] = 24.0
    # 0: for ever.
    retention_days: Annotated[float, Field(ge=0)] = 30.0

    # Admission
    max_scope_events: Annotated[int, Field(ge=1)] = 1_000
    max_project_events: Annotated[int, Field(ge=1)] = 20_000
    max_project_replays: Annotated[int, Field(ge=1)] = 10
    max_lag_s: Annotated[float, Field(gt=0)] = 3_600.0
    max_key_requests_per_min: Annotated[int, Field(ge=0)] = 6_000

    # Edges
    max_body_bytes: Annotated[int, Field(ge=1_000)] = 1_000_000
    max_connections: Annotated[int, Field(ge=2)] = 4_000
    public_url: Annotated[str, Field(pattern=r"^https?://[^\s/?#]+(/[^\s?#]*)?$")] | None = None
    cors_origins: str = ""
    docs: Literal["on", "off"] = "on"
    sync_wait_s: Annotated[float, Field(gt=0)] = 30.0
    metrics_token: SecretStr | None = None
    log_level: Literal["debug", "info", "warning", "error"] = "info"

    # Webhooks
    webhook_private: Literal["on", "off"] = "off"
    webhook_timeout_s: Annotated[float, Field(gt=0, le=60)] = 10.0
    webhook_tries: Annotated[int, Field(ge=1, le=20)] = 8
    webhook_first_retry_s: Annotated[float, Field(gt=0)] = 5.0

    @field_validator("cors_origins")
    @classmethod
    def origins_only(cls, value: str) -> str:
        for origin in _words(value):
            if origin not in ("*", "null") and not re.fullmatch(r"[a-z-]+://[^\s/?#]+", origin):
                raise ValueError(f"{origin} is no origin; write scheme://host[:port], or *")
        return value

    @property
    def origins(self) -> list[str]:
        """Origins whose scripts may call the API; none by default."""
        return _words(self.cors_origins)

    @field_validator("semantic_scale")
    @classmethod
    def increasing(cls, value: str | None) -> str | None:
        if value is not None:
            calibration.parse(value)
        return value

    @property
    def buckets(self) -> int:
        """Collections the index is spread over: the others find an owner's records by an index of
        their own, only Chroma's filter looks at every record of a collection.
        """
        return self.vector_buckets if self.vectors == "chroma" else 1


def _words(text: str) -> list[str]:
    return [word for part in text.split(",") if (word := part.strip())]


def known_names() -> set[str]:
    """Every environment name the settings read."""
    names = set()
    for name, info in Settings.model_fields.items():
        names.add(PREFIX + name.upper())
        names |= {f"{PREFIX}{name.upper()}__{sub.upper()}" for sub in _parts(info.annotation)}
    return names


def _parts(annotation: Any) -> Iterable[str]:
    """The names inside a group of settings; none of a single one."""
    if not isinstance(annotation, type):
        return ()
    if is_dataclass(annotation):
        return (field.name for field in fields(annotation))
    return annotation.model_fields if issubclass(annotation, BaseModel) else ()


def given_names() -> list[str]:
    """Every environment variable that begins with MEMLANE_, whether it is a setting or not."""
    names = os.environ  # noqa: TID251  here is where they are read
    return sorted(name for name in names if name.upper().startswith(PREFIX))


def load() -> Settings:
    """The settings of this process, read from its environment.

    Errors: InvalidInput naming the variable that is not a setting; pydantic's for a bad value.
    """
    known = known_names()
    for name in given_names():
        if name.upper() not in known:
            near = difflib.get_close_matches(name.upper(), known, n=1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise InvalidInput(f"{name} is not a Memlane setting.{hint}")
    return Settings()
