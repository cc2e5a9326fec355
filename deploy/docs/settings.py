"""docs/reference/settings.md."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import is_dataclass
from typing import Any, Literal, get_args, get_origin, get_type_hints

from annotated_types import Ge, Gt, Le
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from deploy.docs.members import member_docs
from deploy.docs.tables import GENERATED, table
from pipeline.settings import PREFIX, Settings

INTRO = """# Settings

Memlane reads its settings from environment variables; [Change
settings](../howto/production.md#change-settings) shows how to set them. If a variable starts with
`MEMLANE_` and is not on this page, the process does not start, and names the most similar setting.
"""
HEAD = ("variable", "default", "allowed", "meaning")
SECTION = re.compile(r"    # ── (.+) ──$|    (\w+): ")
Row = tuple[str, str, str, str]


def page() -> str:
    """The settings by section, in the order of the code."""
    docs = member_docs(Settings)
    parts = [GENERATED + INTRO]
    for section, names in _sections().items():
        rows = [row for name in names for row in _rows(name, Settings.model_fields[name], docs)]
        parts.append(f"## {section}\n\n{table(HEAD, rows)}")
    return "\n".join(parts)


def _sections() -> dict[str, list[str]]:
    """Field names by the `# ── section ──` comment above them."""
    sections: dict[str, list[str]] = {}
    current = ""
    for line in inspect.getsource(Settings).splitlines():
        match = SECTION.match(line)
        if match is None:
            continue
        section, name = match.groups()
        if section:
            current = section
            sections[section] = []
        elif name in Settings.model_fields:
            sections[current].append(name)
    return sections


def _rows(name: str, info: FieldInfo, docs: dict[str, str]) -> Iterator[Row]:
    """One row, or one for each nested setting of a group."""
    kind = info.annotation
    if isinstance(kind, type) and (is_dataclass(kind) or issubclass(kind, BaseModel)):
        yield from _group(name, kind, info.default, docs[name])
        return
    allowed = _allowed([*info.metadata, *_metadata(kind)], kind)
    yield _variable(name), _default(info), allowed, docs[name]


def _group(name: str, kind: type, value: Any, text: str) -> Iterator[Row]:
    docs = member_docs(kind)
    annotations = get_type_hints(kind, include_extras=True)
    for number, (part, meaning) in enumerate(docs.items()):
        allowed = _allowed(_metadata(annotations[part]), annotations[part])
        shown = _shown(getattr(value, part))
        yield (
            _variable(f"{name}__{part}"),
            shown,
            allowed,
            meaning if number else f"{text} {meaning}",
        )


def _variable(name: str) -> str:
    return f"`{PREFIX}{name.upper()}`"


def _default(info: FieldInfo) -> str:
    if info.default_factory is not None:
        text = (info.default_factory.__doc__ or "").split(".", maxsplit=1)[0]
        return text[0].lower() + text[1:]
    return _shown(info.default)


def _shown(value: Any) -> str:
    if value is None or value in ((), ""):
        return ""
    if isinstance(value, float):
        return f"`{value:g}`" if value < 1_000_000 and value % 1 else f"`{int(value)}`"
    return f"`{value}`"


def _metadata(annotation: Any) -> list[Any]:
    """The constraints inside `Annotated[...] | None` and the like."""
    inner = [item for part in get_args(annotation) for item in _metadata(part)]
    constraints = getattr(annotation, "__metadata__", ())
    unpacked = [m for c in constraints for m in (c.metadata if isinstance(c, FieldInfo) else [c])]
    return unpacked + inner


def _allowed(metadata: list[Any], annotation: Any) -> str:
    if get_origin(annotation) is Literal:
        return ", ".join(f"`{value}`" for value in get_args(annotation))
    low = next((f"≥ {m.ge}" for m in metadata if isinstance(m, Ge)), "")
    low = next((f"> {m.gt}" for m in metadata if isinstance(m, Gt)), low)
    high = next((f"≤ {m.le}" for m in metadata if isinstance(m, Le)), "")
    return ", ".join(bound for bound in (low, high) if bound)
