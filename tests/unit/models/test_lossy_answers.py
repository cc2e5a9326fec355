"""Model answers of any kind, from the parser to the changes of memories: nothing is lost.

    pytest tests/unit/models/test_lossy_answers.py --answers 10000      the full number

The statements are built from known names, numbers and dates, so the check of the result needs no
reading of texts.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.domain.consolidation.reconcile import apply_writes
from pipeline.domain.consolidation.retire_limit import RetireLimit
from pipeline.domain.errors import MalformedAnswer
from pipeline.domain.events import AddOptions, Event
from pipeline.domain.facts import Decision, Fact, Neighbour, Outcome
from pipeline.domain.memories import Memory
from pipeline.domain.messages import Source
from pipeline.domain.scope import Scope
from pipeline.domain.tenants import ProjectId
from pipeline.domain.vectors import as_vector
from pipeline.domain.writes import Change, ScopeMemories, Write
from pipeline.models.questions.decide import parse_decisions
from tests.support.memories import active_memory

SCOPE = Scope(ProjectId(UUID(int=1)), user_id="maya")
EVENT = Event(UUID(int=2), seq=1, options=AddOptions(), messages=())
START = datetime(2026, 1, 1, tzinfo=UTC)
VECTOR = as_vector((1.0, 0.0))
NAMES = (
    *("Anna", "Bruno", "Celia", "Derya", "Emil", "Fiona"),
    *("Rome", "Porto", "Bern", "Oslo", "Siemens", "Bosch"),
)
DATES = ("2021-03-04", "2022-05-06", "2023-07-08", "2024-09-10")
CHINESE_NAMES, CHINESE_PLACES = ("小雨", "王明", "李娜", "陈晨"), ("北京", "上海", "成都", "杭州")
MATTERS = {
    "en": ["{0} lives in {1} with {2} cats", "{0} met {1} on {3}", "{0} works at {1} since {3}"],
    "de": ["{0} wohnt in {1} mit {2} Katzen", "{0} traf {1} am {3}", "{0} arbeitet bei {1}"],
    "es": ["{0} vive en {1} con {2} gatos", "{0} conoció a {1} el {3}", "{0} trabaja en {1}"],
    "zh": ["{0}住在{1}，养了{2}只猫", "{0}在{3}去了{1}", "{0}在{1}工作"],
}
BACK = {"en": "{} no longer", "de": "{} nicht mehr", "es": "{} ya no", "zh": "{}不再"}


@dataclass(frozen=True)
class Statement:
    """A text and its values by class; `negated` if it takes something back."""

    text: str
    language: str
    form: str
    names: tuple[str, ...]
    others: tuple[str, ...]
    negated: bool = False

    @property
    def values(self) -> set[str]:
        return {*self.names, *self.others}


def statement(
    chance: random.Random, about: Statement | None = None, *, negated: bool = False
) -> Statement:
    """A random statement in one of the languages, or one about the same matter as another."""
    language = about.language if about else chance.choice(list(MATTERS))
    form = about.form if about else chance.choice(MATTERS[language])
    subject, other = chance.sample(NAMES, 2)
    if language == "zh":
        subject, other = chance.choice(CHINESE_NAMES), chance.choice(CHINESE_PLACES)
    if about is not None:
        same = negated or chance.random() < 0.3
        subject, other = about.names[0], about.names[1] if same else other
    number, day = str(chance.randint(2, 9)), chance.choice(DATES)
    text = form.format(subject, other, number, day)
    others = tuple(v for v, place in ((number, "{2}"), (day, "{3}")) if place in form)
    if about is not None and negated:
        text, others = about.text, about.others
    if negated:
        text = text.replace(subject, BACK[language].format(subject), 1)
    return Statement(text, language, form, (subject, other), others, negated)


def new_facts(chance: random.Random, old: Sequence[Statement]) -> list[Statement]:
    """Random facts; some change a memory or take it back."""
    return [
        statement(
            chance,
            chance.choice(old) if chance.random() < 0.4 else None,
            negated=chance.random() < 0.25,
        )
        for _ in range(chance.randint(1, 3))
    ]


def texts(chance: random.Random, facts: Sequence[Statement], old: Sequence[Statement]) -> str:
    """A text as careless models write it: of a fact or a memory, merged, or with a part lost."""
    first, second = chance.choice(facts).text, chance.choice([*old, *facts]).text
    parts = re.findall(r"[\u2e80-\uffef]{1,2}|\S+\s*|\s", second)
    lossy = "".join(part for part in parts if chance.random() < 0.7)
    lossy = lossy.strip() or "x"
    return chance.choice([first, second, f"{first}. {second}", f"{second}; {first}", lossy])


def answer(chance: random.Random, facts: Sequence[Statement], old: Sequence[Statement]) -> str:
    """A random answer: mostly well formed, with any targets and texts."""
    rows = []
    for number in range(1, len(facts) + 1):
        for _ in range(chance.choice((1, 1, 1, 2, 3))):
            row = {
                "fact": number if chance.random() < 0.97 else chance.randint(0, 5),
                "action": chance.choice(list(Outcome)),
                "target": chance.choice([None, *range(1, len(old) + 2)]),
                "text": chance.choice([None, texts(chance, facts, old)]),
                "reason": "x",
            }
            rows.append({k: v for k, v in row.items() if chance.random() < 0.98})
    return json.dumps({"decisions": rows})


def adversarial(chance: random.Random, facts: Sequence[Statement], old: Sequence[Statement]) -> str:
    """An answer that is well formed and destroys as much as it can."""
    kind = chance.choice(["delete all", "overwrite all", "drop one", "swap", "empty"])
    rows: list[dict[str, object]] = []
    for number, memory in enumerate(old, start=1):
        fact = 1 + (number - 1) % len(facts)
        new = facts[fact - 1].text
        lost = chance.choice(sorted(memory.values))
        text = {
            "delete all": None,
            "overwrite all": new,
            "drop one": f"{memory.text.replace(lost, '')} {new}",
            "swap": chance.choice(old).text,
            "empty": "Nothing is known.",
        }[kind]
        action = "DELETE" if text is None else "UPDATE"
        rows.append({"fact": fact, "action": action, "target": number, "text": text, "reason": "x"})
    named = {row["fact"] for row in rows}
    rows += [
        {"fact": n, "action": "ADD", "target": None, "text": None, "reason": "x"}
        for n in range(1, len(facts) + 1)
        if n not in named
    ]
    return json.dumps({"decisions": rows})


def decided(text: str, facts: Sequence[Fact], shown: Sequence[Neighbour]) -> tuple[Decision, ...]:
    """The decisions of an answer that the model repeats when it is asked for a repair."""
    try:
        return parse_decisions(text, facts, shown)
    except MalformedAnswer:
        return parse_decisions(text, facts, shown, mend=True)


def memory(number: int, text: str, said_at: datetime) -> Memory:
    return active_memory(100 + number, SCOPE, text, said_at)


def play(
    chance: random.Random, text: str, facts: Sequence[Statement], old: Sequence[Statement]
) -> tuple[list[Change], ScopeMemories, dict[UUID, Statement]]:
    """Parse the answer and apply it. Errors: MalformedAnswer."""
    stored = [
        memory(n, s.text, START + timedelta(days=chance.choice((0, 0, 0, 60))))
        for n, s in enumerate(old)
    ]
    writes = writes_of(chance, text, facts, stored)
    memories = ScopeMemories.of(SCOPE, stored)
    changes = apply_writes(writes, memories, RetireLimit(0.2, len(stored)))
    return changes, memories, {m.id: s for m, s in zip(stored, old, strict=True)}


def writes_of(
    chance: random.Random, text: str, facts: Sequence[Statement], stored: Sequence[Memory]
) -> list[Write]:
    """The writes of an answer about these memories. Errors: MalformedAnswer."""
    now = START + timedelta(days=30)
    shown = [Neighbour(m.id, m.text, chance.random() / 2, m.said_at) for m in stored]
    new = [Fact(s.text, Source(0, 0), said_at=now) for s in facts]
    near = {n.memory_id: n.similarity for n in shown}
    return [
        Write(
            position=d.fact,
            fact=new[d.fact],
            outcome=d.outcome,
            text=d.text or new[d.fact].text,
            reason=d.reason,
            target=d.memory_id,
            new_id=UUID(int=500 + d.fact),
            vector=VECTOR,
            fact_vector=VECTOR,
            event=EVENT,
            said_at=now,
            similarity=near.get(d.memory_id, 0.0) if d.memory_id else 0.0,
        )
        for d in decided(text, new, shown)
    ]


def keeps(text: str, before: Statement, fact: Statement) -> bool:
    """True if the text has the values, but for those that the fact negates or replaces."""
    for own, new in ((before.names, fact.names), (before.others, fact.others)):
        gone = [v for v in own if v not in text and not (fact.negated and v in new)]
        put = [v for v in new if v in text and v not in before.values]
        if len(gone) > len(put):
            return False
    return True


def losses(
    changes: Sequence[Change],
    memories: ScopeMemories,
    old: dict[UUID, Statement],
    facts: Sequence[Statement],
) -> list[str]:
    """The values of memories that no successor keeps and no fact replaces or takes back."""
    lost = [
        f"{old[gone.id].text} | retired without a change"
        for gone in memories.by_id.values()
        if gone.id in old
        and gone.state != "ACTIVE"
        and not any(c.after is not None and c.after.id == gone.id for c in changes)
    ]
    for change in changes:
        if change.before is None or change.after is None or change.before.id not in old:
            continue
        before, fact = old[change.before.id], facts[change.write.position]
        texts = [change.after.text]
        if change.after.state == "RETIRED":
            texts = [m.text for m in memories.by_id.values() if m.state == "ACTIVE"]
            if fact.negated:
                continue
        if not any(keeps(text, before, fact) for text in texts):
            lost.append(f"{before.text} | {change.after.text} | {fact.text}")
    return lost


def check(chance: random.Random, *, hostile: bool) -> set[tuple[Outcome, bool]]:
    """Play one answer. Returns the outcomes, each with True if it changed a stored memory."""
    old = [statement(chance) for _ in range(chance.randint(1, 8))]
    facts = new_facts(chance, old)
    text = (adversarial if hostile else answer)(chance, facts, old)
    try:
        changes, memories, stored = play(chance, text, facts, old)
    except MalformedAnswer:
        return set()  # the event fails by name, and changes nothing
    assert {change.write.position for change in changes} == set(range(len(facts)))
    assert all(change.reason for change in changes)
    assert losses(changes, memories, stored, facts) == []
    standing = {m.text for m in memories.by_id.values() if m.state == "ACTIVE"}
    for change in changes:
        withheld = change.suggestion is not None
        assert not withheld or change.memory_id is not None
        if change.outcome is Outcome.ADD:
            assert change.text in standing or change.text == change.write.fact.text
    return {(c.outcome, c.before is not None and c.after is not None) for c in changes}


@pytest.mark.timeout(1_800)  # the full number takes minutes
def test_no_random_answer_loses_anything(request: pytest.FixtureRequest) -> None:
    seen: set[tuple[Outcome, bool]] = set()

    @settings(
        max_examples=request.config.getoption("--answers"),
        derandomize=True,
        deadline=None,
        database=None,
    )
    @given(st.randoms(use_true_random=True))
    def play_one(chance: random.Random) -> None:
        seen.update(check(chance, hostile=False))

    play_one()
    # The checks are not empty: changes of memories are applied.
    assert seen >= {(Outcome.UPDATE, True), (Outcome.DELETE, True), (Outcome.ADD, False)}


@pytest.mark.parametrize("seed", range(200))
def test_no_adversarial_answer_loses_anything(seed: int) -> None:
    check(random.Random(seed), hostile=True)
