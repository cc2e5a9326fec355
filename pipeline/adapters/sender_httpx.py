"""Sender of webhooks over HTTP. By default it connects to public addresses only.

A name is resolved once, its addresses are checked, and the request goes to a checked address. If
the HTTP client resolved the name again, the answer could be an address of our own network.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import httpx

from pipeline.domain.errors import Unanswered, Undeliverable
from pipeline.webhooks.addresses import Address, is_public

# Maximum number of deliveries that one process attempts at the same time.
CONNECTIONS = 64
# Look-ups at the same time: one without an answer lasts up to four times as long as its delivery,
# with several name servers or search domains.
LOOKUPS = 4 * CONNECTIONS


class HttpSender:
    """The WebhookSender port. `private`: private and link-local addresses are allowed too."""

    def __init__(self, *, timeout_s: float, private: bool) -> None:
        self._timeout_s = timeout_s
        self._private = private
        limits = httpx.Limits(max_connections=CONNECTIONS, max_keepalive_connections=0)
        # No proxy, no credentials from the environment and no redirects: only the checked address.
        self._http = httpx.AsyncClient(
            timeout=timeout_s, limits=limits, trust_env=False, follow_redirects=False
        )
        # The event loop resolves two names at a time, those of the database and the broker among
        # them, and a look-up without an answer lasts 10 s or longer.
        self._lookups = ThreadPoolExecutor(LOOKUPS, thread_name_prefix="lookup")

    async def close(self) -> None:
        await self._http.aclose()
        self._lookups.shutdown(wait=False, cancel_futures=True)

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> int:
        try:
            async with asyncio.timeout(self._timeout_s):
                return await self._post(url, body, headers)
        except (TimeoutError, httpx.TimeoutException):
            raise Unanswered(f"No answer within {self._timeout_s:g} s.") from None
        except (httpx.HTTPError, httpx.InvalidURL, OSError, UnicodeError) as error:
            raise Undeliverable(f"Not reached: {type(error).__name__}.") from error

    async def _post(self, url: str, body: bytes, headers: Mapping[str, str]) -> int:
        """Send the request to a checked address of the host, and return the status.

        The certificate is verified for the name in the URL, not for the address.
        """
        target = httpx.URL(url)
        address = await self._checked(target)
        request = self._http.build_request(
            "POST",
            target.copy_with(host=str(address)),
            content=body,
            headers={**headers, "Host": target.netloc.decode()},
            extensions={"sni_hostname": target.raw_host.decode()},
        )
        response = await self._http.send(request, stream=True)
        # The body is not read: it may be endless.
        await response.aclose()
        return response.status_code

    async def _checked(self, target: httpx.URL) -> Address:
        """An address of the host.

        Errors: Undeliverable if any of its addresses is private, because the receiver controls the
        name.
        """
        port = target.port or (443 if target.scheme == "https" else 80)
        resolve = partial(socket.getaddrinfo, target.host, port, type=socket.SOCK_STREAM)
        resolved = await asyncio.get_running_loop().run_in_executor(self._lookups, resolve)
        # Remove the zone of an IPv6 link-local address.
        addresses = [ipaddress.ip_address(str(entry[4][0]).partition("%")[0]) for entry in resolved]
        if not self._private and not all(map(is_public, addresses)):
            raise Undeliverable(
                "Its name leads to a private address; MEMLANE_WEBHOOK_PRIVATE=on allows that."
            )
        return addresses[0]
