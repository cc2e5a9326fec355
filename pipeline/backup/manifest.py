"""The manifest of a backup: its schema, its time, and rows and checksum of each table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

import orjson

from pipeline.domain.errors import InvalidInput

FORMAT, VERSION = "memlane-backup", 1
UNKNOWN = "This is no manifest of a Memlane backup of version 1: {reason}."


@dataclass(frozen=True, slots=True)
class TableState:
    """Number of rows of a table, and a checksum of them that does not depend on their order."""

    rows: int
    checksum: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """Description of a backup.

    `memlane`: the release that wrote it. `schema`: newest migration of the ledger. `postgres`:
    major version of the server. `sha256`: of the archive file, of `size_bytes`. `settings`: of the
    stack, without secrets. `left_out`: names of its other settings.
    """

    memlane: str
    schema: str
    postgres: int
    taken_at: str
    archive: str
    size_bytes: int
    sha256: str
    tables: Mapping[str, TableState]
    settings: Mapping[str, str] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()

    @property
    def rows(self) -> int:
        """Number of rows of all tables."""
        return sum(table.rows for table in self.tables.values())


def to_json(manifest: Manifest) -> bytes:
    """The manifest as JSON."""
    values = {"format": FORMAT, "version": VERSION, **asdict(manifest)}
    return orjson.dumps(values, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def from_json(content: bytes) -> Manifest:
    """The manifest in a file. Errors: InvalidInput if it is another file, or of a later version."""
    try:
        values = orjson.loads(content)
        header = (values.pop("format"), values.pop("version"))
        tables = {name: TableState(**state) for name, state in values.pop("tables").items()}
        left_out = tuple(values.pop("left_out", ()))
        manifest = Manifest(**values, tables=tables, left_out=left_out)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidInput(UNKNOWN.format(reason="it cannot be read")) from error
    if header != (FORMAT, VERSION):
        raise InvalidInput(UNKNOWN.format(reason=f"it is {header[0]} of version {header[1]}"))
    return manifest


def differences(
    expected: Mapping[str, TableState], actual: Mapping[str, TableState]
) -> dict[str, str]:
    """Tables that differ, with the reason in words."""
    reasons = {}
    for name in sorted(expected.keys() | actual.keys()):
        before, after = expected.get(name), actual.get(name)
        if before is None or after is None:
            reasons[name] = "it is missing" if after is None else "the backup does not have it"
        elif before.rows != after.rows:
            reasons[name] = f"{after.rows:,} rows instead of {before.rows:,}"
        elif before.checksum != after.checksum:
            reasons[name] = "other contents"
    return reasons
