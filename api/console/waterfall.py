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

    `note`: the reason of a wait, with its provider.
    """

    kind: str
    label: str
    start: datetime
    end: datetime
    run: StageRun | None = None
    note: str | None = None
    until: datetime | None = None

    @property
    def ms(self) -> float:
        """Length of the part."""
        return _ms(self.start, self.end)


@dataclass(frozen=True, slots=True)
class Waterfall:
    """The bars of an event in order, and the whole time. `gaps`: the bars that are unaccounted."""

    begun: datetime
    bars: Sequence[Bar]
    gaps: Sequence[Bar]
    total_ms: float

    def before(self, bar: Bar) -> float:
        """Share of the whole time before the bar."""
        return _ms(self.begun, bar.start) / self.total_ms

    def width(self, bar: Bar) -> float:
        """Share of the whole time that the bar takes."""
        return bar.ms / self.total_ms

    @property
    def unaccounted_ms(self) -> float:
        """The time without an explanation."""
        return sum(gap.ms for gap in self.gaps)


def waterfall(event: EventView, now: datetime) -> Waterfall:
    """The parts of an event's time since it was accepted, or since its last replay."""
    begun = event.replayed_at or event.created_at
    end = max(event.completed_at or now, begun)
    bars = [bar for bar in _bars(event, begun, end) if bar.end > bar.start]
    last = max([end, *(bar.end for bar in bars)])
    return Waterfall(
        begun,
        [bar for bar in bars if bar.kind != "unaccounted"],
        [bar for bar in bars if bar.kind == "unaccounted"],
        max(_ms(begun, last), 0.001),
    )


def _bars(event: EventView, begun: datetime, end: datetime) -> list[Bar]:
    """The bars in order, without gaps between them."""
    runs = [run for run in event.stages if run.finished_at >= begun]
    bars, at = list[Bar](), begun
    failed: StageRun | None = None
    for run in runs:
        start = max(run.finished_at - timedelta(milliseconds=run.ms), begun)
        bars += _gap(at, start, failed, first=not bars, started=event.started_at)
        bars.append(Bar("failed" if run.code else "stage", run.stage, start, run.finished_at, run))
        at, failed = max(at, run.finished_at), run if run.code else None
    if event.completed_at is None:
        return [*bars, _present(event, at, end)]
    return bars + _gap(at, end, failed, first=not bars, started=event.started_at)


def _gap(
    start: datetime,
    end: datetime,
    failed: StageRun | None,
    *,
    first: bool,
    started: datetime | None,
) -> list[Bar]:
    """The time between two runs: queued, waiting after a failed run, or unaccounted."""
    if _ms(start, end) < SHORTEST_GAP_MS:
        return []
    if failed is not None:
        note = " · ".join(part for part in (failed.code, failed.model) if part)
        return [Bar("waiting", "waiting", start, end, note=note)]
    if not first:
        return [Bar("unaccounted", "unaccounted", start, end)]
    picked = min(max(started or end, start), end)
    queued = [Bar("queued", "queued", start, picked)]
    return queued + _gap(picked, end, None, first=False, started=None)


def _present(event: EventView, start: datetime, end: datetime) -> Bar:
    """The part that has not ended."""
    if event.wait_code:
        note = " · ".join(part for part in (event.wait_code, event.wait_cause) if part)
        return Bar("waiting", "waiting", start, end, note=note, until=event.wait_until)
    if event.started_at is None:
        return Bar("queued", "queued", start, end)
    return Bar("running", event.stage or "running", start, end)


def _ms(start: datetime, end: datetime) -> float:
    return (end - start).total_seconds() * 1000
