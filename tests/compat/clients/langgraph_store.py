"""The store of LangGraph on Memlane, step by step beside LangGraph's own store in memory."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from langgraph.graph import START, StateGraph  # type: ignore[import-not-found,unused-ignore]
from langgraph.store.base import (  # type: ignore[import-not-found,unused-ignore]
    BaseStore,
    GetOp,
    PutOp,
    SearchOp,
)
from langgraph.store.memory import InMemoryStore  # type: ignore[import-not-found,unused-ignore]
from memlane_client import Memlane
from memlane_client.integrations import langgraph as langgraph_store
from memlane_client.integrations.langgraph import MemlaneStore
from report import USER, report  # type: ignore[import-not-found,unused-ignore]

memlane = Memlane(os.environ["MEM0_API_KEY"], os.environ["MEMLANE_URL"])
STORES: list[BaseStore] = [InMemoryStore(), MemlaneStore(memlane, app_id=USER)]
HOME, WORK = ("users", "maya", "home"), ("users", "maya", "work")


def same(read: Callable[[BaseStore], Any]) -> Any:
    """The answer, which both stores must give."""
    expected, real = (read(store) for store in STORES)
    assert real == expected, f"{real} is not {expected}"
    return real


def facts(item: Any) -> Any:
    return item and (item.namespace, item.key, item.value)


def read(store: BaseStore, *, space: tuple[str, ...], key: str) -> Any:
    return facts(store.get(space, key))


def spaces(store: BaseStore, **options: Any) -> Any:
    return store.list_namespaces(**options)


def put_get_delete() -> None:
    for store in STORES:
        assert store.get(HOME, "pet") is None
        store.put(HOME, "pet", {"text": "A dog called Bodo", "age": 3, "tags": ["a", {"b": None}]})
        store.put(WORK, "pet", {"text": "A dog called Bodo", "age": 3, "tags": []})
        store.put(HOME, "car", {"text": "A red Saab", "age": 20})
        store.put(HOME, "car", {"text": "A blue Saab", "age": 21})
        store.put(("users", "ravi"), "pet", {"text": "A cat", "age": 1})
        store.delete(HOME, "nothing")
    for space, key in ((HOME, "pet"), (WORK, "pet"), (HOME, "car"), (HOME, "x")):
        same(partial(read, space=space, key=key))
    item = STORES[1].get(HOME, "car")
    assert item is not None
    assert item.updated_at >= item.created_at
    for store in STORES:
        store.put(("users", "ravi"), "bike", {"text": "A bike", "age": 2})
        store.delete(("users", "ravi"), "pet")
    assert same(lambda store: facts(store.get(("users", "ravi"), "pet"))) is None


def searches() -> None:
    def found(store: BaseStore, *prefix: str, **options: Any) -> list[Any]:
        items = map(facts, store.search(tuple(prefix), **options))
        return sorted(json.dumps(item, sort_keys=True) for item in items)

    def below_users(store: BaseStore, condition: dict[str, Any]) -> list[Any]:
        return found(store, "users", filter=condition)

    assert len(same(found)) == 4
    assert len(same(lambda store: found(store, "users", "maya", "home"))) == 2
    assert same(lambda store: found(store, "users", "ma")) == []
    for condition in (
        {"age": 3}, {"age": {"$gt": 3}}, {"age": {"$lte": 3}}, {"age": {"$ne": 3}},
        {"text": "A blue Saab", "age": 21}, {"none": 1},
    ):  # fmt: skip
        same(partial(below_users, condition=condition))
    assert len(STORES[1].search(("users",), limit=2)) == 2
    assert len(STORES[1].search(("users",), limit=2, offset=3)) == 1
    # Only a search by meaning has a most of results; a list goes on to its end.
    most, langgraph_store.MOST_RESULTS = langgraph_store.MOST_RESULTS, 2
    assert len(STORES[1].search(("users",), limit=2, offset=2)) == 2
    langgraph_store.MOST_RESULTS = most
    [best, *_] = STORES[1].search(("users", "maya"), query="Which animal?", limit=3)
    assert best.key == "pet"
    assert best.score is not None


def namespaces() -> None:
    options: dict[str, Any]
    for options in (
        {}, {"prefix": ("users",)}, {"suffix": ("work",)}, {"prefix": ("users", "*", "home")},
        {"max_depth": 2}, {"limit": 1}, {"offset": 1}, {"prefix": ("nothing",)},
    ):  # fmt: skip
        same(partial(spaces, **options))


def batches() -> None:
    ops = [
        PutOp(("b",), "k", {"n": 1}),
        PutOp(("b",), "k", {"n": 2}),
        GetOp(("b",), "k"),
        SearchOp(("b",)),
    ]
    same(lambda store: store.batch(ops))
    assert same(lambda store: facts(store.get(("b",), "k")))[2] == {"n": 2}
    same(lambda store: facts(asyncio.run(store.aget(("b",), "k"))))


def no_wildcards() -> None:
    """`*` is a label like others: as a wildcard it would read the items of all users."""
    labels = ("*", "**", "\\*", "\\", "star")
    for store in STORES:
        for label in labels:
            store.put(("wild", label), "k", {"mark": label, "text": f"note of {label}"})

    def below(store: BaseStore, *, label: str) -> list[Any]:
        return sorted(map(str, map(facts, store.search(("wild", label)))))

    def marked(store: BaseStore, *, label: Any) -> list[Any]:
        items = store.search(("wild",), filter={"mark": label})
        return sorted(map(str, map(facts, items)))

    for label in labels:
        assert len(same(partial(below, label=label))) == 1
        assert len(same(partial(marked, label=label))) == 1
        assert len(same(partial(marked, label={"$ne": label}))) == 4


VALUES: list[Any] = [
    None, True, False, 0, 1, 3, 3.0, 3.5, -2, 10**15, "", "3", "3.5", "abc", "abd", "*", "a.b",
    "2025-01-01", "Zoë", "\U0001f600", [], [1, 2], [{"b": 1, "c": 2}], {}, {"b": 1, "c": 2},
    {"b": None}, {"b": {"d.e": 1}}, {"b": True},
]  # fmt: skip
OPERANDS: list[Any] = [
    *VALUES, "4", "abcd", 2, 1.5, [1], [True, 2], {"b": 1.0}, {"c": None}, {"b": {"d.e": 1}},
    10**400, float("inf"), float("nan"), "\0", "\ud83d", "x" * 9_000,
]  # fmt: skip
NAMES = ("a", "a.b", "a.b.c", "b", "$a", "", "*", "x" * 300)


def filters() -> None:
    """Each item has one value, under plain names and under odd ones."""
    expecting: dict[str, InMemoryStore] = {}
    for number, value in enumerate(VALUES):
        put_one(expecting, str(number), dict.fromkeys(NAMES, value))
    put_one(expecting, "empty", {})
    operators = ("$eq", "$ne", "$gt", "$gte", "$lt", "$lte")
    wanted: list[dict[str, Any]] = [{"a": operand} for operand in OPERANDS]
    wanted += [{"a": {name: operand}} for name in operators for operand in OPERANDS]
    wanted += [{name: operand} for name in NAMES[1:] for operand in (3, "*", None, {"b": 1})]
    wanted += [{"a": {"b": {name: operand}}} for name in operators for operand in (1, None, "x")]
    wanted += [{"a": {"b": {"d.e": 1}}}, {"a": [{"b": {"$gte": 1}}]}, {"a": {"$gt": 1, "$lt": 3.2}}]
    wanted += [dict.fromkeys(NAMES, 3), {"a": {str(n): 1 for n in range(150)}}, {}]
    different = []
    for condition in wanted:
        is_match = {name: answer(store, condition) for name, store in expecting.items()}
        expected = sorted(name for name in is_match if is_match[name])
        items = STORES[1].search(("filters",), filter=condition, limit=100)
        real = sorted(
            item.namespace[1] for item in items if is_match[item.namespace[1]] is not None
        )
        if real != expected:
            different.append(f"{condition}: {real} is not {expected}"[:200])
    assert different == [], (len(different), different[:20])


def put_one(expecting: dict[str, InMemoryStore], name: str, fields: dict[str, Any]) -> None:
    """Put an item into Memlane's store, and into one of LangGraph's that has no other."""
    STORES[1].put(("filters", name), "k", fields, index=False)
    expecting[name] = InMemoryStore()
    expecting[name].put(("filters", name), "k", fields)


def answer(store: BaseStore, condition: dict[str, Any]) -> bool | None:
    """True if the item of a store matches; None if it raises, as for values without order."""
    try:
        return bool(store.search((), filter=condition))
    except (TypeError, ValueError, OverflowError):
        return None


def values_without_order() -> None:
    """LangGraph's own store raises for these. Texts have the order of their characters."""
    store, space = STORES[1], ("order",)
    for number, value in enumerate(["2024-12-31", "2025-01-01", 7, None, ["2026"], True]):
        store.put(space, str(number), {"day": value})
    for condition, keys in (
        ({"$gte": "2025"}, ["1"]), ({"$lt": "2025-01-01"}, ["0"]), ({"$gt": "abc"}, []),
    ):  # fmt: skip
        items = store.search(space, filter={"day": condition})
        assert sorted(item.key for item in items) == keys, (condition, items)


