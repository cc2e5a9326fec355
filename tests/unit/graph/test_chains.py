"""Chains: the paths that a question describes by its words, among others of the same relations."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import pytest

from pipeline.domain.errors import ModelUnavailable
from pipeline.domain.vectors import Vector
from pipeline.graph.chains import Near, chains, unknown_phrases
from pipeline.graph.meanings import by_embedder, by_facts
from pipeline.text.terms import terms
from tests.eval.paths import towns
from tests.support.embedder_hash import HashEmbedder
from tests.support.walks import memory_of, relations, walk

FACTS = {
    "Ana reports to Ivo.": [("Ana", "reports_to", "Ivo")],
    "Ana's brother is Max.": [("Ana", "has_brother", "Max")],
    "Ivo's brother is Leo.": [("Ivo", "has_brother", "Leo")],
    "Max reports to Eva.": [("Max", "reports_to", "Eva")],
    "Leo lives in Graz.": [("Leo", "lives_in", "Graz")],
    "Eva lives in Oslo.": [("Eva", "lives_in", "Oslo")],
    "Ana lives in Oslo.": [("Ana", "lives_in", "Oslo")],
    "Tom lives in Oslo.": [("Tom", "lives_in", "Oslo")],
    "Kim lives in Oslo.": [("Kim", "lives_in", "Oslo")],
    "Tom rents from Leo.": [("Tom", "rents_from", "Leo")],
    "Tom works at Bosch.": [("Tom", "works_at", "Bosch")],
    "Kim's boss is Bea.": [("Kim", "has_boss", "Bea")],
    "User's sister is Ines.": [("User", "has_sister", "Ines")],
    "Ines studied at Delft.": [("Ines", "graduated_from", "Delft")],
}
KNOWN = relations(FACTS)
SPOKEN = {memory_of(text): frozenset(terms(text)) for text in FACTS}


def best(question: str, near: Near | None = None) -> set[str]:
    """The texts of the memories with the best score."""
    scores = chains(walk(question, KNOWN), near or {})
    texts = {memory_of(text): text for text in FACTS}
    return {texts[key] for key, score in scores.items() if score == max(scores.values())}


@pytest.mark.parametrize(
    ("question", "path"),
    [
        (
            "Where does the brother of Ana's manager live?",
            {"Ana reports to Ivo.", "Ivo's brother is Leo.", "Leo lives in Graz."},
        ),
        (
            "Where does the manager of Ana's brother live?",
            {"Ana's brother is Max.", "Max reports to Eva.", "Eva lives in Oslo."},
        ),
        (
            "In which city is the home of the brother of the person Ana reports to?",
            {"Ana reports to Ivo.", "Ivo's brother is Leo.", "Leo lives in Graz."},
        ),
        (
            "Wo wohnt der Chef von Anas Bruder?",
            {"Ana's brother is Max.", "Max reports to Eva.", "Eva lives in Oslo."},
        ),
        ("Who is the brother of Ana's boss?", {"Ana reports to Ivo.", "Ivo's brother is Leo."}),
    ],
)
def test_the_words_give_the_relations_and_their_order(question: str, path: set[str]) -> None:
    assert best(question) == path


@pytest.mark.parametrize(
    "question",
    [
        "Where does Ana live?",
        "Who is Ana's boss?",
        "In which city does Eva live?",
        "What do you know about Ana?",
        "What did Ana's brother say about the new price of the tickets on Monday?",
        "",
    ],
)
def test_a_question_of_one_relation_is_no_chain(question: str) -> None:
    assert chains(walk(question, KNOWN)) == {}


def test_a_path_does_not_lead_through_a_hub() -> None:
    # Ana and three others live in Oslo: which of them is meant?
    others = {"Eva lives in Oslo.", "Tom lives in Oslo.", "Kim lives in Oslo."}
    path = best("Who is the boss of the person who lives in the same city as Ana?")
    assert not {"Kim's boss is Bea."} & path
    assert not others <= path


def test_a_word_of_the_facts_means_their_relation() -> None:
    question = walk("Where did my sister study?", KNOWN)
    words = [word for phrase in unknown_phrases(question) for word in phrase]
    near = by_facts(question, words, SPOKEN)
    assert near == {("graduated_from", "study"): 1.0}
    assert best(question.query, near) == {"User's sister is Ines.", "Ines studied at Delft."}


class LandlordEmbedder(HashEmbedder):
    """For this embedder, a landlord is a person from whom people rent."""

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        return await super().embed(["rents from" if text == "landlord" else text for text in texts])


class DeadEmbedder(HashEmbedder):
    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        raise ModelUnavailable("down")


async def test_a_word_is_compared_with_the_names_of_relations_by_meaning() -> None:
    question = walk("Where does Tom's landlord live?", KNOWN)
    phrases = unknown_phrases(question)
    assert [[word.text for word in phrase] for phrase in phrases] == [["landlord"]]
    near = await by_embedder(question, phrases, LandlordEmbedder())
    assert near["rents_from", "landlord"] == 1.0
    assert best(question.query, near) == {"Tom rents from Leo.", "Leo lives in Graz."}


async def test_without_the_embedder_words_are_compared_as_they_are_written() -> None:
    question = walk("Where does Tom's landlord live?", KNOWN)
    assert await by_embedder(question, unknown_phrases(question), DeadEmbedder()) == {}


@pytest.mark.parametrize("name", towns.names())
def test_the_path_of_a_question_about_a_town_has_the_best_score(name: str) -> None:
    town = towns.load(name)
    facts = dict(town.world.facts)
    known = relations(facts)
    stated = {edge: text for text, edges in facts.items() for edge in edges}
    spoken = {memory_of(text): frozenset(terms(text)) for text in facts}
    whole = 0
    for question in town.world.questions:
        path = walk(question.text, known)
        words = [word for phrase in unknown_phrases(path) for word in phrase]
        scores = chains(path, by_facts(path, words, spoken))
        wanted = [scores.get(memory_of(stated[edge]), 0.0) for edge in question.path]
        ahead: list[UUID] = [key for key, score in scores.items() if score >= min(wanted)]
        whole += min(wanted) > 0 and len(ahead) <= 5
    assert whole >= 0.8 * len(town.world.questions)


@pytest.mark.parametrize("name", towns.names())
def test_plain_questions_about_a_town_are_no_chains(name: str) -> None:
    town = towns.load(name)
    known = relations(dict(town.world.facts))
    assert [q.text for q in town.plain if chains(walk(q.text, known))] == []
