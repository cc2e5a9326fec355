"""A refused key or model: which setting is named, and what is quoted of the provider's answer."""

from __future__ import annotations

import json

import pytest

from pipeline.adapters.provider_calls import RemoteModel
from pipeline.adapters.refused_settings import provider_words, refused_setting

KEY = "sk-very-secret-1"
REMOTE = RemoteModel("openai/gpt", api_key=KEY, setting="MEMLANE_EMBEDDER")


@pytest.mark.parametrize(
    ("status", "setting"), [(401, "API_KEY"), (402, "API_KEY"), (403, "API_KEY"), (404, "MODEL")]
)
def test_the_setting_is_named(status: int, setting: str) -> None:
    error = refused_setting(REMOTE, status, '{"error": {"message": "No."}}', "")
    assert str(error) == f"openai/gpt: HTTP {status}, “No”. Check MEMLANE_EMBEDDER__{setting}."


@pytest.mark.parametrize("status", [None, 400, 422, 429, 500])
def test_other_refusals_are_not_about_a_setting(status: int | None) -> None:
    assert refused_setting(REMOTE, status, "no", "") is None


def test_a_moderated_prompt_is_not_about_a_setting() -> None:
    text = '{"error": {"message": "Your input was flagged by the moderation"}}'
    assert refused_setting(REMOTE, 403, text, "") is None


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ('{"error": {"message": "Wrong  key\\n here."}}', "Wrong key here"),
        ('{"error": "invalid x-api-key"}', "invalid x-api-key"),
        ('{"detail": "Unauthorized"}', "Unauthorized"),
        ("litellm.AuthenticationError: OpenAIException - Wrong key", "Wrong key"),
        ("<html>401</html>", ""),
        ("{broken", ""),
        (json.dumps({"message": f"key {KEY} or sk-proj-12345678901"}), "key … or …"),
        (json.dumps({"message": "you said: I moved to Rome"}), ""),
        (json.dumps({"message": "x " * 5_000}), ("x " * 80).rstrip()),
    ],
)
def test_only_the_message_is_quoted_without_keys_and_user_text(text: str, quoted: str) -> None:
    assert provider_words(text, "{'content': 'I moved to Rome.'}", KEY) == quoted
