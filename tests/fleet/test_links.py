"""Dropped packets between the hosts of a fleet, under load: nothing lost, seconds until normal.

Two APIs, four workers, two sweepers, PostgreSQL and Valkey, each in a network namespace of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import httpx
import pytest

from deploy.stack.command import Command
from deploy.stack.ports import HOST
from deploy.stack.servers import Postgres, Redis
from tests.support.chaos_check import check_lanes
from tests.support.chaos_ledger import LedgerWindow
from tests.support.chaos_load import ChatLoad, ClientLog
from tests.support.hosts import Hosts, hosts
from tests.support.namespaces import Network, network
from tests.support.stack import wait_until
from tests.support.until_normal import LATEST_S, Prober

APIS = ("api-1", "api-2")
WORKERS = ("worker-1", "worker-2", "worker-3", "worker-4")
SWEEPERS = ("sweeper-1", "sweeper-2")
LINKS = [
    (host, server)
    for host in ("api-1", "worker-1", "sweeper-1")
    for server in ("postgres", "valkey")
]
PORT = 8000
CALM_S, DROPPED_S, HEALED_S = 8.0, 25.0, 20.0
STARTED_WITHIN_S = 90.0
# Of the load on each API: one turn of each caller every PACE_S.
SCOPES, TURNS, CALLERS, PACE_S = 100, 1_000_000, 2, 0.1
MEMORIES = """
SELECT user_id, count(*) AS memories FROM memories WHERE user_id LIKE 'probe-%' GROUP BY 1
"""
IN_FLIGHT = "SELECT count(*) FROM lanes WHERE accepted_seq > settled_seq"


class OpenPostgres(Postgres):
    """PostgreSQL that also listens on its host's address."""

    def __init__(self, root: Path, network: Network) -> None:
        super().__init__(root)
        self._network = network

    @property
    def url(self) -> str:
        return super().url.replace(HOST, self._network.address("postgres"))

    def prepare(self) -> None:
        super().prepare()
        rules = self.layout.root / "postgres" / "pg_hba.conf"
        rule = f"host all all {self._network.mask} scram-sha-256\n"
        if rule not in rules.read_text():
            with rules.open("a") as file:
                file.write(rule)

    def command(self) -> Command:
        command = super().command()
        listen = f"listen_addresses={HOST},{self._network.address('postgres')}"
        return replace(command, argv=(*command.argv, "-c", listen))


class OpenValkey(Redis):
    """Valkey that also listens on its host's address."""

    def __init__(self, root: Path, network: Network) -> None:
        super().__init__(root)
        self._network = network

    @property
    def url(self) -> str:
        return super().url.replace(HOST, self._network.address("valkey"))

    def prepare(self) -> None:
        super().prepare()
        file = self.layout.root / "redis" / "redis.conf"
        both = f"bind {HOST} {self._network.address('valkey')}\n"
        file.write_text(file.read_text().replace(f"bind {HOST}\n", both))


@dataclass
class Fleet:
    """The running hosts, with the key of the first project."""

    network: Network
    hosts: Hosts
    key: str
    database_url: str
    urls: list[str]


@contextmanager
def started(root: Path) -> Iterator[Fleet]:
    with ExitStack() as stack:
        net = stack.enter_context(network("n32", "postgres", "valkey", *APIS, *WORKERS, *SWEEPERS))
        for folder in ("postgres", "valkey", "hosts"):
            (root / folder).mkdir(exist_ok=True)
        with net.inside("postgres"):
            postgres = OpenPostgres(root / "postgres", net)
            postgres.start()
        stack.callback(postgres.stop)
        with net.inside("valkey"):
            valkey = OpenValkey(root / "valkey", net)
            valkey.start()
        stack.callback(valkey.stop)
        shared = {
            "MEMLANE_DATABASE_URL": postgres.url,
            "MEMLANE_BROKER_URL": valkey.url,
            "MEMLANE_VECTORS": "pgvector",
            "MEMLANE_METRICS_TOKEN": "test",
            "OMP_NUM_THREADS": "1",
        }
        fleet = stack.enter_context(hosts(root / "hosts", shared))
        with net.inside(APIS[0]):
            place = fleet.start("admin", "migrate")
        assert fleet.running.pop("admin").wait(60) == 0, fleet.log("admin")
        for names, service in ((APIS, "api"), (WORKERS, "worker"), (SWEEPERS, "sweeper")):
            for host in names:
                address = net.address(host)
                with net.inside(host):
                    fleet.start(
                        host,
                        service,
                        MEMLANE_HOST=address,
                        MEMLANE_PORT=str(PORT),
                        **({} if service == "api" else {"MEMLANE_PROBE_PORT": "9100"}),
                    )
        key = (place / "api_key").read_text().strip()
        urls = [f"http://{net.address(host)}:{PORT}" for host in APIS]
        yield Fleet(net, fleet, key, postgres.url, urls)


