"""Traces: one for each event, from the request that adds it to the calls of the models.

A hint carries no context, because hints are lost and repeated. The event's row has the
`traceparent` of its request (W3C Trace Context): all stages of the event belong to that trace, in
any process and after any restart.

Names and attributes follow the GenAI conventions of OpenTelemetry: `search_memory`, `create_memory`
and the like, `chat` and `embeddings`. A span has ids, numbers and codes; texts of users only with
`MEMLANE_TRACES_TEXTS=on`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Literal, Protocol

from pipeline.domain.errors import StageError

Attributes = Mapping[str, str | int | float | bool | None]
# SERVER answers a request, CLIENT calls another service.
Kind = Literal["SERVER", "CLIENT", "INTERNAL"]
HEADER = "traceparent"


class TraceSpan:
    """A span that runs. This one is that of a process without traces: its methods do nothing."""

    @property
    def traceparent(self) -> str | None:
        """Its trace and id, as the W3C header. None: it is not recorded."""
        return None

    def rename(self, name: str) -> None:
        """Set the name, if it is known only at the end."""

    def set(self, attributes: Attributes) -> None:
        """Set attributes. None sets nothing."""

    def text(self, name: str, value: str) -> None:
        """Set an attribute with a text of a user, if `MEMLANE_TRACES_TEXTS` is on."""

    def fail(self, code: str) -> None:
        """Mark the span as failed, with the code of the error."""


class Tracer(Protocol):
    """Records spans. `parent`, `links`: traceparents; without a parent, the span that runs."""

    def span(
        self,
        name: str,
        attributes: Attributes,
        *,
        kind: Kind,
        parent: str | None,
        links: Sequence[str],
    ) -> AbstractContextManager[TraceSpan]:
        """Record a span around the block, without the message of its exception."""

    def record(
        self,
        name: str,
        attributes: Attributes,
        *,
        started_ns: int,
        ended_ns: int,
        parent: str,
        links: Sequence[str],
    ) -> None:
        """Record a span that has ended. Times are in nanoseconds since 1970."""

    def current(self) -> TraceSpan:
        """Return the span that runs."""


class _Process:
    """The tracer of this process; None: no traces."""

    tracer: Tracer | None = None


_NONE = TraceSpan()


def use(tracer: Tracer | None) -> None:
    """Record the spans of this process by this tracer, or record none."""
    _Process.tracer = tracer


@contextmanager
def span(
    name: str,
    attributes: Attributes,
    *,
    kind: Kind = "INTERNAL",
    parent: str | None = None,
    links: Sequence[str] = (),
) -> Iterator[TraceSpan]:
    """A span around the block. An exception marks it as failed, by its code or its class."""
    if _Process.tracer is None:
        yield _NONE
        return
    recorded = _Process.tracer.span(name, attributes, kind=kind, parent=parent, links=links)
    with recorded as running:
        try:
            yield running
        except BaseException as error:
            # The message may quote a user's text.
            running.fail(error.code if isinstance(error, StageError) else type(error).__name__)
            raise


def record(
    name: str,
    attributes: Attributes,
    *,
    started_ns: int,
    ended_ns: int,
    parent: str,
    links: Sequence[str] = (),
) -> None:
    """Record a span that has ended: see `Tracer.record`."""
    if _Process.tracer is not None:
        _Process.tracer.record(
            name, attributes, started_ns=started_ns, ended_ns=ended_ns, parent=parent, links=links
        )


def current() -> TraceSpan:
    """The span that runs."""
    return _NONE if _Process.tracer is None else _Process.tracer.current()
