"""Backup and restore of a real ledger: equal tables, refusals, and lanes that go on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest
from sqlalchemy import text

from deploy.backup import archive
from deploy.backup.backup import back_up
from deploy.backup.restore import check, restore
from deploy.cli.recovery import database_url, is_valid
from deploy.stack.failure import StackError
from deploy.stack.maintenance import alone
from deploy.stack.saved_settings import parse
from deploy.stack.servers import Postgres
from pipeline.backup.manifest import differences, to_json
from pipeline.backup.store import BackupStore
from pipeline.domain.events import StageName
from pipeline.ledger.engine import connect
from pipeline.settings import Settings
from tests.support.engine import Engine, build_ledger
from tests.support.local_stack import LocalStack
from tests.support.recount import drift


@pytest.fixture
async def empty_url(postgres: Postgres) -> AsyncIterator[str]:
    """URL of a new database without tables."""
    name = f"test_{uuid4().hex}"
    engine = connect(postgres.url, pool_size=1)
    single = engine.execution_options(isolation_level="AUTOCOMMIT")
    async with single.connect() as connection:
        await connection.execute(text(f"CREATE DATABASE {name}"))
        yield postgres.url.rpartition("/")[0] + "/" + name
        await connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))
    await engine.dispose()


async def busy(engine: Engine) -> None:
    """Memories, and lanes that are queued, running and idle."""
    await engine.add("I live in Turku.", "I am allergic to peanuts.")
    await engine.drain()
    await engine.add("I moved to Vaasa.")
    await engine.run_until(StageName.CONSOLIDATE)
    await engine.add("My name is Ana.\n\\.\n", user_id="ana")
    await engine.add("I work at Acme.", user_id="bo")
    await engine.claim(engine.hints.waiting.pop())


async def test_a_restored_ledger_is_equal_and_goes_on(
    engine: Engine, database_url: str, empty_url: str, tmp_path: Path
) -> None:
    await busy(engine)
    manifest = await back_up(database_url, tmp_path / "backup")
    # What is accepted later is not in the backup.
    await engine.add("I have a cat.")
    before = await BackupStore(engine.ledger.engine).tables()
    assert set(differences(manifest.tables, before)) >= {"events", "messages", "lanes"}
    assert check(tmp_path / "backup") == manifest

    result = await restore(empty_url, tmp_path / "backup")
    assert (result.lanes, result.totals.balanced) == (3, True)
    assert (result.totals.accepted, result.totals.succeeded) == (4, 1)
    restored = build_ledger(empty_url)
    after = await BackupStore(restored.engine).tables()
    assert set(differences(manifest.tables, after)) == {"lanes"}  # their due times

    services = replace(engine.services, ledger=restored)
    moved = Engine(restored, engine.project, services, engine.vectors)
    assert await moved.sweep() == 3
    await moved.drain()
    totals = (await restored.balance.totals(engine.project.id)).succeeded
    assert totals == 4
    assert "User works at Acme" in await moved.texts("bo")
    assert await drift(restored.engine) == []
    await restored.close()


async def test_a_ledger_with_events_is_not_replaced(
    engine: Engine, database_url: str, empty_url: str, tmp_path: Path
) -> None:
    await engine.add("I live in Turku.")
    await back_up(database_url, tmp_path / "backup")
    await restore(empty_url, tmp_path / "backup")
    with pytest.raises(StackError, match="has events or memories"):
        await restore(empty_url, tmp_path / "backup")


async def test_a_database_in_use_is_not_replaced(
    engine: Engine, database_url: str, empty_url: str, tmp_path: Path
) -> None:
    await back_up(database_url, tmp_path / "backup")
    api = connect(empty_url, pool_size=1, name="memlane api")
    async with api.connect():
        with pytest.raises(StackError, match="processes of Memlane first: memlane api use"):
            await restore(empty_url, tmp_path / "backup")
    await api.dispose()
    assert await _schema(empty_url) is None


async def test_a_ledger_that_was_only_started_is_replaced(
    engine: Engine, database_url: str, empty_url: str, tmp_path: Path
) -> None:
    await back_up(database_url, tmp_path / "backup")
    await restore(empty_url, tmp_path / "backup")
    again = await restore(empty_url, tmp_path / "backup")
    assert again.totals.accepted == 0


async def test_a_backup_with_other_contents_than_its_manifest_is_removed_again(
    engine: Engine, database_url: str, empty_url: str, tmp_path: Path
) -> None:
    await engine.add("I live in Turku.")
    folder = tmp_path / "backup"
    manifest = await back_up(database_url, folder)
    text_of = to_json(manifest).replace(manifest.tables["messages"].checksum.encode(), b"123")
    (folder / archive.MANIFEST).write_bytes(text_of)
    with pytest.raises(StackError, match=r"differ .* removed: messages \(other contents\)"):
        await restore(empty_url, folder)
    assert await _schema(empty_url) is None


async def test_an_archive_that_was_cut_is_found_when_it_is_read_back(
    engine: Engine, database_url: str, tmp_path: Path
) -> None:
    await engine.add("I live in Turku.")
    folder = tmp_path / "backup"
    manifest = await back_up(database_url, folder)
    path = folder / manifest.archive
    path.write_bytes(path.read_bytes()[: manifest.size_bytes // 2])
    with pytest.raises(StackError, match="SHA-256 differs"):
        check(folder)
    with pytest.raises(StackError, match="cannot read the archive"):
        archive.require_rows(folder, manifest)


def with_a_ledger(stack: LocalStack) -> LocalStack:
    """The stack with real migrations, pgvector and a model."""
    table = json.loads(stack.programs.read_text())
    del table["migrate"]
    stack.programs.write_text(json.dumps(table))
    model = {"MODEL": "openai/gpt-x", "API_BASE": f"http://127.0.0.1:{stack.port}/v1"}
    stack.extra = {f"MEMLANE_LLM__{name}": value for name, value in model.items()}
    stack.extra |= {"MEMLANE_LLM__API_KEY": "a-secret", "MEMLANE_VECTORS": "pgvector"}
    return stack


def test_a_stack_that_was_reset_has_its_settings_and_a_key_after_a_restore(
    stack: LocalStack, tmp_path: Path
) -> None:
    with_a_ledger(stack)
    assert stack.up().returncode == 0
    before = parse(stack.layout.env)
    stack.extra, folder = {}, str(tmp_path / "backup")
    done = stack.memlane("backup", folder)
    assert done.returncode == 0, done.stderr
    assert "a-secret" not in (tmp_path / "backup" / archive.MANIFEST).read_text()
    assert stack.cli("reset", "--yes").returncode == 0

    done = stack.memlane("restore", folder)
    assert done.returncode == 0, done.stderr
    assert "Not in the backup: MEMLANE_LLM__API_KEY." in done.stdout
    saved = parse(stack.layout.env)
    assert before.items() - saved.items() == {("MEMLANE_LLM__API_KEY", "a-secret")}
    assert stack.layout.api_key.stat().st_mode & 0o777 == 0o600
    key = stack.layout.key()
    assert key is not None
    done = stack.up()
    assert done.returncode == 0, done.stderr
    assert stack.state().llm == "openai/gpt-x"
    assert "chroma" not in stack.state().processes
    assert asyncio.run(is_valid(database_url(Settings(), stack.layout), key))  # noqa: TID251


def test_two_commands_start_no_servers_on_one_data_directory(
    stack: LocalStack, tmp_path: Path
) -> None:
    """A second PostgreSQL beside the first one would damage the ledger."""
    with_a_ledger(stack)
    folder = str(tmp_path / "backup")
    stack.layout.create()
    with alone(stack.layout):
        for refused in (stack.cli("reindex"), stack.memlane("backup", folder), stack.up()):
            assert refused.returncode == 1, refused.stdout
            assert "another command" in refused.stderr
    done = stack.up()
    assert done.returncode == 0, done.stderr
    with pytest.raises(StackError, match="another command"), alone(stack.layout):
        pass
    assert stack.memlane("backup", folder).returncode == 0


def test_a_restore_into_a_stack_with_another_model_needs_a_yes(
    stack: LocalStack, tmp_path: Path
) -> None:
    with_a_ledger(stack)
    assert stack.up().returncode == 0
    folder = str(tmp_path / "backup")
    assert stack.memlane("backup", folder).returncode == 0
    assert stack.cli("down").returncode == 0
    stack.extra = {"MEMLANE_LLM__MODEL": "openai/gpt-y"}
    refused = stack.memlane("restore", folder)
    assert refused.returncode == 1
    assert "MEMLANE_LLM__MODEL: openai/gpt-x in the backup, openai/gpt-y here" in refused.stderr
    assert refused.stdout == ""
    stack.layout.api_key.write_text("a-key-of-another-ledger")
    done = stack.memlane("restore", folder, "--yes")
    assert done.returncode == 0, done.stderr
    assert stack.layout.key() != "a-key-of-another-ledger"


async def test_there_is_no_backup_of_nothing(empty_url: str, tmp_path: Path) -> None:
    with pytest.raises(StackError, match="no ledger"):
        await back_up(empty_url, tmp_path / "backup")
    assert list(tmp_path.iterdir()) == []


async def _schema(url: str) -> str | None:
    engine = connect(url, pool_size=1)
    try:
        return await BackupStore(engine).schema()
    finally:
        await engine.dispose()
