"""Attacks that read: searches, lists, changes, graphs and exports."""

from __future__ import annotations

import asyncio
from itertools import count
from typing import Any

from tests.bench.hostile.attacks import attack
from tests.bench.hostile.tenant import Statuses, Tenant, dumped

SEARCH, LIST = "/v3/memories/search/", "/v3/memories/"
_turns = count()


def search(user: str, query: str, **options: Any) -> dict[str, Any]:
    return {"user_id": user, "query": query, **options}


def nested(depth: int, leaf: dict[str, Any]) -> dict[str, Any]:
    """Filters that nest ORs and NOTs."""
    tree = leaf
    for level in range(depth):
        tree = {"OR": [tree, {"user_id": f"u{level}"}]} if level % 2 else {"NOT": [tree]}
    return tree


@attack("changes-dots", "differences of 30 texts of dots (N1)")
async def changes_dots(tenant: Tenant) -> Statuses:
    for key in await tenant.ids("dots"):
        await tenant.send("PUT", f"/v1/memories/{key}/", {"text": "0" + ".," * 495})
    path = f"/v1/changes/?from={tenant.events['before_dots']}&user_id=dots&page_size=200"
    return await tenant.send("GET", path, times=8)


@attack("changes-long", "differences of 200 texts of 32 kB (N7)")
async def changes_long(tenant: Tenant) -> Statuses:
    path = "/v1/changes/?from=2020-01-01&user_id=long&page_size=200"
    return await tenant.send("GET", path, times=16, at_once=16)


@attack("search-speakers", "five turns against 1,000 speakers of 80 words (N5)")
async def search_speakers(tenant: Tenant) -> Statuses:
    messages = [{"role": "user", "content": f"an apple {n} " + "an " * 2_600} for n in range(5)]
    options = {"include": ["turns"], "top_k": 1000, "threshold": 0}
    body = {"user_id": "speakers", "messages": messages, **options}
    return await tenant.send("POST", SEARCH, body, times=6)


@attack("search-new-shapes", "filters of 19 new metadata keys each (N6)")
async def search_new_shapes(tenant: Tenant) -> Statuses:
    def body(n: int) -> dict[str, Any]:
        pairs = [(f"k{n}_{i}", f"q{n}_{i}") for i in range(9)]
        parts = [
            {"OR": [{"metadata": {key: {"gt": 1}}}, {"metadata": {other: {"icontains": "x"}}}]}
            for key, other in pairs
        ]
        options = {"include": ["facts", "turns"], "context_turns": 1, "explain": True}
        return {"filters": {"AND": [{"user_id": "small"}, *parts]}, "query": f"Who {n}?", **options}

    return await tenant.send_all(("POST", SEARCH, dumped(body(n))) for n in range(60))


@attack("search-64-words", "64 words in long texts (N9)")
async def search_64_words(tenant: Tenant) -> Statuses:
    body = search("words", tenant.events["words"], filter_memories=True, top_k=1000, threshold=0)
    return await tenant.send("POST", SEARCH, body, times=8, at_once=8)


@attack("search-mistyped", "64 mistyped words against 400,000 words, filter_memories")
async def search_mistyped(tenant: Tenant) -> Statuses:
    words = " ".join("ab" + "".join(tenant.random.sample("cdefghij", 8)) + "x" for _ in range(64))
    body = search("mistyped", words, filter_memories=True, top_k=1000, threshold=0)
    return await tenant.send("POST", SEARCH, body, times=4)


@attack("search-compounds", "64 parts of words with filter_memories, in 30,000 words")
async def search_compounds(tenant: Tenant) -> Statuses:
    words = " ".join(tenant.word(5) + tenant.word(9) for _ in range(64))
    body = search("words", words, filter_memories=True, top_k=1000, threshold=0)
    return await tenant.send("POST", SEARCH, body, times=4)


@attack("search-letters", "single CJK letters with filter_memories")
async def search_letters(tenant: Tenant) -> Statuses:
    letters = "".join(chr(0x4E00 + n * 7) for n in range(2_000))
    body = search("mistyped", letters, filter_memories=True, top_k=1000, threshold=0)
    return await tenant.send("POST", SEARCH, body, times=6)


