"""Each alert of the rules fires by a real fault in a fleet, and does not before."""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import yaml

from tests.support import alert_faults as faults
from tests.support.alert_faults import AlertFault, compressed_rules
from tests.support.alert_fleet import AlertFleet, alert_fleet
from tests.support.prometheus import RULES, Prometheus, prometheus
from tests.support.stack import wait_until

# Scrapes after which rates have values.
SCRAPES = 5
QUIET_S, FIRES_S, SLOW_S = 120.0, 180.0, 300.0
FAULTS = (
    AlertFault(
        faults.worker_killed,
        frozenset({"MemlaneBacklog", "MemlaneLanesStuck", "MemlaneSearchableLateFast"}),
        frozenset({"MemlaneSearchableLateSlow"}),
    ),
    AlertFault(
        faults.database_locked,
        frozenset({"MemlaneAddsSlowFast"}),
        frozenset({"MemlaneAddsSlowSlow"}),
    ),
    AlertFault(
        faults.database_stopped,
        frozenset({"MemlaneLedgerDown", "MemlaneAddsFailFast"}),
        frozenset({"MemlaneAddsFailSlow"}),
    ),
    AlertFault(faults.provider_fails, frozenset({"MemlaneProviderDown", "MemlaneDeadLetters"})),
    AlertFault(faults.provider_rejects, frozenset({"MemlaneProviderRejects"})),
    AlertFault(faults.vectors_stopped, frozenset({"MemlaneStoreDown"})),
    AlertFault(faults.receiver_fails, frozenset({"MemlaneWebhooksDead"})),
    AlertFault(faults.sweeper_killed, frozenset({"MemlaneSweeperSilent"})),
    AlertFault(faults.broker_stopped, frozenset({"MemlaneHintsLost"})),
    AlertFault(faults.worker_killed_at_work, frozenset({"MemlaneWorkersCrash"})),
    AlertFault(faults.sweeper_without_key, frozenset({"MemlaneUnsealed"})),
    AlertFault(faults.seals_changed, frozenset({"MemlaneSealsRefused"})),
    AlertFault(faults.graph_stopped, frozenset({"MemlaneGraphMirrorLate"})),
    AlertFault(faults.server_behind, frozenset({"MemlaneAddsRefused"})),
    AlertFault(faults.book_changed, frozenset({"MemlaneBooksUnbalanced"})),
)


def test_every_alert_has_one_fault() -> None:
    groups = yaml.safe_load(RULES.read_text("utf-8"))["groups"]
    alerts = [rule["alert"] for group in groups for rule in group["rules"] if "alert" in rule]
    assert sorted(alerts) == sorted(name for fault in FAULTS for name in fault.alerts | fault.slow)


@pytest.mark.timeout(2_400)
async def test_each_alert_fires_by_a_real_fault(tmp_path: Path) -> None:
    late: list[tuple[Prometheus, frozenset[str]]] = []
    async with alert_fleet(tmp_path) as fleet, AsyncExitStack() as servers:
        for fault in FAULTS:
            async with AsyncExitStack() as own:
                folder = tmp_path / fault.name
                folder.mkdir()
                server = await (servers if fault.slow else own).enter_async_context(
                    prometheus(fleet.targets, folder, rules=compressed_rules(folder))
                )
                await raised(server, fleet, fault)
            if fault.slow:
                late.append((server, fault.slow))
        await asyncio.gather(*(fires(server, alerts, SLOW_S) for server, alerts in late))


async def raised(server: Prometheus, fleet: AlertFleet, fault: AlertFault) -> None:
    """Check that the fault's alerts are quiet before it, and fire during it; then repair it."""

    async def quiet() -> bool:
        states = await server.alerts()
        calm = all(states[name] == "inactive" for name in fault.alerts | fault.slow)
        return calm and await server.scrapes() >= SCRAPES

    await wait_until(quiet, within_s=QUIET_S, what=f"no alert before {fault.name}", every_s=0.2)
    began = time.monotonic()
    async with fault.happens(fleet):
        await fires(server, fault.alerts, FIRES_S)
        others = {n for n, state in (await server.alerts()).items() if state == "firing"}
        print(fault.name, f"{time.monotonic() - began:.0f} s", sorted(fault.alerts))
        print("  also firing:", sorted(others - fault.alerts))
    await fleet.repaired()


async def fires(server: Prometheus, alerts: frozenset[str], within_s: float) -> None:
    """Wait until each of the alerts has fired."""
    missing = set(alerts)

    async def all_fired() -> bool:
        states = await server.alerts()
        missing.difference_update({name for name in missing if states[name] == "firing"})
        return not missing

    await wait_until(all_fired, within_s=within_s, what=f"{sorted(alerts)}", every_s=0.5)
