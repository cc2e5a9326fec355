"""Topics of a question: clauses, lists, names that a pronoun stands for, and exclusions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.text.question_topics import MOST_TOPICS, topics
from pipeline.text.questions import content_words


def parts(question: str) -> list[str]:
    return [" ".join(word.text for word in topic) for topic in topics(question).words]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Who is Bremer?", ["Bremer"]),
        ("When is the rent due and who owns the flat?", ["rent due", "owns flat"]),
        ("Bei wem ist das Konto und wo steht der Wagen?", ["Konto", "steht Wagen"]),
        ("¿Quién cuida al perro y quién es el guía?", ["cuida perro", "guía"]),
        ("Was weißt du über Mira und Balu?", ["Mira", "Balu"]),
        ("What are Nora's and Felix's allergies?", ["Nora's allergies", "Felix's allergies"]),
        ("Which databases and message queues do we use?", ["databases", "message queues"]),
        ("When is Maya's birthday and where does she live?", ["Maya's birthday", "Maya's live"]),
        ("林晓的猫叫什么，爷爷住在哪里？", ["林晓 猫", "爷爷住"]),
        ("What do you know?", []),
    ],
)
def test_each_topic_has_its_words(question: str, expected: list[str]) -> None:
    assert parts(question) == expected


@pytest.mark.parametrize(
    ("question", "excluded"),
    [
        ("Which tools do we run besides Kafka?", ["Kafka"]),
        ("¿Qué bases de datos usamos, salvo Redis?", ["Redis"]),
        ("Welche Tiere gibt es außer Balu?", ["Balu"]),
        ("除了咖啡，林晓还喝什么？", ["咖啡"]),
        ("What should I not eat?", []),
        ("What do we use instead of Kafka?", []),
        ("Except for Kafka?", []),
    ],
)
def test_a_name_that_is_excluded_is_no_topic(question: str, excluded: list[str]) -> None:
    split = topics(question)
    assert [word.text for word in split.excluded] == excluded
    assert not {*excluded} & {word.text for topic in split.words for word in topic}


WORDS = ["Ana", "and", ",", "or", "Leo", "?", "besides", "rent", "und", "猫", "she", "who"]


@given(st.lists(st.sampled_from(WORDS)))
def test_topics_have_only_words_of_the_question(words: list[str]) -> None:
    question = " ".join(words)
    split = topics(question)
    assert len(split.words) <= MOST_TOPICS
    assert all(split.words)
    assert {word.text for topic in split.words for word in topic} <= {*question.split()}
    assert bool(split.words) == bool(content_words(question))
