# mypy: ignore-errors
"""mem0's library, measured as its users call it: run by the Python of its own environment.

    python mem0_library.py BASE_URL FOLDER POSTGRES_URL MEMORIES      prints one line of JSON

Vectors lie in pgvector: mem0's default store, Qdrant on disk, fails with several callers ("operands
could not be broadcast together"). Callers are threads, because the library blocks.
"""

import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from statistics import quantiles

from mem0 import Memory

BASE_URL, FOLDER, POSTGRES_URL = sys.argv[1:4]
MEMORIES, USERS = int(sys.argv[4]), 50
EVENTS = 150
TOPICS = (
    "garden", "bicycle", "bakery", "guitar", "harbour", "chess", "pottery", "marathon", "violin",
    "cinema", "mountain", "kitchen", "library", "painting", "football", "sailing",
)  # fmt: skip


def sentence(number):
    topic, other = TOPICS[number % 16], TOPICS[number // 16 % 16]
    return f"I went from the {topic} to the {other} on trip {number}."


def timed(work, callers, count):
    """Run work(0 … count-1) on `callers` threads; return rate and percentiles."""

    def one(turn):
        began = time.perf_counter()
        work(turn)
        return time.perf_counter() - began

    began, cpu = time.perf_counter(), time.process_time()
    with ThreadPoolExecutor(callers) as pool:
        seconds = list(pool.map(one, range(count)))
    wall_s, cpu_s = time.perf_counter() - began, time.process_time() - cpu
    cuts = quantiles(seconds, n=20)
    return {
        "per_s": round(count / wall_s, 1),
        "p50_ms": round(1000 * cuts[9], 1),
        "p95_ms": round(1000 * cuts[18], 1),
        "cpu_ms": round(1000 * cpu_s / count, 1),
    }


def main():
    openai = {"api_key": "sk-bench", "openai_base_url": BASE_URL, "model": "stand-in"}
    memory = Memory.from_config(
        {
            "llm": {"provider": "openai", "config": openai},
            "embedder": {"provider": "openai", "config": openai | {"embedding_dims": 1536}},
            "vector_store": {
                "provider": "pgvector",
                "config": {
                    "connection_string": POSTGRES_URL,
                    "embedding_model_dims": 1536,
                    "maxconn": 20,
                },
            },
            "history_db_path": f"{FOLDER}/history.db",
        }
    )

    def store(turn):
        memory.add(sentence(turn), user_id=f"user-{turn % USERS}", infer=False)

    def search(turn):
        topic, other = TOPICS[turn * 5 % 16], TOPICS[turn * 11 % 16]
        query = f"When did I go from the {topic} to the {other}, visit {turn}?"
        memory.search(query, filters={"user_id": f"user-{turn * 7 % USERS}"}, top_k=10)

    def add(turn):
        turns = [
            {"role": "user", "content": sentence(turn)},
            {"role": "assistant", "content": "Thanks for telling me."},
        ]
        memory.add(turns, user_id=f"wide-{turn}")

    report = {"memories": MEMORIES, "fill": timed(store, 1, MEMORIES)}
    report["search_1_caller"] = timed(search, 1, 200)
    report["search_16_callers"] = timed(search, 16, 300)
    report["distinct_users_16_callers"] = timed(add, 16, EVENTS)
    print(json.dumps(report))


main()
