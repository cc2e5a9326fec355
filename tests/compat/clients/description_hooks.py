"""What an answer to a generated request must be, beside no server error."""

from __future__ import annotations

import schemathesis  # type: ignore[import-not-found,unused-ignore]

SAYS = ("error", "detail", "message", "code")


@schemathesis.check
def errors_say_what_to_change(ctx, response, case) -> None:
    """Every refusal is one body of four strings, whichever client reads it."""
    if response.status_code < 400:
        return
    body = response.json()
    assert all(isinstance(body.get(name), str) and body[name] for name in SAYS), body
