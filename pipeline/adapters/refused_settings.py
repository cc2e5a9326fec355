"""Refusals that depend on a setting, not on the prompt: wrong key, no credit, unknown model."""

from __future__ import annotations

import json
import re

from pipeline.adapters.provider_calls import RemoteModel
from pipeline.domain.errors import SettingRejected

# The part of the setting that each HTTP status is about.
SETTING_OF = {401: "API_KEY", 402: "API_KEY", 403: "API_KEY", 404: "MODEL"}
# Some providers refuse a key, an account or a model as a bad request, or a used-up balance as a
# rate limit. Gemini words a limit per minute as a used-up quota; only the code differs.
# Source: https://docs.claude.com/en/api/errors, https://ai.google.dev/gemini-api/docs/api-key,
# https://platform.openai.com/docs/guides/error-codes, https://api-docs.deepseek.com
_BAD_REQUEST = {
    "API_KEY": re.compile(
        r"api[ _-]?key (not valid|(is |was )?(invalid|expired|revoked))"
        r"|(incorrect|invalid|expired) api[ _-]?key|credit balance|billing (hard )?limit"
        r"|insufficient[ _](quota|balance|credits?|funds)|api usage limits?"
        r"|location is not supported",
        re.IGNORECASE,
    ),
    "MODEL": re.compile(
        r"model[ _]not[ _](exist|found)|(invalid|unknown) model\b|not a valid model"
        r"|\bmodel\b.{0,80}\bdoes not exist",
        re.IGNORECASE,
    ),
}
_RATE_LIMIT = {"API_KEY": re.compile(r"insufficient_quota|billing_not_active", re.IGNORECASE)}
_BY_TEXT = {400: _BAD_REQUEST, 422: _BAD_REQUEST, 429: _RATE_LIMIT}
# Some gateways refuse a single prompt with 403.
# Source: https://openrouter.ai/docs/api-reference/errors
_ABOUT_PROMPT = re.compile(
    r"moderat|flagged|content.?(policy|filter)|safety|guardrail", re.IGNORECASE
)
# Prefix that LiteLLM adds to the text of a provider, such as "AuthenticationError: ".
_LITELLM = re.compile(r"^(?:[\w.]+(?:Exception|Error)\s*[-:]\s*)+")
# Keys and parts of keys: a long word with a digit or a mask in it.
_SECRET = re.compile(r"(?=\S*[\d*])[\w*.-]{12,}|\S*\*{3,}\S*")
# Characters of a message that are read and quoted; words in a row that count as a repetition.
LONGEST_READ, LONGEST_QUOTE, RUN = 2_000, 160, 3


def refused_setting(
    remote: RemoteModel, status: int | None, text: str, sent: str
) -> SettingRejected | None:
    """The error if the refusal with this status and text is about a setting, else None.

    `text`: the body of the response, or the text of LiteLLM's error. `sent`: the request, of which
    nothing is quoted.
    """
    part = _part(status or 0, text, sent)
    if part is None:
        return None
    words = provider_words(text, sent, remote.api_key)
    quoted = f", “{words}”" if words else ""
    return SettingRejected(f"{remote.name}: HTTP {status}{quoted}. Check {remote.setting}__{part}.")


def redirects(remote: RemoteModel) -> str:
    """The text of the error for an address that redirects its requests."""
    return f"{remote.name}: the address redirects. Check {remote.setting}__API_BASE."


def _part(status: int, text: str, sent: str) -> str | None:
    """The part of the setting that a refusal is about; None if it is about the prompt.

    Words that stand in the request too may be a user's, and prove nothing.
    """
    if status in SETTING_OF:
        moderated = status == 403 and _ABOUT_PROMPT.search(text)
        return None if moderated else SETTING_OF[status]
    for part, pattern in _BY_TEXT.get(status, {}).items():
        words = pattern.search(text[:LONGEST_READ])
        if words and words[0].casefold() not in sent.casefold():
            return part
    return None


def provider_words(text: str, sent: str, key: str | None) -> str:
    """The provider's message in one short line, without keys; empty if it repeats the request."""
    message = " ".join(_message(text)[:LONGEST_READ].split())
    if key:
        message = message.replace(key, "…")
    if _repeats(message, sent):
        return ""
    return _SECRET.sub("…", message)[:LONGEST_QUOTE].rstrip(" .")


def _message(text: str) -> str:
    """The message in an error body: `error.message`, `message`, `detail` or `error`."""
    start = text.find("{")
    try:  # Gemini puts the error in a list, and LiteLLM may add words.
        body = json.JSONDecoder().raw_decode(text, start)[0] if start >= 0 else None
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict):
        return "" if start >= 0 or text.lstrip().startswith("<") else _LITELLM.sub("", text)
    inner = body.get("error")
    for part in (inner, body):
        if isinstance(part, dict):
            for name in ("message", "detail"):
                if isinstance(part.get(name), str):
                    return str(part[name])
    return inner if isinstance(inner, str) else ""


def _repeats(message: str, sent: str) -> bool:
    """True if three words in a row stand in the request too: the provider quotes user text."""
    plain = " ".join(re.findall(r"\w+", sent.casefold()))
    words = re.findall(r"\w+", message.casefold())
    runs = (" ".join(words[at : at + RUN]) for at in range(max(1, len(words) - RUN + 1)))
    return any(run and run in plain for run in runs)
