"""The cost of one hostile tenant to the others: `python -m tests.bench.hostile [NAME …]`.

    --model rules|hosted     local/rules, or the suite's hosted-style stand-in
    --url URL --key KEY      a running stack and its operator key, instead of one of its own
    --list                   the names of the attacks

Each attack runs alone, while another tenant polls /healthz, searches and adds. The table shows the
slowest of each; an add's time is counted beyond the median of the adds before the attack. `loop` is
the longest CPU time for which the attack held an event loop of the API, which does not depend on
other work on the machine. Exit status 1 if one is above its limit, failed, or if an attack took no
effect.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import urlsplit

import uvloop

from tests.bench.hosted import hosted, provider, stack
from tests.bench.hostile import reads, wire, writes
from tests.bench.hostile.attacks import ATTACKS, Attack
from tests.bench.hostile.tenant import Statuses, Tenant, organization
from tests.support.stack import wait_until

LIMITS_S = {"healthz": 0.25, "search": 1.0, "add": 5.0}
# Longest CPU time in one piece on an event loop of the API.
LOOP_LIMIT_S = 0.25
# An attack may take this long; then the next one begins.
LONGEST_ATTACK_S = 60.0
# Status of an attack that was not over by then.
CUT_SHORT = -1
# Time after an attack within which its effects are counted, and before one as the control.
AFTER_S, CONTROL_S = 1.0, 3.0
# Longest time that a request of the control is waited for.
SETTLES_S = 120.0
# The order in which they run: attacks that change the data come last.
MODULES = (wire, reads, writes)
SETTINGS = {
    "MEMLANE_API_PROCESSES": "2",
    "MEMLANE_WORKERS": "2",
    "MEMLANE_WEBHOOK_PRIVATE": "on",
    "MEMLANE_SEAL_KEY": "5ea1" * 16,
    "MEMLANE_MAX_KEY_REQUESTS_PER_MIN": "6000",
    # Names the places that block an event loop for long.
    "MEMLANE_LOOP_SLOW_S": "0.15",
}


@dataclass(frozen=True, slots=True)
class Sample:
    """One request of the control: when it began, how long it took."""

    kind: str
    began: float
    s: float
    ok: bool

    @property
    def ended(self) -> float:
        return self.began + self.s


class Samples:
    """The control's process, and what it has printed."""

    def __init__(self, port: int, key: str) -> None:
        command = [sys.executable, "-m", "tests.bench.hostile.control", str(port), key]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self._rows: list[Sample] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            row = json.loads(line)
            self._rows.append(Sample(row["kind"], row["began"], row["s"], row["ok"]))

    def close(self) -> None:
        self._process.terminate()
        self._process.wait()

    def between(self, kind: str, since: float, until: float) -> list[Sample]:
        """Samples of which a part is within these times."""
        rows = list(self._rows)
        return [r for r in rows if r.kind == kind and r.began <= until and r.ended >= since]

    async def settled(self, until: float) -> None:
        """Wait until each kind has a sample that began after `until`."""
        for kind in LIMITS_S:
            await wait_until(
                partial(self._has, kind, until), within_s=SETTLES_S, what=f"the control's {kind}"
            )

    async def _has(self, kind: str, since: float) -> bool:
        return any(row.kind == kind and row.began > since for row in self._rows[-200:])


@dataclass(frozen=True, slots=True)
class Row:
    """The result of one attack: its statuses, and the slowest sample of each kind, in seconds."""

    attack: Attack
    statuses: Mapping[int, int]
    took_s: float
    slowest: Mapping[str, float]
    failed: int
    loop_s: float

    @property
    def faults(self) -> list[str]:
        faults = [kind for kind, limit_s in LIMITS_S.items() if self.slowest[kind] > limit_s]
        faults += ["loop"] if self.loop_s > LOOP_LIMIT_S else []
        faults += [f"{self.failed} failed"] if self.failed else []
        effects = self.attack.expects | {CUT_SHORT}
        return faults + ([] if effects & self.statuses.keys() else ["no effect"])

    def __str__(self) -> str:
        statuses = " ".join(f"{count}x{status}" for status, count in sorted(self.statuses.items()))
        times = " ".join(f"{self.slowest[kind]:8.2f}" for kind in LIMITS_S)
        verdict = "ok" if not self.faults else "ABOVE: " + ", ".join(self.faults)
        columns = f"{self.attack.name:22} {self.took_s:7.1f} {times} {self.loop_s:8.2f}"
        return f"{columns}  {statuses:26} {verdict}"


