"""docs/reference/failures.md."""

from __future__ import annotations

import inspect

from api.openapi import ERRORS
from deploy.docs.members import member_docs
from deploy.docs.tables import GENERATED, table
from pipeline.domain import errors
from pipeline.domain.events import FailureCode, Status

INTRO = """# Failures

## Event states

"""
CODES = """
## Failure codes

`code` of a FAILED event, and of the error body where it applies. The set is closed: a client can
branch on it. What failed attempts cost stands on the receipt. If only the graph stage fails, the
event is SUCCEEDED with `graph_status: FAILED`, and can be replayed from that stage; `PARTIAL` if
only some relations of the model's answer are invalid. `graph_detail` says why.

"""
STATUSES = """
## HTTP status codes

An error body has four strings: `error`, `detail` and `message` say what to change, `code` is a
failure code or the name of the status. A 400 repeats the text in `details.message`. A 500 quotes a
request id; the API log has the same id with the stack trace.

"""
TREE = """
## Error classes

The classes of `pipeline.domain.errors`, ordered by what helps.

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
