"""The time of an event in parts: queued, stages, waits, and time that nothing accounts for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from pipeline.events.event_view import EventView, StageRun

# Shorter gaps are the time between two clocks' readings.
SHORTEST_GAP_MS = 1.0


@dataclass(frozen=True, slots=True)
class Bar:
    """A part of the time. `kind`: queued, stage, failed, waiting, running or unaccounted.

    `start` and `width` are shares of the whole. `note`: the reason of a wait, with its provider.
    """

    kind: str
    label: str
    start: float
    width: float
    ms: float
    run: StageRun | None = None
    note: str | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Waterfall:
    """The bars of an event in order, and the whole time. `gaps`: the bars that are unaccounted."""

    bars: Sequence[Bar]
    gaps: Sequence[Bar]
    total_ms: float

    @property
    def unaccounted_ms(self) -> float:
        """The time without an explanation."""
        return sum(gap.ms for gap in self.gaps)


@dataclass(frozen=True, slots=True)
class _Span:
    kind: str
    label: str
    start: datetime
    end: datetime
    run: StageRun | None = None
    note: str | None = None
    until: datetime | None = None

    @property
    def ms(self) -> float:
        return (self.end - self.start).total_seconds() * 1000


def waterfall(event: EventView, now: datetime) -> Waterfall:
    """The parts of an event's time since it was accepted, or since its last replay."""
    begun = event.replayed_at or event.created_at
    end = max(event.completed_at or now, begun)
    spans = [span for span in _spans(event, begun, end) if span.end > span.start]
    last = max([end, *(span.end for span in spans)])
    total_ms = max((last - begun).total_seconds() * 1000, 0.001)
    bars = [
        Bar(
            span.kind,
            span.label,
            (span.start - begun).total_seconds() * 1000 / total_ms,
            span.ms / total_ms,
            span.ms,
            span.run,
            span.note,
            span.until,
        )
        for span in spans
    ]
    return Waterfall(
        [bar for bar in bars if bar.kind != "unaccounted"],
        [bar for bar in bars if bar.kind == "unaccounted"],
        total_ms,
    )


def _spans(event: EventView, begun: datetime, end: datetime) -> list[_Span]:
    """The spans in order, without gaps between them."""
    runs = [run for run in event.stages if run.finished_at >= begun]
    spans, at = list[_Span](), begun
    failed: StageRun | None = None
    for run in runs:
        start = max(run.finished_at - timedelta(milliseconds=run.ms), begun)
        spans += _gap(at, start, failed, first=not spans, started=event.started_at)
        spans.append(
            _Span("failed" if run.code else "stage", run.stage, start, run.finished_at, run)
        )
        at, failed = max(at, run.finished_at), run if run.code else None
    if event.completed_at is None:
        return [*spans, _present(event, at, end)]
    return spans + _gap(at, end, failed, first=not spans, started=event.started_at)


def _gap(
    start: datetime,
    end: datetime,
    failed: StageRun | None,
    *,
    first: bool,
    started: datetime | None,
) -> list[_Span]:
    """The time between two runs: queued, waiting after a failed run, or unaccounted."""
    if (end - start).total_seconds() * 1000 < SHORTEST_GAP_MS:
        return []
    if failed is not None:
        note = " · ".join(part for part in (failed.code, failed.model) if part)
        return [_Span("waiting", "waiting", start, end, note=note)]
    if not first:
        return [_Span("unaccounted", "unaccounted", start, end)]
    picked = min(max(started or end, start), end)
    queued = [_Span("queued", "queued", start, picked)]
    return queued + _gap(picked, end, None, first=False, started=None)


def _present(event: EventView, start: datetime, end: datetime) -> _Span:
    """The part that has not ended."""
    if event.wait_code:
        note = " · ".join(part for part in (event.wait_code, event.wait_cause) if part)
        return _Span("waiting", "waiting", start, end, note=note, until=event.wait_until)
    if event.started_at is None:
        return _Span("queued", "queued", start, end)
    return _Span("running", event.stage or "running", start, end)
