"""memlane backup and memlane restore: the ledger in a directory, and back."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Annotated

import typer

from deploy.backup import archive
from deploy.backup import restore as restoring
from deploy.backup.backup import back_up
from deploy.backup.settings import RecordedSettings, require_same, take_recorded
from deploy.cli.context import local
from deploy.cli.recovery import is_valid, recover
from deploy.stack import rebuild
from deploy.stack.failure import StackError
from deploy.stack.layout import Layout, command_line, write_private
from deploy.stack.programs import require_complete
from deploy.stack.saved_settings import SavedSettings, adopt
from deploy.stack.server import Server
from deploy.stack.servers import Chroma, Redis
from deploy.stack.supervisor import is_running
from pipeline.backup.manifest import Manifest
from pipeline.settings import Settings

RUNNING = "The local stack runs. Stop it with `{down}`, and restore again."
LEFT_OUT = "Not in the backup: {names}. Set them in {path}."
UNBALANCED = "The books are not balanced: run `memlane doctor`."
KEYS_STAY = "Keys are those of the backup"
NEW_KEY = f"{KEYS_STAY}, and another admin key is in {{path}}."
NO_KEY = f"{KEYS_STAY}. `memlane keys recover NAME` creates another admin key."
RESTORED = "restored"  # name of the key


def backup(
    directory: Annotated[Path, typer.Argument(help="New directory for the backup.")],
    verify: Annotated[
        bool, typer.Option("--verify", help="Read the backup back and compare it.")
    ] = False,
) -> None:
    """Copy the ledger, while Memlane goes on: one state, with a checksum of each table.

    The vectors and the broker's messages are not in it: a restore builds them again. Settings are
    in it, but no secrets: keys of providers, MEMLANE_SEAL_KEY and the file api_key.
    """
    saved = adopt()
    configured, layout = local()
    began = time.monotonic()
    with rebuild.servers(
        configured, layout, running=is_running(layout), without=(Redis, Chroma)
    ) as needed:
        recorded = RecordedSettings.of(saved, configured)
        copying = back_up(_database(configured, needed), directory.expanduser(), recorded)
        manifest = asyncio.run(copying)  # noqa: TID251  a separate process
    print(
        f"{directory}: {manifest.rows:,} rows of {len(manifest.tables)} tables,"
        f" {manifest.size_bytes / 1e6:,.1f} MB, {time.monotonic() - began:.1f} s."
    )
    if verify:
        restoring.check(directory.expanduser())
        print("Read back: all rows are there, and the SHA-256 is equal.")


def restore(
    directory: Annotated[Path, typer.Argument(help="Directory of a backup.")],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Read the backup back and change nothing.")
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Keep models and vectors that differ from the backup's.")
    ] = False,
) -> None:
    """Restore a backup into an empty ledger, and build its vector index.

    Every table is compared with the backup. Processes of Memlane must not run. A stack without
    saved settings gets those of the backup.
    """
    directory = directory.expanduser()
    if dry_run:
        manifest = restoring.check(directory)
        print(
            f"Complete: {manifest.rows:,} rows of {manifest.taken_at}, schema {manifest.schema},"
            f" Memlane {manifest.memlane}."
        )
        return
    manifest = archive.read_manifest(directory)
    saved = take_recorded(adopt(), manifest)
    configured, layout = local()
    if is_running(layout):
        raise StackError(RUNNING.format(down=command_line("down")))
    if not yes:
        require_same(manifest, saved, configured)
    require_complete(configured)
    layout.create()
    with rebuild.servers(configured, layout, running=False) as needed:
        _restore(configured, needed, directory)
        if saved.file and not saved.path.exists():  # before the index, which may fail
            saved.write(saved.current(configured))
            print(f"The settings of the backup are saved in {saved.path}.")
        _mention_left_out(manifest, saved, configured)
        _replace_lost_key(configured, layout, needed)
        code = rebuild.build(configured, layout, needed)
    if code == rebuild.WHOLE:
        rebuild.save(configured, saved)
    elif code:
        raise typer.Exit(code)


def _restore(configured: Settings, needed: list[Server], directory: Path) -> None:
    """Restore, and print what the ledger has now."""
    began = time.monotonic()
    url = _database(configured, needed)
    result = asyncio.run(restoring.restore(url, directory))  # noqa: TID251  a separate process
    totals = result.totals
    print(
        f"Restored: {result.manifest.rows:,} rows, equal to the backup of"
        f" {result.manifest.taken_at}, {time.monotonic() - began:.1f} s."
    )
    print(
        f"{totals.accepted:,} events accepted, {totals.succeeded:,} succeeded,"
        f" {totals.failed:,} failed, {totals.cancelled:,} cancelled,"
        f" {totals.pending + totals.running:,} in progress; {totals.memories:,} memories."
        f" Lanes queued again: {result.lanes:,}."
    )
    if not totals.balanced:
        raise StackError(UNBALANCED)


def _mention_left_out(manifest: Manifest, saved: SavedSettings, configured: Settings) -> None:
    """Name the settings of the backup's stack that neither the backup nor this stack has."""
    missing = sorted(set(manifest.left_out) - saved.current(configured).keys())
    if missing:
        print(LEFT_OUT.format(names=", ".join(missing), path=saved.path))


def _replace_lost_key(configured: Settings, layout: Layout, needed: list[Server]) -> None:
    """Create an admin key in `api_key` if it has none of the backup, which has only hashes."""
    url, key = _database(configured, needed), layout.key()
    if key is not None and asyncio.run(is_valid(url, key)):  # noqa: TID251  a separate process
        return
    if configured.database_url is not None:  # this host may only run the restore
        print(NO_KEY)
        return
    key = asyncio.run(recover(url, RESTORED))  # noqa: TID251  a separate process
    write_private(layout.api_key, f"{key}\n")
    print(NEW_KEY.format(path=layout.api_key))


def _database(configured: Settings, needed: list[Server]) -> str:
    """URL of the configured database, else of the local stack's own server."""
    if configured.database_url is not None:
        return configured.database_url.get_secret_value()
    return next(server.url for server in needed if server.name == "postgres")
