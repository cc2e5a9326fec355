"""Attacks that write: adds, edits, replays, webhooks, erasures."""

from __future__ import annotations

from itertools import count
from typing import Any

from tests.bench.hostile.attacks import attack
from tests.bench.hostile.tenant import Statuses, Tenant, dumped

_users = count()


def user() -> str:
    return f"new-{next(_users)}"


def body(*texts: str, **options: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": text} for text in texts]
    return {"user_id": user(), "messages": messages, **options}


@attack("add-recalled", "30 messages of blanks before a mark, twice (N2)")
async def add_recalled(tenant: Tenant) -> Statuses:
    return await tenant.adds(body(*[" " * 31_980 + "x<recalled>"] * 30) for _ in range(2))


@attack("add-recalled-marks", "3,199 marks of recalled texts in each message (N2)")
async def add_recalled_marks(tenant: Tenant) -> Statuses:
    return await tenant.adds(body(*["<recalled>" * 3_199] * 30) for _ in range(2))


@attack("add-honest-1mb", "1 MB of honest sentences, twice (N12)")
async def add_honest_1mb(tenant: Tenant) -> Statuses:
    def text() -> str:
        return " ".join(
            f"I like {tenant.word()} and my {tenant.word()} is {tenant.word()}." for _ in range(450)
        )[:19_900]

    return await tenant.adds(body(*(text() for _ in range(45))) for _ in range(2))


@attack("add-many-facts", "500 messages of two facts, four times (N12)")
async def add_many_facts(tenant: Tenant) -> Statuses:
    def texts() -> list[str]:
        return [f"I like {tenant.word()}. I visited {tenant.word().capitalize()}."
                for _ in range(500)]  # fmt: skip

    return await tenant.adds(body(*texts()) for _ in range(4))


@attack("add-one-slot", "500 messages that each change the same facts, to one user")
async def add_one_slot(tenant: Tenant) -> Statuses:
    def texts() -> list[str]:
        return [f"My name is {tenant.word().capitalize()}. I live in {tenant.word().capitalize()}."
                for _ in range(500)]  # fmt: skip

    bodies = [body(*texts()) | {"user_id": "one-slot"} for _ in range(4)]
    return await tenant.adds(bodies)


@attack("add-to-large-scope", "500 facts into a scope of 1,000")
async def add_to_large_scope(tenant: Tenant) -> Statuses:
    texts = [f"I saw the {tenant.word()} of {tenant.word()} number {n}." for n in range(500)]
    return await tenant.adds([body(*texts) | {"user_id": "small"}] * 2)


@attack("add-500-users", "500 small adds, each of another user")
async def add_500_users(tenant: Tenant) -> Statuses:
    return await tenant.adds((body(f"I like {tenant.word()}.") for _ in range(500)), at_once=32)


@attack("add-500-to-one", "300 small adds to one user")
async def add_500_to_one(tenant: Tenant) -> Statuses:
    bodies = (body(f"I like {tenant.word()}.") | {"user_id": "one"} for _ in range(300))
    return await tenant.adds(bodies, at_once=32)


@attack("add-marks", "30 messages of 30,000 combining marks")
async def add_marks(tenant: Tenant) -> Statuses:
    return await tenant.adds(body(*["a" + "\u0316\u0301" * 7_990] * 15) for _ in range(3))


@attack("add-long-words", "messages of one word of 32,000 letters")
async def add_long_words(tenant: Tenant) -> Statuses:
    return await tenant.adds(body(*[tenant.word(32_000)] * 30) for _ in range(3))


@attack("add-cjk", "messages of 10,000 CJK letters")
async def add_cjk(tenant: Tenant) -> Statuses:
    return await tenant.adds(body(*["\u6211\u559c\u6b22" * 3_300] * 30) for _ in range(3))


@attack("add-quotes", "messages of quotes, dates and names")
async def add_quotes(tenant: Tenant) -> Statuses:
    text = ('"so" he said on 3 March 2024, Anna B. from Rome; ' * 650)[:31_900]
    return await tenant.adds(body(*[text] * 30) for _ in range(2))


@attack("add-one-sentence", "30 sentences of 32,000 characters without an end")
async def add_one_sentence(tenant: Tenant) -> Statuses:
    return await tenant.adds(body(*["I like tea and " * 2_130] * 30) for _ in range(2))


@attack("add-assistant-echoes", "250 facts that an assistant repeats")
async def add_assistant_echoes(tenant: Tenant) -> Statuses:
    messages: list[dict[str, str]] = []
    for n in range(250):
        fact = f"I like {tenant.word()} number {n}."
        messages += [{"role": "user", "content": fact}, {"role": "assistant", "content": fact}]
    return await tenant.adds([{"user_id": user(), "messages": messages}] * 2)


@attack("add-verbatim", "500 verbatim messages of 1,900 characters, four times")
async def add_verbatim(tenant: Tenant) -> Statuses:
    texts = [f"{n} " + "said as it is " * 130 for n in range(500)]
    return await tenant.adds(body(*texts, infer=False) for _ in range(4))


@attack("add-instructions", "20 kB of instructions and 100 categories of 2,000", expects={200, 400})
async def add_instructions(tenant: Tenant) -> Statuses:
    categories = {f"name {n}": "about " * 330 for n in range(100)}
    options = {"custom_instructions": "Obey. " * 3_300, "custom_categories": categories}
    bodies = [body("I like tea.", **options) for _ in range(20)]
    return await tenant.adds([*bodies, body("I", custom_instructions="x" * 100_000)])


@attack("add-procedural", "a procedure of 500 steps", expects={200, 400})
async def add_procedural(tenant: Tenant) -> Statuses:
    steps = [f"step {n}: " + "do it " * 300 for n in range(500)]
    options = {"memory_type": "procedural_memory", "agent_id": "robot"}
    return await tenant.adds(body(*steps, **options) for _ in range(3))


@attack("add-metadata", "32 kB of metadata on each of 25 adds")
async def add_metadata(tenant: Tenant) -> Statuses:
    metadata = {f"key {n}" + "k" * 1_000: "v" for n in range(30)}
    return await tenant.adds(body("I like tea.", metadata=metadata) for _ in range(25))


@attack("add-parts", "messages of 200 parts and base64 documents", expects={200, 400})
async def add_parts(tenant: Tenant) -> Statuses:
    part = {"type": "mdx_url", "mdx_url": {"url": "QUJD" * 5_000}}
    parts = [{"type": "text", "text": "I like tea."}] * 150 + [part] * 20
    message = {"role": "user", "content": parts}
    return await tenant.adds([{"user_id": user(), "messages": [message] * 2}] * 10)


@attack("add-deep-json", "bodies of 20,000 values, 64 levels deep", expects={200, 400})
async def add_deep_json(tenant: Tenant) -> Statuses:
    deep: Any = {}
    for _ in range(60):
        deep = {"a": deep}
    first = await tenant.send("POST", "/v3/memories/", {"user_id": "x", "filters": deep}, times=20)
    wide = {"user_id": user(), "messages": "x", "ignored": list(range(19_900))}
    return first + await tenant.send("POST", "/v3/memories/add/", wide, times=10)


@attack("dry-runs", "dry runs of 500 facts")
async def dry_runs(tenant: Tenant) -> Statuses:
    texts = [f"I like {tenant.word()} and {tenant.word()}." for _ in range(500)]
    return await tenant.adds(body(*texts, dry_run=True) for _ in range(4))


@attack("idempotency", "one add of 1 MB sent 40 times under one key")
async def idempotency(tenant: Tenant) -> Statuses:
    tenant.http.headers["Idempotency-Key"] = "again"
    try:
        content = dumped(body(*["said again " * 2_800] * 30, infer=False))
        return await tenant.send("POST", "/v3/memories/add/", content, times=40, at_once=10)
    finally:
        del tenant.http.headers["Idempotency-Key"]


@attack("batch-edits", "edits and deletes of 200 memories at once, eight times")
async def batch_edits(tenant: Tenant) -> Statuses:
    ids = await tenant.ids("small")
    text = "edited " * 600
    edits = {"memories": [{"memory_id": key, "text": f"{n} {text}"} for n, key in enumerate(ids)]}
    statuses = await tenant.send("PUT", "/v1/batch/", edits, times=8)
    gone = {"memories": [{"memory_id": key} for key in ids[:100]]}
    return statuses + await tenant.send("DELETE", "/v1/batch/", gone)


@attack("feedback", "400 feedbacks with reasons of 2,000 characters")
async def feedback(tenant: Tenant) -> Statuses:
    ids = await tenant.ids("small")
    requests = (
        ("POST", "/v1/feedback/",
         dumped({"memory_id": key, "feedback": "NEGATIVE", "feedback_reason": "no" * 1_000}))
        for key in ids * 2
    )  # fmt: skip
    return await tenant.send_all(requests, at_once=16)


@attack("webhooks", "100 webhooks of slow receivers, and an add of 40 verbatim messages")
async def webhooks(tenant: Tenant) -> Statuses:
    path = f"/api/v1/webhooks/projects/{tenant.project_id}/"
    hook = {"url": tenant.receiver, "event_types": ["memory_add", "memory_update"]}
    statuses = await tenant.send_all(
        ("POST", path, dumped({"name": f"hook {n}", **hook})) for n in range(100)
    )
    statuses += await tenant.adds([body(*(f"text {n}" for n in range(40)), infer=False)] * 3)
    made = await tenant.get(path)
    rows = made if isinstance(made, list) else made.get("results", [])
    await tenant.send_all(
        (("DELETE", f"/api/v1/webhooks/{row['webhook_id']}/", None) for row in rows), at_once=8
    )
    return statuses


@attack("undo", "undo of 250 memories, and of a delete of all of a user", expects={200, 202})
async def undo(tenant: Tenant) -> Statuses:
    answer = await tenant.add("undone", [f"text {n}" for n in range(500)], infer=False)
    statuses = await tenant.send("POST", f"/v1/event/{answer['event_id']}/undo/", {})
    return statuses + await tenant.send("DELETE", "/v1/memories/?user_id=undone")


@attack("replays", "replays of the largest scopes", expects={200, 201, 202, 409})
async def replays(tenant: Tenant) -> Statuses:
    statuses = Statuses()
    for name in ("graph", "one-slot", "small", "one"):
        answer = await tenant.http.post("/v1/replays/", json={"user_id": name})
        statuses[answer.status_code] += 1
        if "id" in answer.json():
            tenant.events[f"replay-{name}"] = answer.json()["id"]
    for name in ("graph", "one-slot", "small", "one"):
        if key := tenant.events.get(f"replay-{name}"):
            statuses += await tenant.send("GET", f"/v1/replays/{key}/diff/?page_size=200", times=4)
            await tenant.send("DELETE", f"/v1/replays/{key}/")
    return statuses


@attack("curator", "curator runs over the largest scopes", expects={200, 201, 202, 409, 400})
async def curator(tenant: Tenant) -> Statuses:
    statuses = Statuses()
    for name in ("small", "one-slot", "graph", "words", "long"):
        statuses += await tenant.send("POST", "/v1/curator/runs/", {"user_id": name})
    statuses += await tenant.send("GET", "/v1/curator/runs/", times=20)
    return statuses + await tenant.send("GET", "/v1/suggestions/?page_size=200", times=20)


@attack("private-runs", "150 temporary runs, each with an add, ended at once")
async def private_runs(tenant: Tenant) -> Statuses:
    runs = [user() for _ in range(150)]
    declared = dumped({"privacy": "temporary"})
    statuses = await tenant.send_all(("PUT", f"/v1/runs/{run}/", declared) for run in runs)
    await tenant.adds(body("I like secrets.") | {"run_id": run, "infer": False} for run in runs)
    ended = (("DELETE", f"/v2/entities/run/{run}/", None) for run in runs)
    return statuses + await tenant.send_all(ended, at_once=16)


@attack("keys", "60 keys and 20 projects made")
async def keys(tenant: Tenant) -> Statuses:
    return await tenant.send("POST", "/v1/keys/", {"name": "k", "scope": "read"}, times=60)


@attack("registered", "300 users registered with 32 kB of metadata")
async def registered(tenant: Tenant) -> Statuses:
    metadata = {f"key {n}": "v" * 90 for n in range(300)}
    bodies = (dumped({"user_id": user(), "metadata": metadata}) for _ in range(300))
    statuses = await tenant.send_all((("POST", "/v1/users/", each) for each in bodies), at_once=8)
    return statuses + await tenant.send("GET", "/v1/entities/?page_size=200", times=8)


@attack("erasures", "erasures of the largest scopes", expects={200, 202})
async def erasures(tenant: Tenant) -> Statuses:
    statuses = Statuses()
    for name in ("words", "turns", "small", "mistyped"):
        statuses += await tenant.send("POST", "/v1/erasures/", {"user_id": name})
    return statuses + await tenant.send("DELETE", "/v2/entities/user/long/")
