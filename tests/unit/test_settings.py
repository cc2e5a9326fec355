"""Settings: documented defaults, every name read, misspelt names refused by name."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, SecretStr, ValidationError

from pipeline import settings
from pipeline.bootstrap import build_reranker
from pipeline.domain.errors import InvalidInput
from pipeline.model_settings import RULES, ModelSettings
from pipeline.settings import Settings, known_names, load, openai_environment
from pipeline.startup import bad_values


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):  # noqa: TID251  what is tested is how it is read
        if name.upper().startswith(settings.PREFIX):
            monkeypatch.delenv(name)


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> Any:
    def load_with(values: Mapping[str, str]) -> Settings:
        for name, value in values.items():
            monkeypatch.setenv(name, value)
        return load()

    return load_with


@pytest.mark.parametrize(
    ("cores", "processes"),
    [(None, (1, 1)), (1, (1, 1)), (2, (2, 2)), (4, (2, 4)), (6, (3, 6)), (64, (4, 8))],
)
def test_processes_of_the_local_stack_follow_the_cores(
    monkeypatch: pytest.MonkeyPatch, cores: int | None, processes: tuple[int, int]
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    settings = load()
    assert (settings.api_processes, settings.workers) == processes


@pytest.mark.parametrize("name", ["MEMLANE_LLM", "MEMLANE_EMBEDDER", "memlane_reranker"])
def test_a_model_in_the_name_of_its_group_is_refused_by_name(given: Any, name: str) -> None:
    with pytest.raises(InvalidInput, match=f"^{name.upper()} .* {name.upper()}__MODEL"):
        given({name: "openai/gpt-4o-mini"})


def test_white_space_around_a_value_is_no_part_of_it(
    given: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a Secret that was made of a file: HTTP clients refuse a header with a line break."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-litellm\n")
    settings = given(
        {
            "MEMLANE_LLM__API_KEY": "sk-1\n",
            "MEMLANE_LLM__MODEL": " openai/gpt-4o-mini",
            "MEMLANE_LLM__FALLBACKS": '[{"model": "openai/gpt-4o", "api_key": "sk-2\\n"}]',
            "MEMLANE_DATABASE_URL": "postgresql://u:p@db/memlane\n",
            "MEMLANE_CONSOLE": "off\n",
            "MEMLANE_SEAL_KEY": "thirty-two bytes that sign seals.\n",
        }
    )
    keys = [model.api_key for model in settings.llm.chain]
    assert [key and key.get_secret_value() for key in keys] == ["sk-1", "sk-2"]
    assert settings.llm.model == "openai/gpt-4o-mini"
    assert settings.database_url.get_secret_value() == "postgresql://u:p@db/memlane"
    assert settings.console == "off"
    assert openai_environment().api_key == "sk-of-litellm"
    # Existing signatures must stay valid.
    assert settings.seal_key.get_secret_value().endswith("\n")


def test_without_any_setting_the_documented_defaults_hold() -> None:
    settings = load()
    assert settings.data_dir == Path(".memlane")
    assert (settings.host, settings.port) == ("127.0.0.1", 8000)
    assert (settings.database_url, settings.broker_url, settings.chroma_url) == (None, None, None)
    assert settings.llm.model == "local/rules"
    assert settings.embedder.model == "local/minilm"
    assert (settings.reranker.model, settings.reranker.timeout_s) == ("none", 5.0)
    assert settings.graph == "on"
    assert settings.turn_vectors == "on"


@pytest.mark.parametrize(
    ("name", "value", "field", "read"),
    [
        ("MEMLANE_DATA_DIR", "/somewhere", "data_dir", Path("/somewhere")),
        ("MEMLANE_PORT", "8123", "port", 8123),
        ("MEMLANE_WORKERS", "3", "workers", 3),
        ("MEMLANE_WORKER_CONCURRENCY", "7", "worker_concurrency", 7),
        ("MEMLANE_DATABASE_URL", "postgresql://x", "database_url", SecretStr("postgresql://x")),
        ("MEMLANE_BROKER_URL", "redis://x", "broker_url", SecretStr("redis://x")),
        ("MEMLANE_CHROMA_URL", "http://x", "chroma_url", "http://x"),
        ("MEMLANE_GRAPH", "off", "graph", "off"),
        ("MEMLANE_TURN_VECTORS", "off", "turn_vectors", "off"),
    ],
)
def test_each_documented_handle_is_read(
    given: Any, name: str, value: str, field: str, read: object
) -> None:
    assert getattr(given({name: value}), field) == read


def test_a_database_other_than_postgresql_is_refused_by_name(given: Any) -> None:
    with pytest.raises(ValidationError) as raised:
        given({"MEMLANE_DATABASE_URL": "mysql://me:a-secret@db/memlane"})
    text = bad_values(raised.value)
    assert text == "MEMLANE_DATABASE_URL: it must begin with postgresql://"


@pytest.mark.parametrize("part", ["LLM", "EMBEDDER", "RERANKER"])
def test_a_model_is_set_by_nested_names(given: Any, part: str) -> None:
    settings = given(
        {
            f"MEMLANE_{part}__MODEL": "openai/gpt-4o-mini",
            f"MEMLANE_{part}__API_BASE": "http://llm/v1",
            f"MEMLANE_{part}__API_KEY": "k",
            f"MEMLANE_{part}__TIMEOUT_S": "5",
        }
    )
    model = getattr(settings, part.lower())
    assert (model.model, model.api_base) == ("openai/gpt-4o-mini", "http://llm/v1")
    assert (model.api_key.get_secret_value(), model.timeout_s) == ("k", 5.0)


@pytest.mark.parametrize("part", ["LLM", "EMBEDDER", "RERANKER"])
def test_one_nested_name_alone_leaves_the_others_at_their_defaults(given: Any, part: str) -> None:
    settings = given({f"MEMLANE_{part}__TIMEOUT_S": "5"})
    model = getattr(settings, part.lower())
    assert (model.model, model.timeout_s) == (getattr(Settings(), part.lower()).model, 5.0)


def test_a_reranker_alone_keeps_the_seconds_that_a_search_can_wait(given: Any) -> None:
    settings = given({"MEMLANE_RERANKER__MODEL": "cohere/rerank-v3.5"})
    assert (settings.reranker.model, settings.reranker.timeout_s) == ("cohere/rerank-v3.5", 5.0)


def test_a_reranker_is_built_only_where_one_is_named() -> None:
    assert build_reranker(Settings().reranker) is None
    with pytest.raises(InvalidInput, match="there is no local reranker"):
        build_reranker(ModelSettings(model="local/rules"))


def test_an_empty_variable_is_as_good_as_none(given: Any) -> None:
    assert given({"MEMLANE_PORT": "", "MEMLANE_CHROMA_URL": ""}) == load()
    assert load().chroma_url is None


@pytest.mark.parametrize(
    ("misspelt", "meant"),
    [
        ("MEMLANE_PROT", "MEMLANE_PORT"),
        ("MEMLANE_WORKERS_CONCURRENCY", "MEMLANE_WORKER_CONCURRENCY"),
        ("MEMLANE_LLM__MODLE", "MEMLANE_LLM__MODEL"),
        ("MEMLANE_LLM_MODEL", "MEMLANE_LLM__MODEL"),
        ("MEMLANE_DATABASE_URI", "MEMLANE_DATABASE_URL"),
    ],
)
def test_a_misspelt_setting_is_refused_by_name_with_the_one_that_was_meant(
    given: Any, misspelt: str, meant: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        given({misspelt: "x"})
    assert str(caught.value) == f"{misspelt} is not a Memlane setting. Did you mean {meant}?"


def test_a_name_like_none_of_ours_is_refused_without_a_guess(given: Any) -> None:
    with pytest.raises(InvalidInput) as caught:
        given({"MEMLANE_QQQQQQQQQQQQQQQQQQQQQQ": "x"})
    assert str(caught.value) == "MEMLANE_QQQQQQQQQQQQQQQQQQQQQQ is not a Memlane setting."


def test_a_misspelt_setting_in_small_letters_is_refused_like_any_other(given: Any) -> None:
    assert given({"memlane_port": "8123"}).port == 8123  # lower case is read too …
    with pytest.raises(InvalidInput, match="memlane_prot is not a Memlane setting"):
        given({"memlane_prot": "8123"})  # … so misspelt names in lower case are refused as well


def test_other_programs_variables_are_none_of_our_business(given: Any) -> None:
    assert given({"MEM0_API_KEY": "x", "MEMLANES_PORT": "x"}) == Settings()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MEMLANE_PORT", "0"),
        ("MEMLANE_PORT", "eighty"),
        ("MEMLANE_WORKERS", "0"),
        ("MEMLANE_GRAPH", "maybe"),
        ("MEMLANE_LEASE_S", "-1"),
        ("MEMLANE_LLM__TIMEOUT_S", "0"),
        ("MEMLANE_LOG_LEVEL", "loud"),
    ],
)
def test_a_bad_value_is_refused_and_says_which(given: Any, name: str, value: str) -> None:
    with pytest.raises(ValidationError) as caught:
        given({name: value})
    field = name.removeprefix(settings.PREFIX).lower().replace("__", ".")
    assert field in str(caught.value)


def test_known_names_cover_every_field_and_every_nested_one() -> None:
    expected = set()
    for name, info in Settings.model_fields.items():
        expected.add(f"MEMLANE_{name.upper()}")
        default = info.default
        parts: Iterable[str] = ()
        if isinstance(default, BaseModel):
            parts = type(default).model_fields
        elif is_dataclass(default):
            parts = (field.name for field in fields(default))
        expected |= {f"MEMLANE_{name.upper()}__{part.upper()}" for part in parts}
    assert known_names() == expected
    assert {"MEMLANE_LLM__API_KEY", "MEMLANE_EMBEDDER__MODEL", "MEMLANE_PORT"} <= expected


def test_secrets_are_not_shown(given: Any) -> None:
    settings = given(
        {
            "MEMLANE_DATABASE_URL": "postgresql://u:hush@x/d",
            "MEMLANE_BROKER_URL": "redis://:hush@x",
            "MEMLANE_LLM__MODEL": "openai/x",
            "MEMLANE_LLM__API_KEY": "hush",
        }
    )
    assert "hush" not in repr(settings)
    assert "hush" not in settings.model_dump_json()


@pytest.mark.parametrize(
    ("variables", "reason"),
    [
        ({"MEMLANE_BROKER_URL": "kafka://hush"}, "must begin with one of redis://"),
        ({"MEMLANE_BROKER_URL": "hush"}, "must begin with one of redis://"),
        ({"MEMLANE_BROKER_URL": "sentinel://:hush@a:1"}, "needs MEMLANE_BROKER_SENTINEL_MASTER"),
        ({"MEMLANE_BROKER_SENTINEL_MASTER": "a"}, "MEMLANE_BROKER_URL of sentinel://"),
        (
            {"MEMLANE_BROKER_URL": "redis://x", "MEMLANE_BROKER_SENTINEL_PASSWORD": "hush"},
            "MEMLANE_BROKER_URL of sentinel://",
        ),
    ],
)
def test_settings_of_a_broker_must_fit_together(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], reason: str
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ValidationError, match=reason) as refused:
        load()
    assert "hush" not in str(refused.value)
    assert bad_values(refused.value).startswith(("MEMLANE_BROKER_", "sentinel://"))
    assert "Value error" not in bad_values(refused.value)


def test_a_misspelt_setting_of_sentinel_is_refused_with_its_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MEMLANE_BROKER_SENTINEL_MASTR", "a")
    with pytest.raises(InvalidInput, match="Did you mean MEMLANE_BROKER_SENTINEL_MASTER"):
        load()


def test_settings_cannot_be_changed_after_they_are_read() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        load().port = 1  # type: ignore[misc]


@pytest.mark.parametrize("name", ["openai/small", "openai/large"])
def test_a_listed_model_may_stand_in_for_the_configured_one(name: str) -> None:
    configured = ModelSettings(model="openai/small", api_base="http://127.0.0.1:9", timeout_s=7)
    allowed = ("openai/large",)
    assert configured.named(name, allowed) == configured.model_copy(update={"model": name})


def test_models_of_replays_are_names_separated_by_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load().replay_models == ()
    monkeypatch.setenv("MEMLANE_REPLAY_MODELS", "openai/large, openai/other,")
    assert load().replay_models == ("openai/large", "openai/other")


@pytest.mark.parametrize(
    ("configured", "name"),
    [
        ("openai/small", "azure/small"),
        ("openai/small", "openai-like/small"),
        ("openai/small", "small"),
        ("openai/small", "openai/http://elsewhere"),
        ("openai/small", "openai/small/../x"),
        ("openai/small", "openai/small "),
        ("openai/small", "OpenAI/large"),
        ("openai/small", "local/other"),
        ("openai/small", RULES),
        ("openai/small", "azure/listed"),
        ("bedrock/small", "bedrock/agentcore/arn:aws:bedrock-agentcore:evil.example#:1:runtime/x"),
        ("small", "large"),
        (RULES, "openai/small"),
        (RULES, "local/other"),
    ],
)
def test_a_key_goes_only_to_its_provider(configured: str, name: str) -> None:
    """A listed model of another provider does not get the key."""
    allowed = ("openai/large", "azure/listed", RULES)
    with pytest.raises(InvalidInput, match=f"name .*{configured}.*MEMLANE_REPLAY_MODELS"):
        ModelSettings(model=configured, api_key=SecretStr("k")).named(name, allowed)


def test_fallbacks_are_named_in_order_and_share_the_key_of_their_own_provider_only(
    given: Any,
) -> None:
    llm = given(
        {
            "MEMLANE_LLM__MODEL": "openai/large",
            "MEMLANE_LLM__API_BASE": "http://llm/v1",
            "MEMLANE_LLM__API_KEY": "k",
            "MEMLANE_LLM__FALLBACKS": "openai/small, anthropic/other",
        }
    ).llm
    assert [(model.model, model.api_base) for model in llm.chain] == [
        ("openai/large", "http://llm/v1"),
        ("openai/small", "http://llm/v1"),
        ("anthropic/other", None),
    ]
    keys = [model.api_key and model.api_key.get_secret_value() for model in llm.chain]
    assert keys == ["k", "k", None]


def test_a_fallback_can_have_an_address_and_a_key_of_its_own(given: Any) -> None:
    fallback = '[{"model": "openai/b", "api_base": "http://b/v1", "api_key": "kb", "timeout_s": 9}]'
    llm = given({"MEMLANE_LLM__MODEL": "openai/a", "MEMLANE_LLM__FALLBACKS": fallback}).llm
    assert llm.chain[1] == ModelSettings(
        model="openai/b", api_base="http://b/v1", api_key=SecretStr("kb"), timeout_s=9
    )
    assert "kb" not in repr(llm)


@pytest.mark.parametrize("value", ["openai/a", "openai/b,openai/b", "[not json", '[{"api_key":1}]'])
def test_fallbacks_that_cannot_be_meant_are_refused(given: Any, value: str) -> None:
    with pytest.raises(ValidationError):
        given({"MEMLANE_LLM__MODEL": "openai/a", "MEMLANE_LLM__FALLBACKS": value})


@pytest.mark.parametrize(
    ("environ", "stages"),
    [
        ({}, 8),
        ({"MEMLANE_LLM__MODEL": "openai/gpt-4o-mini"}, 100),
        ({"MEMLANE_EMBEDDER__MODEL": "openai/text-embedding-3-small"}, 100),
        ({"MEMLANE_WORKER_CONCURRENCY": "50"}, 50),
    ],
)
def test_a_worker_that_waits_for_a_model_runs_more_stages_at_once(
    environ: dict[str, str], stages: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    assert settings.load().stages_at_once == stages
