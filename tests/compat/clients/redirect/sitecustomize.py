"""Redirect of httpx requests: those to the packages' fixed host go to MEMLANE_URL.

Python imports this module at start, through PYTHONPATH.
"""

from __future__ import annotations

import os

import httpx

WIRED_IN = "api.mem0.ai"
SERVER = httpx.URL(os.environ["MEMLANE_URL"])

send, send_async = httpx.HTTPTransport.handle_request, httpx.AsyncHTTPTransport.handle_async_request


def redirect(request: httpx.Request) -> httpx.Request:
    if request.url.host == WIRED_IN:
        request.url = request.url.copy_with(
            scheme=SERVER.scheme, host=SERVER.host, port=SERVER.port
        )
        request.headers["Host"] = request.url.netloc.decode()
    return request


def handle_request(self: httpx.HTTPTransport, request: httpx.Request) -> httpx.Response:
    return send(self, redirect(request))


async def handle_async_request(
    self: httpx.AsyncHTTPTransport, request: httpx.Request
) -> httpx.Response:
    return await send_async(self, redirect(request))


httpx.HTTPTransport.handle_request = handle_request  # type: ignore[method-assign]
httpx.AsyncHTTPTransport.handle_async_request = handle_async_request  # type: ignore[method-assign]
