"""docs/reference/failures.md."""

from __future__ import annotations

import inspect

from api.openapi import ERRORS
from deploy.docs.members import member_docs
from deploy.docs.tables import GENERATED, table
from pipeline.domain import errors
from pipeline.domain.events import FailureCode, Status

INTRO = """# Failures

An event failed or waits, or a request got an error. This page says what it means and what to do.

## Event states

"""
CODES = """
## Failure codes

`code` of a FAILED event, and of an error body where it applies. A client can branch on these codes:
there are no others. The receipt has the cost of failed attempts. A failed event can be
[replayed](../howto/events.md#replay-a-failed-one).

If only the graph stage fails, the event is SUCCEEDED with `graph_status: FAILED`, or `PARTIAL` if
only some relations of the model's answer are invalid. `graph_detail` says why, and the graph stage
alone can be replayed.

"""
STATUSES = """
## HTTP status codes

An error body has four strings: `error`, `detail` and `message` say what to change, `code` is a
failure code or the name of the status. A 400 repeats the text in `details.message`. A 500 has a
request id; the API log has the stack trace under the same id. With the code `LEDGER_REFUSED`,
PostgreSQL refuses a statement of this request, which is a defect: the log line `ledger_refused` has
the SQLSTATE and the constraint, and no text of a user.

"""
TREE = """
## Error classes

The classes of `pipeline.domain.errors`, in groups by what helps: a retry or not.

```text
"""


def page() -> str:
    """States, failure codes, HTTP statuses and the tree of error classes."""
    tree = inspect.getdoc(errors) or ""
    lines = [line[4:] for line in tree.splitlines() if line.startswith("    ")]
    return "".join(
        (
            GENERATED,
            INTRO,
            table(("state", "meaning"), _rows(Status)),
            CODES,
            table(("code", "meaning"), _rows(FailureCode)),
            STATUSES,
            table(("status", "meaning"), ERRORS.items()),
            TREE,
            "\n".join(lines),
            "\n```\n",
        )
    )


def _rows(cls: type) -> list[tuple[str, str]]:
    return [(f"`{name}`", text) for name, text in member_docs(cls).items()]
