"""Store of LangGraph: `compile(store=MemlaneStore(Memlane(key)))`.

An item is one verbatim memory: its text is what a search finds, and its metadata has namespace, key
and value. Each item has a `run_id` of its own, so two items with one text do not count as a repeat,
and items are written side by side. `app_id` names the store.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    get_text_at_path,
)

from memlane_client.client import Memlane
from memlane_client.errors import Missing
from memlane_client.integrations import langgraph_filters
from memlane_client.operations import ANY
from memlane_client.receipts import MemoryRow, SearchHit
from memlane_client.storable import LONGEST_TEXT, storable

PAGE = 200
MOST_RESULTS = 1_000


class MemlaneStore(BaseStore):
    """A store on the synchronous client without an outbox: a `put` is visible once it returns.

    `fields`: names of fields, or paths such as `parts[*].text`, that a search reads; without it,
    all texts of the value.
    """

    supports_ttl = False

    def __init__(
        self, memlane: Memlane, *, app_id: str = "langgraph", fields: Iterable[str] | None = None
    ) -> None:
        """`app_id`: name of the store."""
        if memlane.outbox_status() is not None:
            raise ValueError("a store reads what it has written: use a client without an outbox")
        self._memlane = memlane
        self._app = {"app_id": app_id}
        self._fields = list(fields) if fields is not None else None

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Run reads first, then the last write of each key, as LangGraph's own stores do."""
        results: list[Result] = []
        writes: dict[tuple[tuple[str, ...], str], PutOp] = {}
        for op in ops:
            match op:
                case GetOp():
                    results.append(self._read(op))
                case SearchOp():
                    results.append(list(self._search(op)))
                case ListNamespacesOp():
                    results.append(self._namespaces(op))
                case PutOp():
                    writes[op.namespace, op.key] = op
                    results.append(None)
                case _:
                    raise ValueError(f"unknown operation: {type(op).__name__}")
        for write in writes.values():
            self._write(write)
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """The same in a thread."""
        return await asyncio.to_thread(self.batch, list(ops))

    def _read(self, op: GetOp) -> Item | None:
        rows = self._rows(_run(op.namespace, op.key))
        return next((Item(**_item_fields(row)) for row in rows), None)

    def _write(self, op: PutOp) -> None:
        """Add, change or delete the memory of an item.

        Concurrent writers of a new key each add a memory. Each then deletes all but the newest, so
        one is left, and it is the one that the last writer has read or added.
        """
        run_id = _run(op.namespace, op.key)
        rows = list(self._rows(run_id))
        if op.value is None:
            self._delete(rows)
            return
        text, metadata = self._text(op), _metadata(op)
        if not rows or not self._update(rows[0], text=text, metadata=metadata):
            app_id = self._app["app_id"]
            self._memlane.add(text, infer=False, metadata=metadata, app_id=app_id, run_id=run_id)
            rows = list(self._rows(run_id))
        self._delete(rows[1:])

    def _update(self, row: MemoryRow, **fields: Any) -> bool:
        """Change a memory; False if another writer has deleted it."""
        try:
            self._memlane.update(row.id, **fields)
        except Missing:
            return False
        return True

    def _delete(self, rows: Iterable[MemoryRow]) -> None:
        for row in rows:
            with suppress(Missing):  # another writer was faster
                self._memlane.delete(row.id)

    def _text(self, op: PutOp) -> str:
        """The text that a search reads; the key for an item that is not indexed."""
        assert op.value is not None
        fields = op.index if op.index is not None else self._fields
        if fields is False:
            return str(op.key)
        parts = op.value if fields is None else [_at(op.value, path) for path in fields]
        return "\n".join(_texts(parts))[:LONGEST_TEXT].strip() or str(op.key)

    def _search(self, op: SearchOp) -> Iterator[SearchItem]:
        """Items below the prefix that match the filter; by meaning if there is a query."""
        wanted = op.filter or {}
        langgraph_filters.check(wanted)
        filters = self._filters(op.namespace_prefix, wanted)
        end = op.offset + op.limit
        rows: Iterable[MemoryRow]
        if query := storable(op.query or "").strip():
            rows = self._ranked(query, filters, wanted, min(end, MOST_RESULTS))
        else:
            rows = (row for row in self._all(filters) if _meets(row, wanted))
        for row in islice(rows, op.offset, end):
            score = row.score if isinstance(row, SearchHit) else None
            yield SearchItem(score=score, **_item_fields(row))

    def _ranked(
        self, query: str, filters: Mapping[str, Any], wanted: Mapping[str, Any], count: int
    ) -> list[SearchHit]:
        """The best hits that match, at least `count` if there are as many.

        If the server returned hits that do not match, and may have more, it is asked for all.
        """
        indexed = {"AND": [*filters["AND"], {"metadata.indexed": True}]}
        for top_k in (count, MOST_RESULTS):
            hits = self._memlane.search(query, filters=indexed, top_k=top_k, threshold=0.0).results
            matching = [hit for hit in hits if _meets(hit, wanted)]
            if len(matching) == count or len(hits) < top_k:
                break
        return matching

    def _namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        """The namespaces that match; reads all items of the store."""
        spaces = {_namespace(row) for row in self._all(self._filters((), {}))}
        matching = {
            space for space in spaces if all(_matches(c, space) for c in op.match_conditions or ())
        }
        cut = sorted({space[: op.max_depth] for space in matching})
        return cut[op.offset : op.offset + op.limit]

    def _rows(self, run_id: str) -> Iterator[MemoryRow]:
        return self._all({"AND": [self._app, {"run_id": run_id}]})

    def _all(self, filters: Mapping[str, Any]) -> Iterator[MemoryRow]:
        """Memories that match, newest first; the next page is read once it is needed."""
        number = 1
        while True:
            page = self._memlane.list(filters, page=number, size=PAGE)
            yield from page.results
            if not page.next:
                return
            number += 1

    def _filters(self, prefix: tuple[str, ...], wanted: Mapping[str, Any]) -> dict[str, list[Any]]:
        """Conditions of the store, of the namespace's prefix, and of the values.

        Rows that meet them may have other values than those wanted: `_meets` compares each.
        """
        parts: list[Any] = [self._app]
        parts += [{f"metadata.path.p{depth}": _label(label)} for depth, label in enumerate(prefix)]
        parts += langgraph_filters.conditions("metadata.value", wanted)
        return {"AND": parts}


