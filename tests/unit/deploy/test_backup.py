"""Files of a backup, and the arguments of PostgreSQL's client programs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from deploy.backup import archive, clients
from deploy.backup.restore import require_known
from deploy.backup.settings import RecordedSettings, require_same, take_recorded
from deploy.stack.failure import StackError
from deploy.stack.saved_settings import SavedSettings
from pipeline.backup.manifest import Manifest, TableState, differences, from_json, to_json
from pipeline.domain.errors import InvalidInput
from pipeline.model_settings import LLMSettings
from pipeline.settings import Settings

MANIFEST = Manifest(
    memlane="0.2.0",
    schema="0076",
    postgres=18,
    taken_at="2026-11-24T12:00:00+00:00",
    archive="ledger.dump",
    size_bytes=3,
    sha256="ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
    tables={"events": TableState(2, "17"), "lanes": TableState(0, "0")},
)
SCRIPT = rb"""SET row_security = off;
COPY public.events (id, options) FROM stdin;
1	COPY public.lanes (id) FROM stdin;
2	\\.
\.


COPY public.lanes (id) FROM stdin;
\.
"""


def written(folder: Path, content: bytes = b"abc") -> Path:
    with archive.written_whole(folder) as draft:
        (draft / archive.ARCHIVE).write_bytes(content)
        (draft / archive.MANIFEST).write_bytes(to_json(MANIFEST))
    return folder


def test_a_manifest_is_read_back_as_it_was() -> None:
    assert from_json(to_json(MANIFEST)) == MANIFEST
    assert MANIFEST.rows == 2
    with_settings = replace(MANIFEST, settings={"MEMLANE_PORT": "8124"}, left_out=("A", "B"))
    assert from_json(to_json(with_settings)) == with_settings


def test_a_manifest_of_a_release_that_recorded_no_settings_is_read() -> None:
    values = json.loads(to_json(MANIFEST))
    del values["settings"], values["left_out"]
    assert from_json(json.dumps(values).encode()) == MANIFEST


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[1]",
        b'{"format": "memlane-backup", "version": 1}',
        to_json(MANIFEST).replace(b'"version": 1', b'"version": 2'),
        to_json(MANIFEST).replace(b"memlane-backup", b"memlane-export"),
    ],
)
def test_another_file_is_no_manifest(content: bytes) -> None:
    with pytest.raises(InvalidInput, match="no manifest of a Memlane backup"):
        from_json(content)


def test_tables_that_differ_are_named_with_the_reason() -> None:
    actual = {"events": TableState(2, "18"), "extra": TableState(1, "1")}
    assert differences(MANIFEST.tables, actual) == {
        "events": "other contents",
        "extra": "the backup does not have it",
        "lanes": "it is missing",
    }
    assert differences(MANIFEST.tables, {**MANIFEST.tables, "events": TableState(1_000, "1")}) == {
        "events": "1,000 rows instead of 2"
    }
    assert differences(MANIFEST.tables, MANIFEST.tables) == {}


def test_a_backup_that_fails_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "new.partial").mkdir()
    (tmp_path / "new.partial" / "rest").touch()
    with pytest.raises(StackError, match="cannot be written"):
        _write_half(tmp_path / "new")
    assert list(tmp_path.iterdir()) == []


def _write_half(folder: Path) -> None:
    with archive.written_whole(folder) as draft:
        assert list(draft.iterdir()) == []
        (draft / "half").mkdir()
        (draft / "half").write_bytes(b"")


def test_a_backup_replaces_no_other(tmp_path: Path) -> None:
    folder = written(tmp_path / "new")
    with pytest.raises(StackError, match="exists"):
        written(folder)
    assert {path.name for path in folder.iterdir()} == {"ledger.dump", "manifest.json"}
    assert folder.stat().st_mode & 0o077 == 0


def test_a_changed_archive_is_refused(tmp_path: Path) -> None:
    archive.require_unchanged(written(tmp_path / "good"), MANIFEST)
    for name, content in (("cut", b"ab"), ("changed", b"abd")):
        with pytest.raises(StackError, match="SHA-256 differs"):
            archive.require_unchanged(written(tmp_path / name, content), MANIFEST)
    with pytest.raises(StackError, match=r"manifest.json cannot be read"):
        archive.read_manifest(tmp_path)


def test_rows_are_counted_whatever_their_text_is() -> None:
    assert archive.count_rows(iter(SCRIPT.splitlines(keepends=True))) == {"events": 2}


# ── settings in the manifest ─────────────────────────────────────────────────────────────────────

SHELL = {
    "MEMLANE_LLM__MODEL": "openai/gpt-x",
    "MEMLANE_LLM__API_KEY": "sk-a-secret",
    "MEMLANE_LLM__FALLBACKS": '[{"model": "openai/other", "api_key": "sk-a-secret"}]',
    "MEMLANE_SEAL_KEY": "a-secret" * 4,
    "MEMLANE_DATABASE_URL": "postgresql://me:a-secret@db/memlane",
    "MEMLANE_CHROMA_URL": "http://chroma:8000",
    "MEMLANE_BROKER_SENTINEL_MASTER": "main",
    "MEMLANE_PORT": "8124",
    "OPENAI_API_KEY": "sk-a-secret",
}
MODEL = Settings.model_construct(llm=LLMSettings(model="openai/gpt-x"))


def test_settings_are_recorded_without_secrets_and_servers(tmp_path: Path) -> None:
    saved = SavedSettings(tmp_path / "env", {}, SHELL)
    recorded = RecordedSettings.of(saved, MODEL)
    assert recorded.values == {"MEMLANE_LLM__MODEL": "openai/gpt-x", "MEMLANE_PORT": "8124"}
    assert set(recorded.left_out) == SHELL.keys() - recorded.values.keys()
    saved.write({})
    assert RecordedSettings.of(saved, MODEL).values == {
        **recorded.values,
        "MEMLANE_EMBEDDER__MODEL": "local/minilm",
        "MEMLANE_VECTORS": "chroma",
        "MEMLANE_VECTOR_BUCKETS": "64",
    }


def test_a_stack_without_settings_takes_those_of_the_backup(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("MEMLANE_VECTORS", "MEMLANE_PORT"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    foreign = {"LD_PRELOAD": "x.so", "MEMLANE_REMOVED": "1", "MEMLANE_CHROMA_URL": "http://other"}
    recorded = {"MEMLANE_VECTORS": "pgvector", "MEMLANE_PORT": "8124"}
    manifest = replace(MANIFEST, settings=recorded | foreign)
    saved = SavedSettings(tmp_path / "env", {}, {"MEMLANE_PORT": "8125"})
    taken = take_recorded(saved, manifest)
    assert taken.current(Settings()) == {"MEMLANE_PORT": "8125", "MEMLANE_VECTORS": "pgvector"}
    assert Settings().vectors == "pgvector"
    saved.write({"MEMLANE_PORT": "8126"})
    assert take_recorded(saved, manifest) == saved


def test_settings_that_differ_from_the_backup_are_named(tmp_path: Path) -> None:
    saved = SavedSettings(tmp_path / "env", {}, {})
    recorded = {"MEMLANE_LLM__MODEL": "openai/gpt-x", "MEMLANE_VECTORS": "pgvector"}
    manifest = replace(MANIFEST, settings=recorded)
    with pytest.raises(StackError, match="MEMLANE_VECTORS: pgvector in the backup, chroma here"):
        require_same(manifest, saved, MODEL)
    require_same(replace(manifest, settings={"MEMLANE_LLM__MODEL": "openai/gpt-x"}), saved, MODEL)
    require_same(MANIFEST, saved, MODEL)


def test_a_newer_schema_is_refused_in_words() -> None:
    require_known(MANIFEST)
    newer = replace(MANIFEST, schema="9999", memlane="9.0")
    with pytest.raises(StackError, match=r"schema 9999 \(Memlane 9.0\), which this release"):
        require_known(newer)


def test_the_password_is_in_no_argument() -> None:
    url = "postgresql+asyncpg://me:s%3Acret@db:5433/memory?ssl=require"
    arguments, env = clients.connection_arguments(url)
    assert arguments[-1] == "postgresql://me@db:5433/memory?sslmode=require"
    assert env["PGPASSWORD"] == "s:cret"
    assert "cret" not in " ".join(arguments)


def test_messages_of_the_programs_have_no_text_of_rows() -> None:
    output = b"pg_restore: error: COPY failed\nDETAIL:  Key (text)=(secret)\nCONTEXT:  COPY x\n"
    assert clients.messages(output) == "pg_restore: error: COPY failed"
    assert clients.messages(b"") == "no message"


def test_a_program_older_than_the_server_is_refused() -> None:
    assert clients.find("pg_dump", server=1).major >= 1
    with pytest.raises(StackError, match=r"pg_dump of PostgreSQL 999 or newer .*\(found: \d+"):
        clients.find("pg_dump", server=999)
    with pytest.raises(StackError, match="none was found"):
        clients.find("pg_no_such_program", server=1)
