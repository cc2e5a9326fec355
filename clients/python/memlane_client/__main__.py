"""The command `memlane-client`: hooks, the outbox, and the memory proxy."""

from __future__ import annotations

import argparse
import asyncio
import getpass
import os
import subprocess
import sys
from pathlib import Path

import httpx

from memlane_client import hook
from memlane_client.calls import Retries
from memlane_client.client import LOCAL, Memlane
from memlane_client.outbox.drain import drain
from memlane_client.outbox.journal import Journal
from memlane_client.proxy.settings import ProxySettings

FOLDER = Path("~/.memlane/outbox")
KEY_FILE = Path("~/.memlane/api_key")
DRAIN_S = 600.0
LISTEN = "127.0.0.1:8100"
# An agent waits for the hook: one attempt, and a short one.
HOOK_SEARCH_S = 2.0


class KeyFileError(Exception):
    """The file of the API key is missing or has no key."""


def main(
    words: list[str] | None = None,
    *,
    prog: str = "memlane-client",
    url: str = LOCAL,
    key_file: Path | str = KEY_FILE,
) -> None:
    """Run the command line; the process ends with its exit code.

    `prog` is the name in its texts; `url` and `key_file` are the defaults of the options.
    """
    os.umask(0o077)
    given = arguments(prog, url, key_file).parse_args(words)
    try:
        sys.exit(given.run(given) or 0)
    except KeyFileError as error:
        sys.exit(f"{prog}: {error}")


