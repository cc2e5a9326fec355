"""Names of relations, types of entities, and names in texts."""

import pytest

from pipeline.text.names import is_self, names_in, names_self, plain_name
from pipeline.text.relations.entity_types import entity_type, same_family
from pipeline.text.relations.names import canonical, one_person, role_of


@pytest.mark.parametrize(
    ("name", "stored", "exchanged"),
    [
        ("Lives in", "lives_in", False),
        ("is_currently_living_in", "lives_in", False),
        ("employs", "works_at", True),
        ("is_employed_by", "works_at", False),
        ("brother_of", "has_brother", True),
        ("favorite colour", "favourite_colour", False),
        ("moors", "moors", False),
        ("wohnt_in", "lives_in", False),
        ("居住在", "lives_in", False),
    ],
)
def test_a_relation_has_one_name_and_direction(name: str, stored: str, exchanged: bool) -> None:
    assert canonical(name) == (stored, exchanged)


def test_a_name_of_the_project_stays() -> None:
    assert canonical("employs", {"employs"}) == ("employs", False)


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("the Café Müller!", "cafe muller"),
        ("Maya's", "maya"),
        ("Siemens AG", "siemens"),
        ("AG", "ag"),
        ("  小明 ", "小明"),
        ("!?", ""),
    ],
)
def test_a_plain_name(name: str, plain: str) -> None:
    assert plain_name(name) == plain


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Where does Maya Lopez live?", "maya lopez"),
        ("Wo ist Mayas Hund?", "maya"),
        ("Is it Maya's dog?", "maya"),
        ("小明住在哪里", "小明"),
        ("I saw the New York Public Library", "new york public library"),
    ],
)
def test_a_text_holds_its_names(text: str, name: str) -> None:
    assert name in names_in(text)


def test_a_name_is_no_part_of_a_word() -> None:
    assert "ann" not in names_in("planning a cannery")


@pytest.mark.parametrize("name", ["User", "me", "the user", "ich", "我", "usuario"])
def test_words_for_the_speaker(name: str) -> None:
    assert is_self(name)
    assert names_self(f"wo {name} ?")


@pytest.mark.parametrize(
    ("text", "role"),
    [
        ("User's colleague Sam plays chess.", "colleague"),
        ("Sam, their brother, plays chess.", "brother"),
        ("Sam is User's boss.", "boss"),
        ("Mein Bruder Sam spielt Schach.", "brother"),
        ("Mi hermano Sam juega.", "brother"),
        ("Sam plays chess with a colleague.", None),
    ],
)
def test_a_role_in_front_of_a_name_or_behind_it(text: str, role: str | None) -> None:
    assert role_of(text, "Sam") == role


def test_a_role_in_chinese() -> None:
    assert role_of("用户的同事小明住在北京", "小明") == "colleague"


def test_roles_of_one_person() -> None:
    assert one_person("friend", "colleague")
    assert not one_person("brother", "colleague")


@pytest.mark.parametrize(
    ("word", "name"), [("City", "place"), ("company", "organization"), ("vessel", "vessel")]
)
def test_a_type_has_one_name(word: str, name: str) -> None:
    assert entity_type(word) == name


@pytest.mark.parametrize(
    ("first", "other", "same"),
    [("person", "place", False), ("city", "company", True), ("thing", "place", True)],
)
def test_families(first: str, other: str, same: bool) -> None:
    assert same_family(first, other) is same