def filtered_by_meaning() -> None:
    """A limit counts the items that match, also if the server cannot compare their values."""
    for number in range(5):
        value = {"text": "a red stone", "a.b": number, "mark": "*" if number == 0 else "x"}
        STORES[1].put(("stones",), str(number), value, index=["text"])
    for condition in ({"a.b": 0}, {"mark": "*"}):
        [item] = STORES[1].search(("stones",), query="stone", filter=condition, limit=1)
        assert item.key == "0"


def concurrent_puts() -> None:
    """Writers of one key leave one item, as the last write of a key does."""
    store = STORES[1]
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda n: store.put(("race",), "k", {"n": n}), range(16)))
    [item] = store.search(("race",))
    got = store.get(("race",), "k")
    assert got is not None
    assert item.value == got.value
    store.put(("race",), "k", {"n": 99})
    assert [item.value for item in store.search(("race",))] == [{"n": 99}]


def blank_queries() -> None:
    for query in ("", "  ", "\0", "\ud83d"):
        assert STORES[1].search(("users",), query=query) is not None


def not_indexed() -> None:
    STORES[1].put(("i",), "hidden", {"text": "A submarine"}, index=False)
    assert STORES[1].search(("i",), query="submarine") == []
    assert len(STORES[1].search(("i",))) == 1


