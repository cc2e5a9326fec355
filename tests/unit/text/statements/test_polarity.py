"""Polarity: negations, take-backs and additions in four languages."""

from __future__ import annotations

import pytest

from pipeline.text.statements.polarity import adds, clauses, negates, puts_aside, takes_back

TAKE_BACKS = [
    "Maya no longer eats meat",
    "Maya doesn't have a cat",
    "Maya sold her car",
    "The trip was cancelled",
    "Jonas raucht nicht mehr",
    "Jonas hat sein Auto verkauft",
    "Jonas hat keine Katze",
    "Lucía ya no come carne",
    "Lucía vendió el coche",
    "La boda se canceló",
    "小雨不再吃肉",
    "小雨把车卖了",
    "小雨没有猫",
    "聚会取消了",
]
STATEMENTS = [
    "Maya eats meat",
    "Maya has a cat called Nothingham",
    "Jonas fährt ein Auto",
    "Jonas notiert alles",
    "Lucía come carne",
    "Lucía vive en Sinaloa",
    "小雨喜欢吃肉",
    "小雨不但会弹琴",
]


@pytest.mark.parametrize("text", TAKE_BACKS)
def test_a_take_back_is_recognized(text: str) -> None:
    assert takes_back(text)


@pytest.mark.parametrize("text", STATEMENTS)
def test_a_statement_is_no_take_back(text: str) -> None:
    assert not takes_back(text)
    assert not negates(text)


@pytest.mark.parametrize(
    "text",
    [
        "Maya also likes tea",
        "Maya likes tea too.",
        "Jonas mag auch Tee",
        "A Lucía también le gusta el té",
        "小雨也喜欢茶",
        "小雨还养了一只狗",
    ],
)
def test_an_addition_is_recognized(text: str) -> None:
    assert adds(text)


@pytest.mark.parametrize("text", ["Maya is too tired to run", "Jonas lag im Bett", "还是老样子"])
def test_a_similar_word_is_no_addition(text: str) -> None:
    assert not adds(text)


def test_a_former_value_is_recognized_by_the_words_before_it() -> None:
    assert puts_aside("Maya moved from Berlin to Rome", "Berlin")
    assert not puts_aside("Maya moved from Berlin to Rome", "Rome")
    assert puts_aside("Jonas trinkt Tee statt Kaffee", "Kaffee")
    assert puts_aside("Lucía bebe té en vez de café", "café")
    assert puts_aside("小雨从上海搬到成都", "上海")
    assert puts_aside("Maya traded the Civic in for an Outback", "Civic")
    assert puts_aside("Jonas tauschte den Golf gegen ein Rad", "Golf")
    assert puts_aside("Lucía cambió Movistar por Vodafone", "Movistar")
    assert puts_aside("Léa a troqué sa Clio contre un vélo", "Clio")
    assert puts_aside("小雨把华为换成了苹果", "华为")
    assert not puts_aside("Maya traded the Civic in for an Outback", "Outback")
    assert not puts_aside("Maya traded shares of Siemens", "Siemens")


def test_a_negation_reaches_to_the_end_of_its_clause() -> None:
    assert (
        clauses("Maya left Rome, but lives with Tom")
        == ["Maya left Rome", " ", " lives with Tom"][::2]
    )
