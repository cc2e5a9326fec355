"""Bad models: the oracle's answers, each spoiled in the way of one kind of bad model.

A bad model stays bad: it answers the request to repair its answer in the same way.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence

from tests.eval.scenarios.dialogues import Text
from tests.eval.scenarios.oracle import SUPERSEDED, NewFact, Oracle, Row, Shown, decision, key

GOOD = "good"
Decide = Callable[[Sequence[NewFact], Sequence[Shown]], list[Row]]

# Of usual length, with dates.
SUMMARY = " ".join(
    (
        "The user and the assistant talk about the way to work, the weather and a heavy bag.",
        "On 2026-02-03 the train was late and the coffee at the station was bad.",
        "A meeting on 2026-02-04 went well, and the numbers of its third page can wait.",
        "The user came home wet on 2026-02-05, because the umbrella stood by the door.",
        "The assistant suggested a second umbrella for the bag, which the user finds too heavy.",
        "Most of the weight of the bag is a laptop and printed mails that are out of date.",
        "On 2026-02-07 the user began to sort the papers and threw the first pile away.",
        "The printer at the office was repaired on 2026-02-09, and since then it prints twice.",
        "The assistant promised to remind the user of the umbrella before the next trip.",
        "They also spoke about trains that stop on the open line, and why nobody says for how"
        " long, about coffee from machines, and about meetings without an end.",
        "The mood was relaxed; the user likes to complain a little at the end of a long day.",
        "Open at the end: whether the second umbrella is bought, and where it will be kept.",
    )
)
# One sentence in another language than any of the dialogues; the values stay.
FOREIGN = "L'utilisateur a dit : {values} ({number})."


class Answers:
    """Answers of a model of the kind `behaviour`: `good`, or a name of `BAD`."""

    def __init__(self, oracle: Oracle) -> None:
        self.oracle = oracle
        self.behaviour = GOOD

    async def __call__(self, kind: str, prompt: str) -> str:
        if kind == "summary":
            return json.dumps({"summary": SUMMARY})
        if kind not in ("extract", "decide"):
            return json.dumps({"relations": [], "ended": []})
        answer = self.oracle.extract(prompt) if kind == "extract" else self.oracle.decide(prompt)
        if self.behaviour == GOOD:
            return _json(answer)
        return BAD[self.behaviour](self.oracle, kind, prompt, answer)


def unknown_ids(oracle: Oracle, kind: str, prompt: str, answer: Row) -> str:
    """Targets that were not shown."""
    return _json(_decisions(answer, lambda row: row | {"target": _moved(row, 40)}))


def other_ids(oracle: Oracle, kind: str, prompt: str, answer: Row) -> str:
    """Targets that were shown, but are other memories."""
    count = len(oracle.read(prompt)[1]) if kind == "decide" else 0
    return _json(
        _decisions(
            answer,
            lambda row: row | {"target": row["target"] and row["target"] % count + 1},
        )
    )


def prose(oracle: Oracle, kind: str, prompt: str, answer: Row) -> str:
    """Prose around the JSON."""
    fenced = json.dumps(answer, ensure_ascii=False, indent=1)
    return f"Sure, here is what I think!\n```json\n{fenced}\n```\nTell me if {{anything}} is wrong."


def missing_keys(oracle: Oracle, kind: str, prompt: str, answer: Row) -> str:
    """Rows with nothing but the first keys."""
    rows = answer.get("facts") or answer.get("decisions") or []
    name = "facts" if "facts" in answer else "decisions"
    wanted = ("messages", "text") if name == "facts" else ("fact", "action", "target")
    return _json({name: [{key: row[key] for key in wanted} for row in rows]})


def wrong_language(oracle: Oracle, kind: str, prompt: str, answer: Row) -> str:
    """Facts and memories in another language."""
    if kind == "extract":
        for row in answer["facts"]:
            row["text"] = _foreign(oracle, row["text"])
    return _json(_decisions(answer, lambda row: row | {"text": _foreign(oracle, row["text"])}))


def add_all(oracle: Oracle, kind: str, prompt: str, answer: Row) -> str:
    """ADD for every fact."""
    return _redecided(
        oracle,
        kind,
        prompt,
        answer,
        lambda facts, _: [decision(f, "ADD", reason="x") for f in facts],
    )


def delete_all(oracle: Oracle, kind: str, prompt: str, answer: Row) -> str:
    """DELETE of every memory, shared out among the facts."""

    def decide(facts: Sequence[NewFact], memories: Sequence[Shown]) -> list[Row]:
        rows = [
            decision(facts[n % len(facts)], "DELETE", memory, reason="It is outdated.")
            for n, memory in enumerate(memories)
        ]
        return rows + [decision(f, "NOOP", reason="x") for f in facts[len(memories) :]]

    return _redecided(oracle, kind, prompt, answer, decide)


def update_all(oracle: Oracle, kind: str, prompt: str, answer: Row) -> str:
    """UPDATE of a memory with the text of the fact, which drops all the memory holds."""

    def decide(facts: Sequence[NewFact], memories: Sequence[Shown]) -> list[Row]:
        return [
            decision(fact, "UPDATE", memories[n], fact.text, "It has changed.")
            if n < len(memories)
            else decision(fact, "ADD", reason="x")
            for n, fact in enumerate(facts)
        ]

    return _redecided(oracle, kind, prompt, answer, decide)


def noop_all(oracle: Oracle, kind: str, prompt: str, answer: Row) -> str:
    """NOOP for every fact, on a memory or on none."""

    def decide(facts: Sequence[NewFact], memories: Sequence[Shown]) -> list[Row]:
        return [
            decision(fact, "NOOP", memories[n] if n < len(memories) else None, reason="Known.")
            for n, fact in enumerate(facts)
        ]

    return _redecided(oracle, kind, prompt, answer, decide)


def values_dropped(oracle: Oracle, kind: str, prompt: str, answer: Row) -> str:
    """UPDATE whose text has lost every number, and every name but the first."""
    return _json(_decisions(answer, lambda row: row | {"text": row["text"] and _bare(row["text"])}))


def shuffled_facts(oracle: Oracle, kind: str, prompt: str, answer: Row) -> str:
    """Decisions that belong to other facts."""
    count = len({row["fact"] for row in answer.get("decisions", ())})
    return _json(_decisions(answer, lambda row: row | {"fact": row["fact"] % count + 1}))


def dates_ignored(oracle: Oracle, kind: str, prompt: str, answer: Row) -> str:
    """UPDATE to what arrived last, although it was said earlier."""
    if kind == "extract":
        return _json(answer)
    texts = {fact.number: fact.text for fact in oracle.read(prompt)[0]}
    return _json(
        _decisions(
            answer,
            lambda row: (
                row | {"action": "UPDATE", "text": texts[row["fact"]]}
                if row["reason"] == SUPERSEDED
                else row
            ),
        )
    )


BAD: Mapping[str, Callable[[Oracle, str, str, Row], str]] = {
    function.__name__: function
    for function in (
        unknown_ids, other_ids, prose, missing_keys, wrong_language, add_all, delete_all,
        update_all, noop_all, values_dropped, shuffled_facts, dates_ignored,
    )
}  # fmt: skip


def _redecided(oracle: Oracle, kind: str, prompt: str, answer: Row, decide: Decide) -> str:
    if kind == "extract":
        return _json(answer)
    return _json({"decisions": decide(*oracle.read(prompt))})


def _decisions(answer: Row, spoil: Callable[[Row], Row]) -> Row:
    if "decisions" not in answer:
        return answer
    return {"decisions": [spoil(row) for row in answer["decisions"]]}


def _moved(row: Row, by: int) -> int | None:
    return row["target"] + by if row["target"] else None


def _foreign(oracle: Oracle, text: str | None) -> str | None:
    """A sentence in French with the values of the text, which holds the same facts."""
    if text is None or text.startswith("L'utilisateur"):
        return text
    scenario, known = oracle.texts.get(key(text), (None, frozenset()))
    if scenario is None:
        return text
    memory = scenario.memory(known) or Text(text)
    number = 1 + list(scenario.facts).index(max(known))
    foreign = FOREIGN.format(values=", ".join(sorted(memory.values)), number=f"nº {number}")
    oracle.hold(foreign, scenario, known)
    return foreign


def _bare(text: str) -> str:
    """The text without numbers, and without capitalised words after the first word."""
    first, _, rest = text.partition(" ")
    return f"{first} " + re.sub(r"\d\S*|\b[A-ZÄÖÜÁÉÍÓÚÑ]\w+", "", rest).strip()


def _json(answer: Row) -> str:
    return json.dumps(answer, ensure_ascii=False)
