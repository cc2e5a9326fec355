"""A sender of webhooks that is built at the first delivery, because its HTTP client takes 7 MB."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pipeline.ports import WebhookSender


class SenderOnDemand:
    """The WebhookSender port. `build` makes the sender that it passes each request to."""

    def __init__(self, build: Callable[[], WebhookSender]) -> None:
        self._build = build
        self._sender: WebhookSender | None = None

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> int:
        if self._sender is None:
            self._sender = self._build()
        return await self._sender.post(url, body, headers)

    async def close(self) -> None:
        if self._sender is not None:
            await self._sender.close()
