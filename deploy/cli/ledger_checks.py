"""Checks of the ledger for `memlane doctor`: clock, connections, indexes, lanes, books, seals."""

from __future__ import annotations

from deploy.cli.findings import FAIL, OK, WARN, Finding
from deploy.cli.plan import CONNECTIONS
from pipeline.backup.store import BackupStore
from pipeline.health.store import (
    ConnectionFigures,
    IndexFaults,
    LaneFigures,
    LedgerHealth,
    SealFigures,
)
from pipeline.ledger.engine import LONG, SettingsMissing, connect
from pipeline.ledger.failures import LedgerUnavailable
from pipeline.migrate import BEFORE_BASELINE, is_known, is_older, newest_schema, oldest_schema
from pipeline.settings import Settings

REPAIR = "run `memlane repair`"
# Times of the ledger are the database's; those of logs and of signatures are the processes'.
MOST_SKEW_S = 2.0
FULL_SHARE = 0.9
OLDEST_UNSEALED_S = 900.0
POOL = Settings.model_fields["database_pool"].default
NAMED = 5
SILENT = ("the database does not answer any more", "see its log, and run this again")


async def examine(url: str, configured: Settings) -> list[Finding]:
    """All checks of the ledger. None if the database does not answer: another check says so."""
    engine = connect(url, pool_size=1, name="memlane doctor", limits=LONG)
    findings: list[Finding] = []
    try:
        findings.append(check_schema(schema := await BackupStore(engine).schema()))
        if schema == newest_schema():
            findings += await _figures(LedgerHealth(engine), configured)
    except (LedgerUnavailable, SettingsMissing, OSError):
        if findings:
            findings.append(Finding("ledger", FAIL, *SILENT))
    finally:
        await engine.dispose()
    return findings


async def _figures(health: LedgerHealth, configured: Settings) -> list[Finding]:
    return [
        check_clock(await health.clock_ahead_s()),
        check_connections(await health.connections(), configured),
        check_indexes(await health.indexes()),
        check_lanes(await health.lanes()),
        check_books(await health.wrong_counts()),
        check_seals(await health.seals()),
    ]


def check_schema(schema: str | None) -> Finding:
    """Compare the newest migration with this release's. The other checks need them to be equal."""
    if schema == newest_schema():
        return Finding("schema", OK, f"{schema}, the newest")
    if schema is None:
        return Finding("schema", WARN, "no tables yet", "`memlane up` creates them")
    if is_known(schema):
        advice = "restart with this release, or run `python -m pipeline.migrate`"
        return Finding("schema", WARN, f"{schema}, older than {newest_schema()}", advice)
    if is_older(schema):
        advice = f"migrate it with commit {BEFORE_BASELINE} first, see docs/howto/upgrade.md"
        return Finding("schema", FAIL, f"{schema}, older than {oldest_schema()}", advice)
    text = f"{schema}, which this release does not know"
    return Finding("schema", FAIL, text, "install the newer release that wrote it")


def check_clock(ahead_s: float) -> Finding:
    """Compare the clocks of this machine and of the database."""
    text = f"the database's is {abs(ahead_s):.1f} s {'ahead' if ahead_s > 0 else 'behind'}"
    if abs(ahead_s) <= MOST_SKEW_S:
        return Finding("clock", OK, text)
    return Finding("clock", WARN, text, "synchronize the clocks of both hosts (NTP)")


def check_connections(figures: ConnectionFigures, configured: Settings) -> Finding:
    """Compare the pools of all configured processes with max_connections."""
    processes = configured.api_processes + configured.workers + 1
    needed = processes * (CONNECTIONS - POOL + configured.database_pool)
    text = f"{figures.open} open of {figures.allowed}; {processes} processes may open {needed}"
    advice = "raise max_connections of PostgreSQL, or lower MEMLANE_DATABASE_POOL"
    if figures.open > FULL_SHARE * figures.allowed:
        return Finding("connections", FAIL, text, advice)
    if needed > figures.allowed:
        return Finding("connections", WARN, text, advice)
    return Finding("connections", OK, text)


def check_indexes(faults: IndexFaults) -> Finding:
    """Indexes that an interrupted build left invalid, or that are absent."""
    if not faults.names:
        return Finding("indexes", OK, "all valid")
    kinds = (
        ("invalid", faults.invalid),
        ("missing", faults.missing),
        ("left by a build", faults.left_over),
    )
    text = "; ".join(f"{kind}: {_listed(names)}" for kind, names in kinds if names)
    status = FAIL if faults.invalid or faults.missing else WARN
    return Finding("indexes", status, text, REPAIR)


def check_lanes(figures: LaneFigures) -> Finding:
    """Lanes whose work does not go on."""
    if figures.stranded:
        text = f"{figures.stranded:,} idle with open events"
        return Finding("lanes", FAIL, text, REPAIR)
    if figures.overdue:
        text = f"{figures.overdue:,} overdue, the oldest for {figures.oldest_s:,.0f} s"
        advice = f"check that a sweeper runs and reaches the broker; then {REPAIR}"
        return Finding("lanes", FAIL, text, advice)
    return Finding("lanes", OK, "none is stuck")


def check_books(wrong: int) -> Finding:
    """Counts of events and memories against their rows."""
    if wrong:
        return Finding("books", FAIL, f"{wrong:,} counts differ from their rows", REPAIR)
    return Finding("books", OK, "all counts equal their rows")


def check_seals(figures: SealFigures) -> Finding:
    """Age of the oldest row without a seal."""
    text = f"{figures.waiting:,} rows not sealed yet, the oldest for {figures.oldest_s:,.0f} s"
    if figures.oldest_s > OLDEST_UNSEALED_S:
        advice = "check that a sweeper with MEMLANE_SEAL_KEY runs"
        return Finding("seals", FAIL, text, advice)
    return Finding("seals", OK, text if figures.waiting else "none is waiting")


def _listed(names: tuple[str, ...]) -> str:
    rest = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + rest
