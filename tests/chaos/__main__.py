"""The long chaos run (`make chaos`): figures as JSON on stdout and in bench-results/.

Processes of a separate stack are killed at random while clients keep sending, private sessions end,
users are erased, and the curator runs; then the checker counts lost, duplicated and reordered
events, looks for texts that must be gone, and verifies the seals. Exit code 1 if anything is wrong.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import secrets
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from tests.support.chaos_monkey import mixed
from tests.support.chaos_run import ChaosPlan, ChaosReport, run
from tests.support.llm_server import LLMServer
from tests.support.stack import Stack

RESULTS = Path("bench-results")
# Few, so that the conversations of a short run are summarized too.
SUMMARY_MESSAGES = "4"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--scopes", type=int, default=1_000)
    parser.add_argument("--turns", type=int, default=10, help="accepted events of each scope")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--concurrency", type=int, default=8, help="stages of each worker at once")
    parser.add_argument("--kills", type=int, default=100, help="kill -9 of any process")
    parser.add_argument("--accidents", type=int, default=5, help="of each other kind")
    parser.add_argument("--callers", type=int, default=16)
    parser.add_argument("--in-flight", type=int, default=200, help="backends hold back beyond it")
    parser.add_argument("--keyed", type=float, default=0.5, help="part with an idempotency key")
    parser.add_argument("--minutes", type=float, default=30.0, help="say no more after that")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sessions", type=int, help="beside the chats; default: scopes / 4")
    on_or_off = argparse.BooleanOptionalAction
    parser.add_argument("--seals", action=on_or_off, default=True, help="tamper evidence")
    parser.add_argument(
        "--summaries",
        action=on_or_off,
        default=True,
        help="rolling summaries, with a stand-in for the model, since local/rules makes none",
    )
    parser.add_argument("--data-dir", type=Path, help="kept; without it a temporary one")
    return parser.parse_args()


async def long_run(given: argparse.Namespace, data_dir: Path) -> ChaosReport:
    settings = {
        "MEMLANE_WORKERS": str(given.workers),
        "MEMLANE_WORKER_CONCURRENCY": str(given.concurrency),
    }
    if given.seals:
        settings["MEMLANE_SEAL_KEY"] = secrets.token_hex(32)
    plan = ChaosPlan(
        scopes=given.scopes,
        turns=given.turns,
        acts=mixed(given.kills, given.accidents, seed=given.seed),
        callers=given.callers,
        most_open=given.in_flight,
        seed=given.seed,
        keyed=given.keyed,
        talk_s=given.minutes * 60,
        sessions=given.scopes // 4 if given.sessions is None else given.sessions,
        sealed=given.seals,
        summarized=given.summaries,
    )
    if not given.summaries:
        async with Stack(data_dir, settings) as stack:
            return await run(stack, plan)
    async with LLMServer() as model:
        settings |= {
            "MEMLANE_LLM__MODEL": "openai/stand-in",
            "MEMLANE_LLM__API_BASE": model.base_url,
            "MEMLANE_LLM__API_KEY": "sk-test",
            "MEMLANE_SUMMARY_MESSAGES": SUMMARY_MESSAGES,
        }
        async with Stack(data_dir, settings) as stack:
            return await run(stack, plan)


async def main() -> int:
    given = arguments()
    with tempfile.TemporaryDirectory() as folder:
        report = await long_run(given, given.data_dir or Path(folder) / "stack")
    text = json.dumps(report.figures, indent=2)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"chaos-{datetime.now(UTC):%Y%m%dT%H%M%S}.json").write_text(text)  # noqa: TID251
    print(text)
    if not report.proven:
        print(report, file=sys.stderr)
    return 0 if report.proven else 1


if __name__ == "__main__":
    with asyncio.Runner() as runner:
        sys.exit(runner.run(main()))
