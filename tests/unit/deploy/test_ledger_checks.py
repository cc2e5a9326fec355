"""Checks of `memlane doctor` on figures of the ledger: limits, texts and advice."""

from __future__ import annotations

import pytest

from deploy.cli import ledger_checks
from deploy.cli.findings import CheckStatus
from pipeline.health.store import ConnectionFigures, IndexFaults, SealFigures
from pipeline.migrate import newest_schema
from pipeline.settings import Settings

OK, WARN, FAIL = CheckStatus.OK, CheckStatus.WARN, CheckStatus.FAIL


@pytest.mark.parametrize(
    ("ahead_s", "status", "text"),
    [
        (0.4, OK, "the database's is 0.4 s ahead"),
        (-1.9, OK, "the database's is 1.9 s behind"),
        (-61.0, WARN, "the database's is 61.0 s behind"),
    ],
)
def test_clocks_that_differ_are_a_warning(ahead_s: float, status: CheckStatus, text: str) -> None:
    finding = ledger_checks.check_clock(ahead_s)
    assert (finding.status, finding.text) == (status, text)
    assert finding.status is OK or "NTP" in finding.advice


@pytest.mark.parametrize(
    ("allowed", "open_now", "status"),
    [(400, 20, OK), (100, 20, WARN), (100, 91, FAIL), (400, 390, FAIL)],
)
def test_pools_are_compared_with_max_connections(
    allowed: int, open_now: int, status: CheckStatus
) -> None:
    settings = Settings(api_processes=2, workers=4, database_pool=16)
    finding = ledger_checks.check_connections(ConnectionFigures(allowed, open_now), settings)
    assert finding.status is status
    assert f"{open_now} open of {allowed}; 7 processes may open 182" in finding.text


def test_a_smaller_pool_opens_fewer_connections() -> None:
    settings = Settings(api_processes=2, workers=4, database_pool=4)
    finding = ledger_checks.check_connections(ConnectionFigures(100, 20), settings)
    assert finding.text.endswith("7 processes may open 98")


def test_many_indexes_are_counted() -> None:
    faults = IndexFaults((), tuple(f"ix_{n}" for n in range(9)), ())
    finding = ledger_checks.check_indexes(faults)
    assert finding.text == "missing: ix_0, ix_1, ix_2, ix_3, ix_4 and 4 more"
    assert finding.status is FAIL
    assert ledger_checks.check_indexes(IndexFaults((), (), ("ix_a_ccnew",))).status is WARN


def test_rows_that_wait_long_for_a_seal_are_a_failure() -> None:
    assert ledger_checks.check_seals(SealFigures(0, 0.0)).text == "none is waiting"
    assert ledger_checks.check_seals(SealFigures(3, 2.0)).status is OK
    late = ledger_checks.check_seals(SealFigures(3, 4_000.0))
    assert (late.status, "MEMLANE_SEAL_KEY" in late.advice) == (FAIL, True)


@pytest.mark.parametrize(
    ("schema", "status"),
    [(newest_schema(), OK), (None, WARN), ("0001", FAIL), ("9999", FAIL)],
)
def test_the_schema_is_that_of_the_release(schema: str | None, status: CheckStatus) -> None:
    assert ledger_checks.check_schema(schema).status is status


def test_an_early_schema_is_migrated_with_a_commit_of_the_repository() -> None:
    assert "commit 7d2a913" in ledger_checks.check_schema("0001").advice
