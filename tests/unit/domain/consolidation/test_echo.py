"""An assistant's repetition of a memory, in four languages, and what only looks like one."""

from __future__ import annotations

import pytest

from pipeline.domain.consolidation.echoes import is_echo, is_quoted


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("Maya lives in Bern", "Maya lives in Bern with Tom"),
        ("User lives in Bern", "Maya lives in Bern with Tom since 2019"),
        ("You have 2 cats", "Maya has 2 cats and a dog"),
        ("Der Nutzer wohnt in Bern", "Maya wohnt in Bern mit Tom"),
        ("La usuaria vive en Lima", "Maya vive en Lima con Ana"),
        ("用户住在成都", "小雨住在成都"),
        ("Maya does not eat meat", "Maya does not eat meat or fish"),
    ],
)
def test_a_statement_that_is_stored_is_an_echo(text: str, stored: str) -> None:
    assert is_echo(text, stored)


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("Maya lives in Porto", "Maya lives in Bern"),
        ("Maya lives in Bern", "Anna lives in Bern"),
        ("Maya has 3 cats", "Maya has 2 cats"),
        ("Maya does not live in Bern", "Maya lives in Bern"),
        ("Maya lives in Bern", "Maya no longer lives in Bern"),
        ("Maya likes teaching", "Maya likes tea"),
        ("Der Nutzer wohnt nicht in Bern", "Maya wohnt in Bern"),
        ("La usuaria ya no vive en Lima", "Maya vive en Lima"),
        ("用户不住在成都", "小雨住在成都"),
        ("用户住在北京", "小雨住在成都"),
        ("Maya moved to Bern on 2024-05-06", "Maya moved to Bern"),
        ("Maya's blood type is A-", "Maya's blood type is A+"),
        ("Maya's garden is at -5 degrees", "Maya's garden is at 5 degrees"),
    ],
)
def test_a_statement_with_anything_of_its_own_is_none(text: str, stored: str) -> None:
    assert not is_echo(text, stored)


@pytest.mark.parametrize(
    ("text", "message", "stored"),
    [
        ("Maya resides in Bern", "I remember that Maya lives in Bern.", "Maya lives in Bern"),
        ("Mayas Heimat ist Bern", "Ich weiß: Maya wohnt in Bern!", "Maya wohnt in Bern"),
        ("Maya reside en Lima", "Recuerdo que Maya vive en Lima.", "Maya vive en Lima"),
        ("小雨的住处在成都", "我记得小雨住在成都。", "小雨住在成都"),
    ],
)
def test_a_reworded_quote_is_an_echo(text: str, message: str, stored: str) -> None:
    assert is_quoted(text, message, ["Maya likes jazz", stored]) == 1


@pytest.mark.parametrize(
    ("text", "message", "stored"),
    [
        ("Maya has a dog", "Maya lives in Bern, and you got a puppy.", "Maya lives in Bern"),
        ("Maya reads a lot", "I know Maya likes teaching.", "Maya likes tea"),
        ("Maya lived in Rome", "Maya lives in Bern.", "Maya lives in Bern"),
        ("Maya left Bern", "Maya lives in Bern.", "Maya lives in Bern"),
        ("Maya resides in Bern", "You live there.", "Maya lives in Bern"),
    ],
)  # fmt: skip
def test_another_word_may_be_the_source_of_a_statement(
    text: str, message: str, stored: str
) -> None:
    assert is_quoted(text, message, [stored]) is None
