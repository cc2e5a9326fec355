"""Search by words: scores of BM25, and words that contain each other."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Sequence

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from pipeline.domain.events import AddOptions
from pipeline.domain.filters import parse
from pipeline.domain.messages import Message, Role
from pipeline.domain.scope import Scope
from pipeline.ledger.engine import connect
from pipeline.search.store import Passages
from pipeline.search.where import Where
from pipeline.search.words.bm25 import COMPOUND, HELD_BY, HELD_IN, K1, PART, B
from pipeline.text import terms
from tests.support.engine import Engine


async def say(engine: Engine, texts: Sequence[str]) -> None:
    messages = [Message(Role.USER, text) for text in texts]
    scope = Scope(engine.project.id, user_id="maya")
    await engine.send(scope, messages)


async def shares(engine: Engine, question: str) -> dict[int, float]:
    """Score of each text that matches the question, by its position, best first."""
    tree = parse({"user_id": "maya"})
    where = Where.of(engine.project.id, tree, facts=False, turns=True, expired=True)
    hits = await engine.ledger.passages.by_words(where, terms.query_terms(question), limit=200)
    return {key.ordinal: share for key, share in hits.shares.items()}


# ── German ───────────────────────────────────────────────────────────────────────────────────────

TEXTS = [
    "Meine Haftpflichtversicherung läuft im Mai aus.",
    "Die Krankenversicherungskarte liegt im Auto.",
    "Unser Hund geht samstags in die Hundeschule.",
    "Die Hundeleine hängt im Flur.",
    "Der Zahnarzttermin ist am Montag um neun.",
    "Den Mietvertrag habe ich gestern unterschrieben.",
    "Ich trinke am liebsten Kräutertee ohne Zucker.",
    "Wir haben eine Ferienwohnung an der Ostsee gebucht.",
    "Mein Lieblingsbuch ist ein Kriminalroman.",
    "Die Katzen fressen nur Trockenfutter.",
    "Ich brauche neue Winterreifen.",
    "Meine Nussallergie ist seit der Kindheit bekannt.",
    "Die Heizungsrechnung war dieses Jahr sehr hoch.",
    "Im Kleiderschrank hängt noch der alte Mantel.",
    "Ich fahre mit dem Fahrrad zur Arbeit.",
    "Die Tabletten gegen Kopfschmerzen nehme ich abends.",
    "Unsere Bergwanderung führte zur Zugspitze.",
    "Wir wohnen in einem Mehrfamilienhaus am Stadtrand.",
    "Mein Vater repariert Armbanduhren.",
    "Im Gemüsegarten wachsen Tomaten.",
]


@pytest.mark.parametrize(
    ("question", "best"),
    [
        # The query is a part of a word in the text: its end, beginning or middle.
        ("Welche Versicherung habe ich?", {0, 1}),
        ("Versicherungen", {0, 1}),
        ("Hund", {2, 3}),
        ("Wo ist die Leine?", {3}),
        ("Wann ist mein Termin beim Zahnarzt?", {4}),
        ("Welche Verträge habe ich unterschrieben?", {5}),
        ("Wo liegt die Wohnung für die Ferien?", {7}),
        ("Welchen Roman mag ich?", {8}),
        ("Was frisst die Katze?", {9}),
        ("Welche Reifen brauche ich im Winter?", {10}),
        ("Welche Allergie habe ich?", {11}),
        ("Wie hoch war die Rechnung für die Heizung?", {12}),
        ("Was ist im Schrank?", {13}),
        ("Habe ich Schmerzen?", {15}),
        ("Wohin ging die Wanderung?", {16}),
        ("In welchem Haus wohnen wir?", {17}),
        ("Was repariert er, Uhren?", {18}),
        ("Wächst im Garten Gemüse?", {19}),
        # A word of the text is a part of the query.
        ("Hundekorb", {2}),
        ("Arbeitsweg", {14}),
        ("Wintermantel", {13}),
        ("Tomatensuppe", {19}),
        ("Haftpflicht der Autoversicherung", {0, 1}),
    ],
)
async def test_a_compound_and_its_parts_find_each_other(
    engine: Engine, question: str, best: set[int]
) -> None:
    await say(engine, TEXTS)
    assert set(list(await shares(engine, question))[: len(best)]) == best


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("Mijn ziektekostenverzekering loopt via het werk.", "Welke verzekering heb ik?"),
        ("Min sjukförsäkring går via jobbet.", "Vilken försäkring har jag?"),
        ("Sairausvakuutus päättyy kesällä.", "vakuutus"),
        ("We meet at the waterfront.", "water"),
    ],
)
async def test_so_do_those_of_other_languages(engine: Engine, text: str, question: str) -> None:
    await say(engine, [text, "Bananen", "Plátanos"])
    assert list(await shares(engine, question)) == [0]


async def test_the_word_itself_counts_more_than_a_word_that_holds_it(engine: Engine) -> None:
    await say(engine, ["Die Kinderschule", "Die Schule", "Der Schulhof", "Ein Apfel"])
    ranked = await shares(engine, "Schule")
    assert next(iter(ranked)) == 1
    assert set(ranked) == {0, 1, 2}


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("They care a lot", "car"),  # too short to be a part
        ("She has a glove", "love"),  # too short to be a compound
        ("Call 01761234567", "1234"),  # numbers are no words
        ("100%", "100000"),
    ],
)
async def test_a_word_is_no_part_of_another_by_chance(
    engine: Engine, text: str, question: str
) -> None:
    await say(engine, [text])
    assert await shares(engine, question) == {}


# ── the score ────────────────────────────────────────────────────────────────────────────────────

WORDS = ["tea", "lake", "boat", "violin", "water", "waterfront", "boathouse", "house", "tent"]


def by_the_book(texts: Sequence[str], question: str) -> dict[int, float]:
    """Reference BM25 score; a word inside a compound counts as a fraction of a word, and vice
    versa.
    """
    documents = [terms.terms(text) for text in texts]
    average = sum(map(len, documents)) / len(documents)
    total: defaultdict[int, float] = defaultdict(float)
    possible = 0.0
    for term in terms.query_terms(question):
        times = [sum(_weight(term, word) for word in words) for words in documents]
        if not any(times):
            continue
        holding = sum(min(1, count) for count in times)
        rarity = math.log(1 + (len(documents) - holding + 0.5) / (holding + 0.5))
        possible += rarity
        for at, count in enumerate(times):
            damped = K1 * (1 - B + B * len(documents[at]) / average)
            total[at] += rarity * count * (K1 + 1) / (count + damped)
    return {at: min(1.0, score / possible) for at, score in total.items() if score}


def _weight(term: str, word: str) -> float:
    if word == term:
        return 1
    if term in word:
        return HELD_IN if len(word) >= COMPOUND and len(term) >= PART else 0
    return HELD_BY if word in term and len(term) >= COMPOUND and len(word) >= PART else 0


@pytest.mark.parametrize("seed", range(3))
async def test_scores_are_those_of_bm25(engine: Engine, seed: int) -> None:
    chance = random.Random(seed)
    texts = [" ".join(chance.choices(WORDS, k=chance.randrange(1, 9))) for _ in range(30)]
    await say(engine, texts)
    for question in ("tea", "boat on a lake", "waterfront tent", "violin house boathouse"):
        ranked = await shares(engine, question)
        assert ranked == pytest.approx(by_the_book(texts, question))
        assert list(ranked.values()) == sorted(ranked.values(), reverse=True)


async def test_a_question_of_unheard_words_finds_nothing(engine: Engine) -> None:
    await say(engine, TEXTS)
    assert await shares(engine, "Quastenflosser") == {}
    assert await shares(engine, "%") == {}


# ── Candidates ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("limit", [4, 3], ids=["small scope", "scope beyond the limit"])
@pytest.mark.parametrize("kinds", [("facts",), ("turns",), ("facts", "turns")], ids="+".join)
async def test_a_small_scope_is_read_whole_and_a_larger_one_by_words_alone(
    engine: Engine, kinds: Sequence[str], limit: int
) -> None:
    texts = ["Green tea is fine.", "The garden is large.", "Black tea, please.", "It rained."]
    if "facts" in kinds:
        for text in texts if kinds == ("facts",) else texts[:2]:
            await engine.add(text, options=AddOptions(infer=False))
        await engine.drain()
    if "turns" in kinds:
        await say(engine, texts if kinds == ("turns",) else texts[2:])
    tree = parse({"user_id": "maya"})
    where = Where.of(
        engine.project.id, tree, facts="facts" in kinds, turns="turns" in kinds, expired=True
    )
    passages = engine.ledger.passages
    hits = await passages.by_words(where, ["tea"], limit=limit)
    assert len(hits.shares) == 2
    assert list(hits.candidates)[:2] == list(hits.shares), "not best first"
    assert len(hits.candidates) == (4 if limit == 4 else 2)
    keys = list(hits.candidates)
    again = await passages.candidates(where, keys, embedded=[], embedder="none")
    assert {c.key: (c.lane_id, c.speaker, c.at, c.turn, c.before) for c in again} == {
        c.key: (c.lane_id, c.speaker, c.at, c.turn, c.before) for c in hits.candidates.values()
    }


# ── Memory ───────────────────────────────────────────────────────────────────────────────────────


async def test_a_comparison_of_many_passages_writes_no_file(
    engine: Engine, database_url: str
) -> None:
    """The planner expects 8 kB of each array, and puts the groups of a large aggregate in files."""
    for first in range(0, 600, 100):
        await say(engine, [f"Green tea number {number}." for number in range(first, first + 100)])
    where = Where.of(
        engine.project.id, parse({"user_id": "maya"}), facts=False, turns=True, expired=True
    )
    single = connect(database_url, pool_size=1)
    before = await files_written(single)
    hits = await Passages(single).by_words(where, ["green", "tea"], limit=200)
    assert len(hits.shares) == 200
    assert await files_written(single) == before
    await single.dispose()


async def files_written(single: AsyncEngine) -> int:
    """Temporary files of this database so far, with those of the engine's only connection."""
    async with single.execution_options(isolation_level="AUTOCOMMIT").connect() as connection:
        await connection.execute(text("SELECT pg_stat_force_next_flush()"))
        files = "SELECT temp_files FROM pg_stat_database WHERE datname = current_database()"
        return int(await connection.scalar(text(files)) or 0)