def _run(namespace: tuple[str, ...], key: str) -> str:
    return hashlib.sha256(json.dumps([namespace, key]).encode()).hexdigest()


def _metadata(op: PutOp) -> dict[str, Any]:
    """Namespace, key and value; labels of the namespace are separate, for filters by prefix."""
    return {
        "namespace": list(op.namespace),
        "path": {f"p{depth}": _label(label) for depth, label in enumerate(op.namespace)},
        "key": op.key,
        "value": op.value,
        "indexed": op.index is not False,
    }


def _label(text: str) -> str:
    """A label in the path of an item: with a backslash if it is `*`, the wildcard of filters."""
    return f"\\{text}" if text == ANY or text.startswith("\\") else text


def _meets(row: MemoryRow, wanted: Mapping[str, Any]) -> bool:
    """True if the value of an item meets the condition for each field."""
    value = (row.metadata or {}).get("value", {})
    return langgraph_filters.meets(value, wanted)


def _namespace(row: MemoryRow) -> tuple[str, ...]:
    return tuple((row.metadata or {}).get("namespace", ()))


def _item_fields(row: MemoryRow) -> dict[str, Any]:
    metadata = row.metadata or {}
    created_at = row.created_at or datetime.fromtimestamp(0, UTC)
    return {
        "namespace": _namespace(row),
        "key": metadata.get("key", ""),
        "value": metadata.get("value", {}),
        "created_at": created_at,
        "updated_at": row.updated_at or created_at,
    }


def _matches(condition: MatchCondition, namespace: tuple[str, ...]) -> bool:
    """True if the namespace begins or ends with the path; `*` stands for any label."""
    path = tuple(condition.path)
    if len(path) > len(namespace):
        return False
    start = 0 if condition.match_type == "prefix" else len(namespace) - len(path)
    part = namespace[start : start + len(path)]
    return all(wanted in ("*", label) for wanted, label in zip(path, part, strict=True))


def _at(value: Mapping[str, Any], path: str) -> Any:
    """The field of a value with this name, or the texts at a path of LangGraph."""
    return value[path] if path in value else get_text_at_path(value, path)


def _texts(value: Any) -> Iterator[str]:
    """All texts and numbers in a JSON value, depth first."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from _texts(list(value.values()))
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _texts(part)
    elif value is not None and not isinstance(value, bool):
        yield str(value)
