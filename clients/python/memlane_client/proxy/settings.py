"""Options of the memory proxy."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ProxySettings:
    """Addresses of the providers, and options. `user`: of requests that name none."""

    openai: str = "https://api.openai.com"
    anthropic: str = "https://api.anthropic.com"
    user: str | None = None
    max_tokens: int = 800
    search_timeout_s: float = 1.0
