"""Checks of the answers to generated requests, in addition to the absence of server errors."""

from __future__ import annotations

import schemathesis  # type: ignore[import-not-found,unused-ignore]

SAYS = ("error", "detail", "message", "code")


@schemathesis.check
def errors_say_what_to_change(ctx, response, case) -> None:
    """Check that an error has a body of four strings, for all clients."""
    if response.status_code < 400:
        return
    body = response.json()
    assert all(isinstance(body.get(name), str) and body[name] for name in SAYS), body
