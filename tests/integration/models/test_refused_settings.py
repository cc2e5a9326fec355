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


@pytest.mark.parametrize(
    ("status", "message", "part"),
    [
        (400, "Your credit balance is too low to access the Anthropic API.", "API_KEY"),
        (400, "You have reached your specified API usage limits.", "API_KEY"),
        (400, "API key not valid. Please pass a valid API key.", "API_KEY"),
        (400, "API key expired. Please renew the API key.", "API_KEY"),
        (400, "Incorrect API key provided: xa***. See your console.", "API_KEY"),
        (400, "User location is not supported for the API use.", "API_KEY"),
        (400, "Billing hard limit has been reached", "API_KEY"),
        (400, "Model Not Exist", "MODEL"),
        (400, "acme/small is not a valid model ID", "MODEL"),
        (400, "Invalid model: small", "MODEL"),
        (422, "The model `small` does not exist", "MODEL"),
    ],
)
def test_a_bad_request_about_the_account_or_the_model_names_its_setting(
    status: int, message: str, part: str
) -> None:
    """Some providers refuse a key, a balance or a model as a bad request."""
    bodies: list[object] = [{"error": {"message": message}}, [{"error": {"message": message}}]]
    for body in bodies:
        error = refused_setting(REMOTE, status, json.dumps(body), "I moved to Rome.")
        assert error is not None
        assert str(error).endswith(f"Check MEMLANE_EMBEDDER__{part}.")
    through_litellm = f"litellm.BadRequestError: XException - {json.dumps(bodies[0])}"
    assert refused_setting(REMOTE, status, through_litellm, "") is not None


def test_a_used_up_quota_is_about_the_key_and_a_rate_limit_is_not() -> None:
    quota = {"message": "You exceeded your current quota.", "code": "insufficient_quota"}
    error = refused_setting(REMOTE, 429, json.dumps({"error": quota}), "")
    assert str(error).endswith("Check MEMLANE_EMBEDDER__API_KEY.")
    minute = {"message": "You exceeded your current quota.", "status": "RESOURCE_EXHAUSTED"}
    assert refused_setting(REMOTE, 429, json.dumps({"error": minute}), "") is None


def test_words_of_a_user_in_a_refusal_are_not_about_a_setting() -> None:
    sent = "My credit balance is low, said Ann."
    body = json.dumps({"error": {"message": f"Cannot process: {sent}"}})
    assert refused_setting(REMOTE, 400, body, sent) is None


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