@attack("search-large-answer", "1,000 results with ten turns around each")
async def search_large_answer(tenant: Tenant) -> Statuses:
    options = {"include": ["turns"], "top_k": 1000, "threshold": 0, "context_turns": 10}
    return await tenant.send("POST", SEARCH, search("turns", "an apple", **options), times=8)


@attack("search-long-texts", "results of 32 kB each up to the limit")
async def search_long_texts(tenant: Tenant) -> Statuses:
    body = search("long", "long text", top_k=1000, threshold=0)
    return await tenant.send("POST", SEARCH, body, times=8)


@attack("search-long-ids", "results whose ids are longer than their texts")
async def search_long_ids(tenant: Tenant) -> Statuses:
    body = search("ids", "tiny", top_k=1000, threshold=0, context_turns=10)
    return await tenant.send("POST", SEARCH, body, times=8)


@attack("search-metadata", "results with 32 kB of metadata, and 100 fields")
async def search_metadata(tenant: Tenant) -> Statuses:
    fields = ["metadata", *(f"metadata.key {n} 5" for n in range(99))]
    body = search("metadata", "fact", top_k=1000, threshold=0, fields=fields)
    return await tenant.send("POST", SEARCH, body, times=8)


@attack("search-context", "a context of 200,000 tokens")
async def search_context(tenant: Tenant) -> Statuses:
    body = search("long", "long text", top_k=1000, threshold=0, max_tokens=200_000)
    return await tenant.send("POST", SEARCH, body, times=6)


@attack("search-dates", "600 dates in a question")
async def search_dates(tenant: Tenant) -> Statuses:
    query = " ".join(f"on {1 + n % 28} March {1500 + n}" for n in range(450))
    body = search("turns", query, include=["turns"], top_k=1000, threshold=0)
    return await tenant.send("POST", SEARCH, body, times=6)


@attack("search-explain", "explanations of 100 ids")
async def search_explain(tenant: Tenant) -> Statuses:
    ids = (await tenant.ids("small"))[:100]
    body = search("small", "the number", explain=ids, top_k=1000, threshold=0, rerank=True)
    return await tenant.send("POST", SEARCH, body, times=8)


@attack("search-past", "searches of past states of the whole project")
async def search_past(tenant: Tenant) -> Statuses:
    body = {"filters": {"user_id": "*"}, "query": "number", "as_of": "2026-11-24T00:00:00Z"}
    return await tenant.send("POST", SEARCH, body | {"top_k": 1000, "threshold": 0}, times=8)


@attack("search-everything", "searches of all users, facts and turns, top 1,000")
async def search_everything(tenant: Tenant) -> Statuses:
    body = {"filters": {"user_id": "*"}, "query": "the apple of number", "top_k": 1000}
    body |= {"include": ["facts", "turns"], "threshold": 0, "keyword_search": True}
    return await tenant.send("POST", SEARCH, body, times=8)


@attack("search-200-at-once", "200 searches at once")
async def search_200_at_once(tenant: Tenant) -> Statuses:
    bodies = (dumped(search("small", f"the number {next(_turns)}")) for _ in range(400))
    return await tenant.send_all((("POST", SEARCH, body) for body in bodies), at_once=200)


@attack("search-unicode", "a question of combining marks")
async def search_unicode(tenant: Tenant) -> Statuses:
    body = search("small", "a" + "\u0316\u0301" * 3_990, filter_memories=True)
    return await tenant.send("POST", SEARCH, body, times=12)


@attack("search-ligatures", "a question of letters that unfold to eighteen")
async def search_ligatures(tenant: Tenant) -> Statuses:
    body = search("small", "\ufdfa" * 7_999, filter_memories=True, top_k=1000, threshold=0)
    return await tenant.send("POST", SEARCH, body, times=12)