@dataclass(frozen=True, slots=True)
class Api:
    """An API process, for the load."""

    url: str
    key: str


@dataclass(frozen=True, slots=True)
class Times:
    """Times at which a link lost its packets, was healed, and at which its turn was over."""

    link: str
    fault_at: float
    healed_at: float
    over_at: float

    def line(self, prober: Prober) -> dict[str, object]:
        """Seconds until normal after both; the probes must have ended."""
        limit_s = prober.limit_s(self.fault_at)
        drop = prober.normal_after_s(self.fault_at, self.healed_at, limit_s)
        heal = prober.normal_after_s(self.healed_at, self.over_at, limit_s)
        return {"link": self.link, "after_drop_s": drop, "after_heal_s": heal, "slow_s": limit_s}


async def pace() -> None:
    await asyncio.sleep(PACE_S)


async def ready(fleet: Fleet) -> None:
    async with httpx.AsyncClient(timeout=5) as http:
        for url in fleet.urls:

            async def answers(url: str = url) -> bool:
                try:
                    return (await http.get(f"{url}/readyz")).status_code == 200
                except httpx.TransportError:
                    return False

            await wait_until(answers, within_s=STARTED_WITHIN_S, what=f"an API at {url}")


@pytest.mark.timeout(1_200)
async def test_dropped_packets_between_any_two_hosts_lose_nothing(tmp_path: Path) -> None:
    with started(tmp_path) as fleet:
        await ready(fleet)
        log, stopped = ClientLog(), asyncio.Event()
        loads = [
            ChatLoad(
                Api(url, fleet.key),
                scopes=SCOPES,
                turns=TURNS,
                callers=CALLERS,
                seed=number,
                keyed=1.0,
                may_send=pace,
                first=number * SCOPES,
                log=log,
            )
            for number, url in enumerate(fleet.urls)
        ]
        prober = Prober(fleet.urls, fleet.key)
        tasks = [
            asyncio.create_task(work)
            for work in (prober.run(stopped), *(each.run() for each in loads))
        ]
        times = [await one_link(fleet.network, prober, *link) for link in LINKS]
        stopped.set()
        for load in loads:
            load.stopped.set()
        await asyncio.wait_for(asyncio.gather(*tasks), LATEST_S)
        window = LedgerWindow(fleet.database_url)

        async def all_ended() -> bool:
            return int((await window.rows(IN_FLIGHT))[0][0]) == 0

        await wait_until(all_ended, within_s=LATEST_S, what="the end of all events")
        findings = await check_lanes(window, log)
        memories = {row["user_id"]: row["memories"] for row in await window.rows(MEMORIES)}
        await window.close()
    for each in times:
        print(each.line(prober))
    print({"probes": len(prober.probes), "accepted": log.accepted, "findings": len(findings)})
    assert findings == []
    assert prober.lost() == []
    assert memories == {probe.user: 1 for probe in prober.probes}


async def one_link(net: Network, prober: Prober, host: str, server: str) -> Times:
    """Drop the packets of one link, then heal it."""
    await asyncio.sleep(CALM_S)
    fault_at = prober.now()
    with net.dropped(host, server):
        await asyncio.sleep(DROPPED_S)
    healed_at = prober.now()
    await asyncio.sleep(HEALED_S)
    return Times(f"{host} - {server}", fault_at, healed_at, prober.now())
