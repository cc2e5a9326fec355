"""JSON requests to any server with OpenAI's API: connections, headers and errors.

Shared by the adapters named *_openai.
"""

from __future__ import annotations

import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from http import HTTPStatus
from urllib.parse import urlsplit

import aiohttp
import orjson

from pipeline.adapters.provider_calls import PASSING_STATUSES, RemoteModel, Throttled, retry_after_s
from pipeline.adapters.refused_settings import redirects, refused_setting
from pipeline.domain.errors import ModelRejected, ModelUnavailable, SettingRejected

PROVIDER = "openai/"
OPENAI_BASE = "https://api.openai.com/v1"
# Idle connections are closed before a load balancer does it (60 s is the shortest common limit).
KEEPALIVE_S = 30.0


@dataclass(frozen=True, slots=True)
class Response:
    """An HTTP response. The names in `headers` are lower case."""

    status: int
    headers: Mapping[str, str]
    content: bytes


class OpenAIHttp:
    """Connections to one endpoint of one model named `openai/<model>`.

    The model's `api_base` ends in `/v1`. `connections`: maximum number; 0 for no limit.
    """

    def __init__(self, remote: RemoteModel, endpoint: str, *, connections: int) -> None:
        self.model = remote.name
        self.remote_model = remote.name.removeprefix(PROVIDER)
        self._remote = remote
        self._url = (remote.api_base or OPENAI_BASE).rstrip("/") + endpoint
        self._connections = connections

    async def post(self, body: Mapping[str, object], *, limit_s: float) -> Response:
        """Send a request. Returns any response; errors: ModelUnavailable if there is none."""
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
        return _as_reported(Response(response.status, headers, content))

    def error(
        self, response: Response, sent: Mapping[str, object]
    ) -> ModelUnavailable | ModelRejected:
        """The error of a response to the request `sent`.

        It names the status, because a body can repeat user text. The body is quoted only if it
        refuses a setting and repeats nothing of the request.
        """
        if HTTPStatus.MULTIPLE_CHOICES <= response.status < HTTPStatus.BAD_REQUEST:
            return SettingRejected(redirects(self._remote))
        body = response.content.decode(errors="replace")
        if refused := refused_setting(self._remote, response.status, body, str(sent)):
            return refused
        status, text = response.status, f"{self.model}: HTTP {response.status}"
        if status == HTTPStatus.TOO_MANY_REQUESTS:
            words = "" if "retryDelay" in str(sent) else body
            wait_s = retry_after_s(response.headers, words, throttled=True)
            return Throttled(text, retry_after_s=wait_s)
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status in PASSING_STATUSES:
            return ModelUnavailable(text, retry_after_s=retry_after_s(response.headers))
        return ModelRejected(text)

    async def close(self) -> None:
        """Close the connections."""
        if "_session" in vars(self):
            await self._session.close()

    @cached_property
    def _session(self) -> aiohttp.ClientSession:
        """Session, created at the first request because it belongs to the running event loop."""
        headers = {"content-type": "application/json"}
        if self._remote.api_key:
            headers["authorization"] = f"Bearer {self._remote.api_key}"
        if self._remote.organization:
            headers["openai-organization"] = self._remote.organization
        connector = aiohttp.TCPConnector(limit=self._connections, keepalive_timeout=KEEPALIVE_S)
        return aiohttp.ClientSession(connector=connector, headers=headers)

    @cached_property
    def _proxy(self) -> str | None:
        """Proxy from the environment for this server, read once."""
        url = urlsplit(self._url)
        if urllib.request.proxy_bypass(url.hostname or ""):
            return None
        proxies = urllib.request.getproxies()
        return proxies.get(url.scheme) or proxies.get("all")


def _as_reported(response: Response) -> Response:
    """The response, with the status of an error that a gateway reports in a body with status 200.

    An error without a status is one of the server.
    Source: https://openrouter.ai/docs/api-reference/errors
    """
    if response.status != HTTPStatus.OK or b'"error"' not in response.content:
        return response
    try:
        answer = orjson.loads(response.content)
    except orjson.JSONDecodeError:
        return response
    error = answer.get("error") if isinstance(answer, dict) else None
    if not error or answer.get("choices") or answer.get("data"):
        return response
    code = error.get("code") if isinstance(error, dict) else None
    if not isinstance(code, int) or code < HTTPStatus.BAD_REQUEST:
        code = HTTPStatus.BAD_GATEWAY
    return replace(response, status=code)