@attack("search-500-messages", "a question of 500 messages of 1,900 characters")
async def search_500_messages(tenant: Tenant) -> Statuses:
    messages = [{"role": "user", "content": f"an apple {n} " + "so " * 620} for n in range(500)]
    return await tenant.send("POST", SEARCH, {"user_id": "small", "messages": messages}, times=10)


@attack("search-capitals", "8,000 characters of capitalized words with filter_memories")
async def search_capitals(tenant: Tenant) -> Statuses:
    query = " ".join(tenant.word(6).capitalize() for _ in range(1_100))
    body = search("small", query, filter_memories=True, top_k=1000, threshold=0)
    return await tenant.send("POST", SEARCH, body, times=8)


@attack("search-topics", "8,000 characters of questions joined by and")
async def search_topics(tenant: Tenant) -> Statuses:
    query = " and ".join(f"where is {tenant.word(4)}?" for _ in range(400))
    body = search("small", query, filter_memories=True, top_k=1000, threshold=0)
    return await tenant.send("POST", SEARCH, body, times=8)


@attack("list-long-texts", "pages of 200 texts of 32 kB")
async def list_long_texts(tenant: Tenant) -> Statuses:
    return await tenant.send("POST", LIST + "?page_size=200", {"user_id": "long"}, times=12)


@attack("list-metadata", "pages of 200 rows with 32 kB of metadata")
async def list_metadata(tenant: Tenant) -> Statuses:
    return await tenant.send("POST", LIST + "?page_size=200", {"user_id": "metadata"}, times=12)


@attack("list-bare", "lists without an envelope near the limit", expects={200, 400})
async def list_bare(tenant: Tenant) -> Statuses:
    path = "/v1/memories/?user_id=metadata&limit=200"
    return await tenant.send("GET", path, times=12)


@attack("list-conditions", "99 conditions in nested ORs")
async def list_conditions(tenant: Tenant) -> Statuses:
    parts = [{"OR": [{"metadata": {f"k{n}": {"icontains": "x"}}}, {"keywords": f"word{n}"}]}
             for n in range(45)]  # fmt: skip
    body = {"filters": {"AND": [{"user_id": "*"}, {"OR": parts}]}}
    return await tenant.send("POST", LIST, body, times=6)


@attack("list-nested", "filters nested 60 levels deep", expects={200, 400})
async def list_nested(tenant: Tenant) -> Statuses:
    body = {"filters": {"AND": [{"user_id": "small"}, nested(26, {"keywords": "x"})]}}
    return await tenant.send("POST", LIST, body, times=20)


@attack("list-wildcards", "keywords of 256 characters in 32 kB texts of all users")
async def list_wildcards(tenant: Tenant) -> Statuses:
    body = {"filters": {"OR": [{"user_id": "*"}, {"agent_id": "*"}]}, "keywords": "g t" * 80}
    return await tenant.send("POST", LIST, body, times=8)


@attack("list-offsets", "pages and offsets at the extremes", expects={200, 404})
async def list_offsets(tenant: Tenant) -> Statuses:
    first = await tenant.send("POST", LIST + "?offset=999999999", {"user_id": "small"}, times=8)
    return first + await tenant.send("POST", LIST + "?page=9999999", {"user_id": "small"}, times=8)


@attack("events-pages", "pages of 200 events with 1 MB each")
async def events_pages(tenant: Tenant) -> Statuses:
    return await tenant.send("GET", "/v1/events/?page_size=200", times=12)


@attack("memory-events", "the project's changes in pages of 200")
async def memory_events(tenant: Tenant) -> Statuses:
    return await tenant.send("GET", "/v1/memories/events/?page_size=200", times=12)


@attack("entities", "lists of entities and a user's memories with their inputs")
async def entities(tenant: Tenant) -> Statuses:
    first = await tenant.send("GET", "/v1/entities/?page_size=200", times=12)
    return first + await tenant.send("GET", "/v1/memories/user/long/?page_size=200", times=8)


@attack("history", "the history of a memory with 40 texts of 32 kB")
async def history(tenant: Tenant) -> Statuses:
    [key, *_] = await tenant.ids("long")
    for n in range(40):
        await tenant.send("PUT", f"/v1/memories/{key}/", {"text": f"{n} " + "word " * 6_300})
    return await tenant.send("GET", f"/v1/memories/{key}/history/", times=8)