COLUMNS = (*LIMITS_S, "loop")
HEAD = f"{'attack':22} {'took s':>7} " + " ".join(f"{kind:>8}" for kind in COLUMNS)


class LoopLog:
    """The API's log of blocked event loops, from the end of the last read on."""

    def __init__(self, folder: Path | None) -> None:
        self._files = dict.fromkeys(folder.glob("api*.log"), 0) if folder else {}
        self.longest_s()

    def longest_s(self) -> float:
        """The longest CPU time of a block since the last call."""
        longest_s = 0.0
        for file, offset in self._files.items():
            text = file.read_bytes()
            self._files[file] = len(text)
            for line in text[offset if offset <= len(text) else 0 :].splitlines():
                if b"loop_went_on" in line:
                    longest_s = max(longest_s, float(json.loads(line)["cpu_s"]))
        return longest_s


async def measured(
    attack: Attack, tenant: Tenant, samples: Samples, usual_s: float, loops: LoopLog
) -> Row:
    """Run one attack and wait for what the control began during it."""
    loops.longest_s()
    began = time.monotonic()
    statuses: Mapping[int, int] = Statuses()
    try:
        async with asyncio.timeout(LONGEST_ATTACK_S):
            statuses = await attack.run(tenant)
    except TimeoutError:
        statuses = {CUT_SHORT: 1}
    took_s = time.monotonic() - began
    await asyncio.sleep(AFTER_S)
    until = time.monotonic()
    await samples.settled(until)
    rows = {kind: samples.between(kind, began, until) for kind in LIMITS_S}
    slowest = {kind: max((row.s for row in rows[kind]), default=0.0) for kind in LIMITS_S}
    slowest["add"] = max(0.0, slowest["add"] - usual_s)
    failed = sum(not row.ok for each in rows.values() for row in each)
    return Row(attack, statuses, took_s, slowest, failed, loops.longest_s())


async def run(
    url: str, operator_key: str, attacks: Sequence[Attack], logs: Path | None
) -> list[Row]:
    """Run the attacks one after another, and print each row."""
    port = urlsplit(url).port or 80
    hostile = organization(url, operator_key, "hostile")
    other = organization(url, operator_key, "other")
    receiver = await asyncio.start_server(_never, "127.0.0.1", 0)
    receiver_url = f"http://127.0.0.1:{receiver.sockets[0].getsockname()[1]}/"
    tenant = Tenant(url, port, hostile["key"], hostile["project_id"], receiver_url)
    began = time.monotonic()
    await tenant.fill()
    print(f"filled in {time.monotonic() - began:.0f} s", flush=True)
    samples, loops = Samples(port, other["key"]), LoopLog(logs)
    rows = []
    try:
        await samples.settled(time.monotonic() + CONTROL_S)
        since = time.monotonic() - CONTROL_S
        usual = {k: [r.s for r in samples.between(k, since, time.monotonic())] for k in LIMITS_S}
        usual_s = median(usual["add"])
        times = " ".join(f"{max(usual[kind]):8.2f}" for kind in LIMITS_S)
        print(f"{HEAD}\n{'(control alone)':30} {times}", flush=True)
        for attack in attacks:
            rows.append(await measured(attack, tenant, samples, usual_s, loops))
            print(rows[-1], flush=True)
    finally:
        samples.close()
        receiver.close()
    return rows


async def _never(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
    """A receiver of webhooks that reads and never answers."""
    while await reader.read(65_536):
        pass


@contextmanager
def started(model: str) -> Iterator[tuple[str, str, Path]]:
    """A stack of its own: its URL, operator key and folder of logs."""
    with provider() if model == "hosted" else nullcontext("") as base_url:
        settings = hosted(base_url, MEMLANE_GRAPH="on") if base_url else {}
        with stack({**settings, **SETTINGS}) as running:
            yield running.url, running.key, running.data_dir / "logs"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.hostile", description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--model", choices=("rules", "hosted"), default="rules")
    parser.add_argument("--url")
    parser.add_argument("--key")
    parser.add_argument("--list", action="store_true", help="name the attacks, and run none")
    options: Any = parser.parse_args()
    attacks = [each for each in ATTACKS if not options.names or each.name in options.names]
    if options.list:
        print("\n".join(f"{each.name:22} {each.about}" for each in attacks))
        return 0
    given = nullcontext((options.url, options.key, None))
    with given if options.url else started(options.model) as (url, key, logs):
        rows = uvloop.run(run(url, key, attacks, logs))
    faults = [row for row in rows if row.faults]
    print(f"{len(rows)} attacks, {len(faults)} above a limit")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
