"""JSON requests to any server that speaks OpenAI's API, straight over HTTP.

Shared by the adapters named *_openai: connections, the key, and errors named by what helps.
"""

from __future__ import annotations

import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from http import HTTPStatus
from urllib.parse import urlsplit

import aiohttp
import orjson

from pipeline.adapters.provider_calls import PASSING_STATUSES, Throttled, retry_after_s
from pipeline.domain.errors import ModelRejected, ModelUnavailable

PROVIDER = "openai/"
OPENAI_BASE = "https://api.openai.com/v1"
# Idle connections are closed before a load balancer does it (60 s is the shortest common limit).
KEEPALIVE_S = 30.0


@dataclass(frozen=True, slots=True)
class Response:
    """`headers` have lower-case names."""

    status: int
    headers: Mapping[str, str]
    content: bytes


class OpenAIHttp:
    """The connections to one endpoint of one model named `openai/<model>`.

    `api_base` ends in `/v1`. `connections`: how many at once; 0 for no limit.
    """

    def __init__(
        self,
        model: str,
        endpoint: str,
        *,
        api_base: str | None,
        api_key: str | None,
        connections: int,
    ) -> None:
        self.model = model
        self.remote_model = model.removeprefix(PROVIDER)
        self._url = (api_base or OPENAI_BASE).rstrip("/") + endpoint
        self._key = api_key
        self._connections = connections

    async def post(self, body: Mapping[str, object], *, limit_s: float) -> Response:
        """The response, whatever its status. Errors: ModelUnavailable where there is none."""
        timeout = aiohttp.ClientTimeout(total=limit_s)
        try:
            async with self._session.post(
                self._url,
                data=orjson.dumps(body),
                timeout=timeout,
                proxy=self._proxy,
                allow_redirects=False,
            ) as response:
                content = await response.read()
        except TimeoutError:
            raise ModelUnavailable(f"{self.model}: no answer within {limit_s:g} s") from None
        except aiohttp.ClientError as error:
            raise ModelUnavailable(f"{self.model}: {type(error).__name__}") from None
        headers = {name.lower(): value for name, value in response.headers.items()}
        return Response(response.status, headers, content)

    def error(self, response: Response) -> ModelUnavailable | ModelRejected:
        """The error by what helps. It names the status only: a body may repeat the texts."""
        text = f"{self.model}: HTTP {response.status}"
        if response.status == HTTPStatus.TOO_MANY_REQUESTS:
            return Throttled(text, retry_after_s=retry_after_s(response.headers))
        if response.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            return ModelUnavailable(text, retry_after_s=retry_after_s(response.headers))
        if response.status in PASSING_STATUSES:
            return ModelUnavailable(text, retry_after_s=retry_after_s(response.headers))
        return ModelRejected(text)

    async def close(self) -> None:
        if "_session" in vars(self):
            await self._session.close()

    @cached_property
    def _session(self) -> aiohttp.ClientSession:
        """Made at the first request: a session belongs to the loop that runs then."""
        headers = {"content-type": "application/json"}
        if self._key:
            headers["authorization"] = f"Bearer {self._key}"
        connector = aiohttp.TCPConnector(limit=self._connections, keepalive_timeout=KEEPALIVE_S)
        return aiohttp.ClientSession(connector=connector, headers=headers)

    @cached_property
    def _proxy(self) -> str | None:
        """The proxy that the environment names for this server, looked up once."""
        url = urlsplit(self._url)
        if urllib.request.proxy_bypass(url.hostname or ""):
            return None
        proxies = urllib.request.getproxies()
        return proxies.get(url.scheme) or proxies.get("all")