@attack("graph-walk", "walks over the graph, and its export")
async def graph_walk(tenant: Tenant) -> Statuses:
    first = await tenant.send(
        "GET", "/v1/graph/?user_id=graph&entity=user&hops=3&page_size=200", times=10
    )
    return first + await tenant.send(
        "GET", "/v1/graph/export/?user_id=graph&page_size=200", times=10
    )


@attack("exports", "exports of 200 properties over 500 memories")
async def exports(tenant: Tenant) -> Statuses:
    properties = {tenant.word(8): {"type": "string", "description": tenant.word(200)}
                  for _ in range(200)}  # fmt: skip
    body = {"user_id": "words", "schema": {"type": "object", "properties": properties}}
    answer = await tenant.post("/v1/exports/", body)
    again = await tenant.post("/v1/summary/", {"user_id": "long"})
    await tenant.ended([answer.get("id"), answer.get("event_id"), again.get("event_id")])
    return await tenant.send("POST", "/v1/exports/", body)


@attack("verify", "30 verifications at once (N13)", expects={200, 429, 409})
async def verify(tenant: Tenant) -> Statuses:
    return await tenant.send("GET", "/v1/verify/", times=30, at_once=30)


@attack("metrics", "80 reads of /metrics without a key (N10)", expects={200, 401, 403, 404})
async def metrics(tenant: Tenant) -> Statuses:
    return await tenant.send("GET", "/metrics", times=80, at_once=40)


@attack("stats", "statistics and readiness, 100 times")
async def stats(tenant: Tenant) -> Statuses:
    first = await tenant.send("GET", "/v1/stats/", times=100, at_once=20)
    return first + await tenant.send("GET", "/readyz", times=100, at_once=20)


@attack("openapi", "the description of the API, and its pages")
async def openapi(tenant: Tenant) -> Statuses:
    return await tenant.send("GET", "/openapi.json", times=40, at_once=8)


@attack("waits", "200 requests that wait for the end of an event")
async def waits(tenant: Tenant) -> Statuses:
    answer = await tenant.add("waits", ["I like waiting."])
    await tenant.ended([answer["event_id"]])
    body = search("waits", "waiting", after_event=answer["event_id"], wait=10)
    waiting = tenant.send("POST", SEARCH, body, times=200, at_once=200)
    polls = tenant.send("GET", f"/v1/event/{answer['event_id']}/?wait=5", times=200, at_once=80)
    return sum(await asyncio.gather(waiting, polls), Statuses())


@attack("mcp", "MCP calls with large answers")
async def mcp(tenant: Tenant) -> Statuses:
    tenant.http.headers["Accept"] = "application/json, text/event-stream"
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    arguments = {"query": "long text", "user_id": "long", "top_k": 100, "limit": 100}
    body = call | {"params": {"name": "search_memories", "arguments": arguments}}
    lists = call | {"params": {"name": "get_memories",
                               "arguments": {"user_id": "metadata", "page_size": 200}}}  # fmt: skip
    first = await tenant.send("POST", "/mcp", body, times=10)
    return first + await tenant.send("POST", "/mcp", lists, times=10)


@attack("unknown-keys", "19,000 unknown keys and 500 faults in a body", expects={200, 400})
async def unknown_keys(tenant: Tenant) -> Statuses:
    keys = {f"key {n}": n for n in range(19_000)}
    first = await tenant.send("POST", LIST, {"user_id": "small", **keys}, times=8)
    faults = {"user_id": "x", "messages": [{"role": 5, "content": {"a": n}} for n in range(500)]}
    return first + await tenant.send("POST", "/v3/memories/add/", faults, times=20)


@attack("unknown-routes", "paths of 60 kB that no route has", expects={400, 404, 431})
async def unknown_routes(tenant: Tenant) -> Statuses:
    return await tenant.send("GET", "/v1/memories/" + "a/b" * 20_000, times=50)
