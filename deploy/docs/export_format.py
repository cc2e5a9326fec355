"""docs/reference/export-format.md."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from deploy.docs.tables import GENERATED, table
from pipeline.transfer import records
from pipeline.transfer.coverage import EXPORTED, LEFT_OUT
from pipeline.transfer.records import Scoped

INTRO = """# Export format

`memlane export` writes lines of JSON, one object each, in UTF-8. The first line has the type
`header`, the last one the type `end`. Between them are the owners, then the scopes in the order of
their ids, each with its events, memories, entities, relations, summaries and conflicts.

A field that is null, or a list that is empty, is left out. Times have a zone. Two exports of one
state differ only in `exported_at` and `memlane` of the header. Left out are events that have not
ended, questions (exports, summaries and dry runs), imports, what an erasure has emptied, turns that
a `delete_all` hid, and temporary runs. See [Import and export](../howto/import.md).

"""
SCOPE = """`user_id`, `agent_id`, `app_id`, `run_id`: the ids of the scope, as far as it has them.

"""
TABLES = """## Tables

Every table of the ledger, and the lines that have its rows.

"""
LINES: tuple[type[BaseModel], ...] = (
    records.Header,
    records.OwnerRecord,
    records.EventRecord,
    records.MemoryRecord,
    records.EntityRecord,
    records.RelationRecord,
    records.SummaryRecord,
    records.ConflictRecord,
    records.End,
)
PARTS: tuple[type[BaseModel], ...] = (
    records.SaidMessage,
    records.ReceiptPart,
    records.GraphReceiptPart,
    records.HistoryPart,
    records.PastStatePart,
    records.PastMerge,
    records.PastEnd,
    records.FeedbackEntry,
    records.ConflictMember,
)


def page() -> str:
    """The fields of every line, and the tables that are left out."""
    lines = "".join(_section(f"## `{_type(line)}`", line) for line in LINES)
    parts = "".join(_section(f"## {part.__name__}", part) for part in PARTS)
    rows = [(f"`{name}`", f"lines of type `{kind}`") for name, kind in EXPORTED.items()]
    rows += [(f"`{name}`", f"left out: {reason}") for name, reason in LEFT_OUT.items()]
    return GENERATED + INTRO + lines + parts + TABLES + table(("table", "rows"), sorted(rows))


def _type(line: type[BaseModel]) -> str:
    (kind,) = line.model_fields["type"].annotation.__args__  # type: ignore[union-attr]
    return str(kind)


def _section(heading: str, model: type[BaseModel]) -> str:
    scope = SCOPE if issubclass(model, Scoped) else ""
    head = ("field", "value", "default")
    return f"{heading}\n\n{inspect.getdoc(model)}\n\n{scope}{table(head, _rows(model))}\n"


def _rows(model: type[BaseModel]) -> Iterator[tuple[str, str, str]]:
    schema = model.model_json_schema(mode="validation")
    required = set(schema.get("required", ()))
    for name, field in schema["properties"].items():
        if name not in Scoped.model_fields:
            default = "" if name in required else _default(field)
            yield f"`{name}`", _value(field, schema), default


def _default(field: dict[str, Any]) -> str:
    value = field.get("default")
    return "null" if value is None else f"`{value}`"


def _value(field: dict[str, Any], schema: dict[str, Any]) -> str:
    """The kind of a field's value, in words."""
    if reference := field.get("$ref"):
        name = reference.rsplit("/", 1)[1]
        target = schema["$defs"][name]
        anchor = re.sub(r"[^a-z]", "", name.lower())
        return _words(target["enum"]) if "enum" in target else f"[{name}](#{anchor})"
    if options := field.get("anyOf"):
        values = [_value(option, schema) for option in options if option.get("type") != "null"]
        return " or ".join(values)
    if "const" in field:
        return f"`{field['const']}`"
    if "enum" in field:
        return _words(field["enum"])
    if field.get("type") == "array":
        return f"list of {_value(field['items'], schema)}"
    formats = {"date-time": "time", "date": "date", "uuid": "UUID"}
    return formats.get(field.get("format", ""), str(field.get("type", "any")))


def _words(words: list[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)