def arguments(prog: str, url: str, key_file: Path | str) -> argparse.ArgumentParser:
    """The parser of all commands."""
    parser = argparse.ArgumentParser(prog=prog, description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, run, about in (
        ("hook", run_hook, "Handle the hook of a coding agent: JSON on standard input."),
        ("drain", run_drain, "Send what the outbox holds, then end."),
        ("outbox", show_outbox, "Show what the outbox holds."),
        ("proxy", run_proxy, "Serve the memory proxy."),
    ):
        command = commands.add_parser(name, help=about, description=about)
        command.add_argument("--url", default=url, help="base URL of Memlane (%(default)s)")
        command.add_argument(
            "--key-file", type=Path, default=key_file, help="file of the API key (%(default)s)"
        )
        command.add_argument("--outbox", type=Path, default=FOLDER, help="folder (%(default)s)")
        command.set_defaults(run=run, prog=prog)
        if name in ("hook", "drain"):
            command.add_argument(
                "--drain-for", type=float, default=DRAIN_S, help="seconds of sending (600)"
            )
        if name == "hook":
            command.add_argument("--user", help="user_id (the login)")
            command.add_argument("--app", help="app_id (none)")
            command.add_argument("--max-tokens", type=int, default=600, help="of memories (600)")
            command.add_argument(
                "--search-timeout", type=float, default=HOOK_SEARCH_S, help="seconds (2)"
            )
            command.add_argument("payload", nargs="?", help="JSON as an argument (Codex's notify)")
        if name == "proxy":
            add_proxy_options(command)
    return parser


def add_proxy_options(command: argparse.ArgumentParser) -> None:
    """The options of `proxy`."""
    defaults = ProxySettings()
    command.add_argument(
        "--listen", type=address, default=LISTEN, metavar="HOST:PORT", help=f"({LISTEN})"
    )
    command.add_argument("--openai", default=defaults.openai, help=f"provider ({defaults.openai})")
    command.add_argument(
        "--anthropic", default=defaults.anthropic, help=f"provider ({defaults.anthropic})"
    )
    command.add_argument("--user", help="user_id of requests that name none (no memory)")
    command.add_argument("--max-tokens", type=int, default=defaults.max_tokens, help="(800)")
    command.add_argument(
        "--search-timeout", type=float, default=defaults.search_timeout_s, help="seconds (1)"
    )


def address(text: str) -> str:
    """The option `--listen`. Errors: ArgumentTypeError without a port from 1 to 65535."""
    port = text.rpartition(":")[2]
    if not (port.isascii() and port.isdigit() and 0 < int(port) < 65_536):
        raise argparse.ArgumentTypeError(f"{text!r} has no port: write it as {LISTEN}")
    return text


def run_hook(given: argparse.Namespace) -> int:
    """Print memories for a prompt, append the turn, and start a process that sends it.

    Without a key the turn is appended too: a later hook with the key sends it.
    """
    text = given.payload or sys.stdin.read()
    ids, tokens = {"user_id": given.user or login(), "app_id": given.app}, given.max_tokens
    outbox = given.outbox.expanduser()
    try:
        key = read_key(given.key_file)
    except KeyFileError as error:
        _, faults = hook.answer(text, None, outbox, ids, max_tokens=tokens)
        report(given, [*faults, f"no memories, and nothing is sent: {error}"])
        return 0
    once = Retries(attempts=1)
    with Memlane(key, given.url, retries=once, timeout_s=given.search_timeout) as memlane:
        output, faults = hook.answer(text, memlane, outbox, ids, max_tokens=tokens)
    print(output, end="")
    report(given, faults)
    start_drain(given)
    return 0


def login() -> str:
    """Name of the login; in a container whose user has no name, its number."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def report(given: argparse.Namespace, faults: list[str]) -> None:
    """Print the faults of a hook, which the agent shows and does not stop at."""
    for fault in faults:
        print(f"{given.prog}: {fault}", file=sys.stderr)


def start_drain(given: argparse.Namespace) -> None:
    """Start `drain` as a process of its own, which outlives the agent."""
    options = (
        *("--url", given.url, "--key-file", given.key_file, "--outbox", given.outbox),
        *("--drain-for", given.drain_for),
    )
    subprocess.Popen(  # noqa: S603  our own command
        [sys.executable, "-m", "memlane_client", "drain", *map(str, options)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def run_drain(given: argparse.Namespace) -> int:
    """Send what the outbox holds. Exit code 1 if adds are pending after that time."""
    headers = {"Authorization": f"Token {read_key(given.key_file)}"}

    def connect() -> httpx.AsyncClient:
        return httpx.AsyncClient(base_url=given.url.rstrip("/"), headers=headers)

    pending = asyncio.run(drain(given.outbox, connect, within_s=given.drain_for))
    return 1 if pending else 0


def show_outbox(given: argparse.Namespace) -> int:
    """Print the number of adds that are pending or refused, without their text."""
    journal = Journal(given.outbox)
    for entry in journal.pending():
        print(f"pending  {entry.add.key}  {len(entry.add.body['messages'])} messages")
    for row in journal.refused():
        print(f"refused  {row['key']}  {row['reason']}")
    print(f"{len(journal.pending())} pending, {len(journal.refused())} refused")
    return 0


def run_proxy(given: argparse.Namespace) -> int:
    """Serve until SIGTERM."""
    try:
        from memlane_client.proxy.server import serve  # noqa: PLC0415  the extra may be missing
    except ModuleNotFoundError as missing:
        print(f"{missing}. Install memlane-client[proxy].", file=sys.stderr)
        return 1
    settings = ProxySettings(
        openai=given.openai,
        anthropic=given.anthropic,
        user=given.user,
        max_tokens=given.max_tokens,
        search_timeout_s=given.search_timeout,
    )
    key = read_key(given.key_file)
    print(f"Proxy of {given.url}: http://{given.listen}", flush=True)
    serve(settings, listen=given.listen, url=given.url, key=key, outbox=given.outbox)
    return 0


def read_key(path: Path) -> str:
    """The API key in a file. Errors: KeyFileError."""
    try:
        if key := path.expanduser().read_text("ascii").strip():
            return key
        reason = "empty"
    except OSError as error:
        reason = str(error.strerror)
    except UnicodeDecodeError:
        reason = "not ASCII"
    raise KeyFileError(f"no API key in {path} ({reason}). Name the file of the key by --key-file.")


if __name__ == "__main__":
    main()
