"""Hashes of the settings that a stack was started with, to find out which ones changed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping

from pydantic import SecretStr

from deploy.stack.command import inherited_environment
from pipeline.settings import PREFIX, Settings

DIGEST_BYTES = 16


def fingerprint(settings: Settings, salt: str) -> dict[str, str]:
    """A keyed hash of each setting, by environment name."""
    return {name: _digest(value, salt) for name, value in _values(settings)}


def changes(settings: Settings, salt: str, noted: Mapping[str, str]) -> list[str]:
    """Names of the settings that differ from the hashes in `noted`; none if `noted` is empty."""
    if not noted:
        return []
    current = fingerprint(settings, salt)
    names = current.keys() | noted.keys()
    return sorted(name for name in names if current.get(name) != noted.get(name))


def _values(settings: Settings) -> Iterator[tuple[str, object]]:
    # The data directory identifies the stack; the supervisor gets it as an absolute path.
    for name, value in settings.model_dump(exclude={"data_dir"}).items():
        parts = value if isinstance(value, dict) else {"": value}
        for part, inner in parts.items():
            yield PREFIX + "__".join(filter(None, (name, part))).upper(), inner
    yield from _provider_keys(settings)


def _provider_keys(settings: Settings) -> Iterator[tuple[str, object]]:
    env = inherited_environment()
    yield from ((name, env[name]) for name in provider_names(settings) if env.get(name))


def provider_names(settings: Settings) -> set[str]:
    """Names of the keys that LiteLLM reads from the environment, such as OPENAI_API_KEY."""
    models = (*settings.llm.chain, settings.embedder, settings.reranker)
    return {f"{model.model.partition('/')[0].upper()}_API_KEY" for model in models}


def _digest(value: object, salt: str) -> str:
    text = _plain(value).encode()
    return hashlib.blake2b(text, key=salt.encode(), digest_size=DIGEST_BYTES).hexdigest()


def _plain(value: object) -> str:
    """The value as text, with its secrets; `str` would hide them in a list or mapping."""
    match value:
        case SecretStr():
            return value.get_secret_value()
        case tuple() | list():
            return str([_plain(item) for item in value])
        case dict():
            return str({name: _plain(item) for name, item in value.items()})
        case _:
            return str(value)