def indexed_paths() -> None:
    """Paths into a value, as LangGraph writes them, choose the texts that a search reads."""
    titles = {"1": "A yellow submarine", "2": "Baking apple pie", "3": "Tax law of Norway"}
    for key, title in titles.items():
        value = {"meta": {"title": title, "noise": "A yellow submarine"}, "parts": [{"t": title}]}
        STORES[1].put(("nested",), key, value, index=["meta.title"])
        STORES[1].put(("listed",), key, value, index=["parts[*].t"])
    for space in ("nested", "listed"):
        for key, title in titles.items():
            [best, *_] = STORES[1].search((space,), query=title)
            assert best.key == key, (space, title, best)


def in_a_graph() -> None:
    def remember(state: dict[str, Any], *, store: BaseStore) -> dict[str, Any]:
        store.put(("graph",), "last", {"text": state["text"]})
        item = store.get(("graph",), "last")
        assert item is not None
        return {"text": item.value["text"] + "!"}

    graph = StateGraph(dict)
    graph.add_node("remember", remember)
    graph.add_edge(START, "remember")
    assert graph.compile(store=STORES[1]).invoke({"text": "Hi"}) == {"text": "Hi!"}


report(
    {
        "put, get, delete": put_get_delete,
        "search": searches,
        "list_namespaces": namespaces,
        "batch, abatch": batches,
        "index=False": not_indexed,
        "index=[paths]": indexed_paths,
        "a graph": in_a_graph,
        "labels that are wildcards": no_wildcards,
        "search with filters": filters,
        "search with values without order": values_without_order,
        "search by meaning with filters": filtered_by_meaning,
        "concurrent put": concurrent_puts,
        "search without words": blank_queries,
    }
)
