"""Relatives of the user as the subject of a statement, in five languages."""

from __future__ import annotations

import pytest

from pipeline.text.statements.relatives import relative


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("User's sister sold her house.", "sister"),
        ("The user's younger brother-in-law moved.", "brother-in-law"),
        ("Nutzers Schwiegermutter ist umgezogen.", "schwiegermutter"),
        ("Die Schwester der Nutzerin wohnt in Bonn.", "schwester"),
        ("La hermana de la usuaria vendió su casa.", "hermana"),
        ("Le frère de l'utilisateur habite à Lyon.", "frère"),
        ("用户的妹妹卖了房子。", "妹妹"),
    ],
)
def test_the_subject_is_a_relative(text: str, word: str) -> None:
    assert relative(text) == word


@pytest.mark.parametrize(
    "text",
    [
        "User has a sister.",
        "User's sisterhood of nurses meets on Monday.",
        "User's house belongs to the sister.",
        "Nutzerin wohnt bei der Schwester.",
        "La usuaria visita a su hermana.",
        "L'utilisateur a un frère.",
        "用户有一个妹妹。",
        "Maya's sister lives in Bonn.",
    ],
)
def test_the_subject_is_no_relative_of_the_user(text: str) -> None:
    assert relative(text) is None
