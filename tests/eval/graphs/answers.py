"""Answers of good and bad models to the relations question; other questions get good answers.

A bad model stays bad: it answers the request to repair its answer in the same way.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.text.names import plain_name
from pipeline.text.relations.names import canonical
from tests.eval.paths.worlds import Edge
from tests.eval.scenarios.bad import GOOD, Answers
from tests.eval.scenarios.dialogues import Scenario, Stated
from tests.eval.scenarios.oracle import Oracle, Row, numbered, section
from tests.support.llm_answers import QUOTED

_CURRENT = re.compile(rf"^(\d+): ({QUOTED}) (\S+) ({QUOTED})$", re.MULTILINE)
# Types of another family.
_OTHER_TYPES = {"person": "place", "place": "event", "organization": "food", "animal": "date"}
# Words of another language than any of the dialogues.
FOREIGN = {
    "lives_in": "habite_à", "works_at": "travaille_chez", "married_to": "marié_à",
    "owns": "possède_un", "likes": "aime_bien", "has_sister": "a_pour_sœur",
}  # fmt: skip
STRANGER = "Zorro"


@dataclass(frozen=True)
class Shown:
    """The numbered parts of a prompt: facts with their dialogues, and current relations."""

    facts: Mapping[int, tuple[Scenario, Stated]]
    current: Mapping[int, Edge]


class GraphOracle(Oracle):
    """A good model, which knows the relations of each fact."""

    def read_relations(self, prompt: str) -> Shown:
        """The facts and the current relations of a prompt."""
        facts = {n: self.new_fact(n, text) for n, text in numbered(section(prompt, "Facts"))}
        rows = _CURRENT.findall(section(prompt, "Current relations"))
        return Shown(
            {n: (f.scenario, f.stated) for n, f in facts.items() if f.scenario and f.stated},
            {int(n): (json.loads(source), name, json.loads(end)) for n, source, name, end in rows},
        )

    def relate(self, shown: Shown) -> Row:
        """The entities and relations of the facts, and the current relations that they end."""
        kinds: dict[str, str] = {}
        relations: list[Row] = []
        ended: list[Row] = []
        for number, (scenario, fact) in shown.facts.items():
            nodes = {label.split(" (")[0]: kind for label, kind in scenario.graph.nodes.items()}
            for source, name, target in fact.states:
                for end in (source, target):
                    kinds[end] = fact.types.get(end) or nodes.get(end, "person")
                relations.append(relation_row(number, source, name, target))
            ended += [
                {"relation": at, "fact": number}
                for at, edge in shown.current.items()
                if edge in fact.ends
            ]
        return answer(kinds, relations, ended)


class GraphAnswers(Answers):
    """Answers of a model of the kind `behaviour`: `good`, or a name of `BAD`."""

    def __init__(self, oracle: GraphOracle) -> None:
        super().__init__(oracle)
        self._relations = oracle

    async def __call__(self, kind: str, prompt: str) -> str:
        if kind != "relate":
            row = self.oracle.extract(prompt) if kind == "extract" else self.oracle.decide(prompt)
            return _json(row)
        shown = self._relations.read_relations(prompt)
        good = self._relations.relate(shown)
        return _json(good) if self.behaviour == GOOD else BAD[self.behaviour](shown, good)


def unknown_ids(shown: Shown, good: Row) -> str:
    """Current relations and facts that were not shown."""
    ended = [{"relation": len(shown.current) + 9, "fact": 1}, *good["ended"]]
    return _json(good | {"ended": ended})


def other_ids(shown: Shown, good: Row) -> str:
    """Ends of shown relations, but of the wrong ones; relations of other facts."""
    count, facts = len(shown.current), max(len(shown.facts), 1)
    ended = [row | {"relation": row["relation"] % count + 1} for row in good["ended"]]
    others = [row | {"fact": row["fact"] % facts + 1} for row in good["relations"]]
    if not ended and count:
        ended = [{"relation": count, "fact": 1}]
    return _json(good | {"relations": others, "ended": ended})


def prose(shown: Shown, good: Row) -> str:
    """Prose around the JSON."""
    return f"Here is {{the}} graph!\n```json\n{_json(good)}\n```\nShall I draw it?"


def missing_keys(shown: Shown, good: Row) -> str:
    """Relations without their fact, and no list of those that end."""
    rows = [{key: row[key] for key in ("source", "relation")} for row in good["relations"]]
    return _json({"entities": good["entities"], "relations": rows})


def wrong_types(shown: Shown, good: Row) -> str:
    """Entities of other types, if a relation of their scope is shown."""
    entities = [
        row | {"type": _OTHER_TYPES.get(row["type"], "person") if shown.current else row["type"]}
        for row in good["entities"]
    ]
    return _json(good | {"entities": entities})


def wrong_values(shown: Shown, good: Row) -> str:
    """Words for numbers, and numbers for names."""
    rows = [row | {"fact": "one", "source": 1} for row in good["relations"]]
    return _json(good | {"relations": rows, "ended": {"relation": 1}})


def unlisted_entities(shown: Shown, good: Row) -> str:
    """Relations between things that are not among the entities."""
    more = [relation_row(1, STRANGER, "married_to", row["target"]) for row in good["relations"]]
    return _json(good | {"relations": [*good["relations"], *more]})


def invalidate_all(shown: Shown, good: Row) -> str:
    """Every current relation ends, by every fact."""
    ended = [{"relation": at, "fact": number} for at in shown.current for number in shown.facts]
    return _json(good | {"ended": ended})


def add_all(shown: Shown, good: Row) -> str:
    """Every current relation begins again, by every fact, and none ends."""
    kinds = {row["name"]: row["type"] for row in good["entities"]}
    again = []
    for number in shown.facts:
        for source, name, target in shown.current.values():
            kinds.setdefault(source, "person")
            kinds.setdefault(target, "person")
            again.append(relation_row(number, source, name, target))
    return _json(answer(kinds, [*good["relations"], *again], []))


def self_loops(shown: Shown, good: Row) -> str:
    """Relations of things with themselves, beside the right ones."""
    loops = [row | {"target": row["source"]} for row in good["relations"]]
    loops += [row | {"source": row["target"]} for row in good["relations"]]
    return _json(good | {"relations": loops + good["relations"]})


def exchanged_ends(shown: Shown, good: Row) -> str:
    """Relations in the other direction."""
    rows = [row | {"source": row["target"], "target": row["source"]} for row in good["relations"]]
    return _json(good | {"relations": rows})


def other_language(shown: Shown, good: Row) -> str:
    """Names and relations in another language."""
    entities = [row | {"name": _foreign(row["name"])} for row in good["entities"]]
    relations = [
        relation_row(
            row["fact"], _foreign(row["source"]), FOREIGN.get(_name(row), "est_lié_à"),
            _foreign(row["target"]),
        )
        for row in good["relations"]
    ]  # fmt: skip
    return _json({"entities": entities, "relations": relations, "ended": good["ended"]})


def guessed_values(shown: Shown, good: Row) -> str:
    """Other destinations for the current relations, which no fact names."""
    kinds = {row["name"]: row["type"] for row in good["entities"]} | {STRANGER: "place"}
    guessed = []
    for source, name, _ in shown.current.values():
        kinds.setdefault(source, "person")
        guessed.append(relation_row(1, source, name, STRANGER))
    return _json(answer(kinds, [*guessed, *good["relations"]], good["ended"]))


BAD: Mapping[str, Callable[[Shown, Row], str]] = {
    function.__name__: function
    for function in (
        unknown_ids, other_ids, prose, missing_keys, wrong_types, wrong_values,
        unlisted_entities, invalidate_all, add_all, self_loops, exchanged_ends, other_language,
        guessed_values,
    )
}  # fmt: skip
# Ways in which names appear that no dialogue has.
NEW_NAMES = frozenset({other_language.__name__, guessed_values.__name__})
# Bad ways after which every graph must be right all the same.
HARMLESS = frozenset(
    function.__name__
    for function in (prose, self_loops, invalidate_all, unknown_ids, unlisted_entities)
)


def relation_row(number: int, source: str, name: str, target: str) -> Row:
    return {"fact": number, "source": source, "relation": name, "target": target}


def answer(kinds: Mapping[str, str], relations: Sequence[Row], ended: Sequence[Row]) -> Row:
    entities = [{"name": name, "type": kind} for name, kind in kinds.items()]
    return {"entities": entities, "relations": list(relations), "ended": list(ended)}


def _name(row: Row) -> str:
    return canonical(row["relation"]).name


def _foreign(name: str) -> str:
    return "Utilisateur" if plain_name(name) == "user" else f"L'{name}"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
