"""The signature of a webhook delivery: HMAC-SHA256."""

from __future__ import annotations

import base64
import hashlib
import hmac
from uuid import UUID


def sign(secret: str, message_id: UUID, sent_at: int, body: bytes) -> str:
    """Return the `webhook-signature` header of Standard Webhooks, version 1.

    `sent_at`: unix seconds, the same as in the `webhook-timestamp` header.

    Source: https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
    """
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{message_id}.{sent_at}.".encode() + body
    return "v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
