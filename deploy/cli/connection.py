"""HTTP client of the API, for the commands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Self, TypeVar
from urllib.parse import quote

import httpx

from deploy.stack.failure import StackError
from deploy.stack.layout import command_line
from deploy.stack.waiting import wait_until

JsonT = TypeVar("JsonT", dict[str, Any], list[dict[str, Any]])

# Longer than the longest `wait` of the API.
TIMEOUT_S = 90.0
# Hosts of an API on this machine, which no proxy of the environment can reach.
OWN_HOSTS = ("127.0.0.1", "::1", "localhost")
# Tries of a request while the server is busy, and the longest pause between two of them.
MOST_TRIES, LONGEST_WAIT_S = 100, 30.0


class ApiConnection:
    """Calls with one API key. All methods raise StackError with the API's error message."""

    def __init__(
        self,
        url: str,
        key: str,
        *,
        transport: httpx.BaseTransport | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        """Prepare a client; it connects with its first request. `transport`: for tests."""
        self.url = url.rstrip("/")
        with self._reached():
            self._http = httpx.Client(
                base_url=self.url,
                headers={"Authorization": f"Token {key}"},
                timeout=timeout_s,
                trust_env=httpx.URL(self.url).host not in OWN_HOSTS,
                transport=transport,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def get(self, path: str, **params: str | int | float | None) -> dict[str, Any]:
        """Send a GET request and return the JSON object. Parameters that are None are left out."""
        query = {name: value for name, value in params.items() if value is not None}
        return self._request("GET", path, params=query)

    def rows(self, path: str) -> list[dict[str, Any]]:
        """Send a GET request and return the JSON array."""
        with self._reached():
            response = self._http.get(path)
        return self._json(response, list)

    def post(self, path: str, **body: object) -> dict[str, Any]:
        """Send a POST request and return the JSON object. Fields that are None are left out."""
        fields = {name: value for name, value in body.items() if value is not None}
        return self._request("POST", path, json=fields)

    def stream(self, path: str, **params: str | None) -> Iterator[str]:
        """Send a GET request and yield the lines of the response as they arrive.

        A line ends at a line feed only: httpx would also split at U+2028 and others within texts.
        """
        query = {name: value for name, value in params.items() if value is not None}
        with self._reached(), self._http.stream("GET", path, params=query) as response:
            if not response.is_success:
                response.read()
                raise StackError(explanation(response))
            rest = b""
            for piece in response.iter_bytes():
                *lines, rest = (rest + piece).split(b"\n")
                yield from (line.decode() for line in lines)
            if rest:
                yield rest.decode()

    def submit(self, path: str, *, key: str | None = None, **body: object) -> dict[str, Any]:
        """Like `post`; a server that is busy is asked again after the time that it names.

        `key`: an idempotency key.
        """
        headers = {} if key is None else {"Idempotency-Key": key}
        for _ in range(MOST_TRIES):
            with self._reached():
                response = self._http.post(path, json=body, headers=headers)
            if response.status_code not in (429, 503):
                break
            wait_until(lambda: False, min(retry_after_s(response), LONGEST_WAIT_S))
        return self._json(response, dict)

    @contextmanager
    def _reached(self) -> Iterator[None]:
        """Errors: StackError if no server answers."""
        try:
            yield
        except (httpx.RequestError, httpx.InvalidURL) as error:
            raise StackError(
                f"Nothing answers at {self.url} ({type(error).__name__}). Start the local stack"
                f" with `{command_line('up')}`, or name another API with --url."
            ) from error

    def delete(self, path: str, **params: str | bool) -> dict[str, Any]:
        """Send a DELETE request and return the JSON object."""
        return self._request("DELETE", path, params=params)

    def _request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str | int | float | bool] | None = None,
        json: object = None,
    ) -> dict[str, Any]:
        """Send a request and return the JSON object.

        Errors: StackError if no server answers, or for an error response.
        """
        with self._reached():
            response = self._http.request(method, path, params=params, json=json)
        return self._json(response, dict)

    def _json(self, response: httpx.Response, kind: type[JsonT]) -> JsonT:
        """The JSON object or array of a response.

        Errors: StackError for an error response, and if another server than Memlane answered.
        """
        if not response.is_success:
            raise StackError(explanation(response))
        try:
            value = response.json()
        except ValueError:
            value = None
        if not isinstance(value, kind):
            raise StackError(f"{self.url} is not a Memlane: its response is not a JSON object.")
        return value


def encoded(identity: str) -> str:
    """An id as a part of a path: encoded, so that it cannot lead to another route.

    Errors: StackError for an empty one.
    """
    if not identity.strip():
        raise StackError("The id is empty.")
    return quote(identity, safe="")


def retry_after_s(response: httpx.Response) -> float:
    """Seconds of the Retry-After header; 1 without one, or for a date."""
    text = response.headers.get("Retry-After", "")
    return float(text) if text.isascii() and text.isdigit() else 1.0


def explanation(response: httpx.Response) -> str:
    """The API's error message with the status; the status's name if another server answered."""
    try:
        message = response.json()["error"]
    except (ValueError, KeyError, TypeError):
        message = response.reason_phrase
    return f"{response.status_code}: {message}"
