"""Exports filled in by `local/rules`: values that memories state, null for all others."""

import pytest

from pipeline.adapters.model_rules import RulesModel
from pipeline.domain.events import EventType, Question
from pipeline.models.json_schema import outline


@pytest.mark.parametrize("kind", ["string", "integer", "number", "boolean"])
async def test_a_scalar_that_no_memory_fits_is_null(kind: str) -> None:
    shape = outline({"properties": {"shoe_size": {"type": kind}}})
    answer = await RulesModel().distil(
        Question(EventType.EXPORT, {}, shape), ["User lives in Bergen"]
    )
    assert answer.value == {"shoe_size": None}


async def test_a_choice_is_null_and_a_list_is_empty_where_nothing_fits() -> None:
    choice = {"type": "string", "enum": ["red", "blue"]}
    many = {"type": "array", "items": {"type": "string"}}
    shape = outline({"properties": {"colour": choice, "pets": many, "summary": {}}})
    answer = await RulesModel().distil(Question(EventType.EXPORT, {}, shape), [])
    assert answer.value == {"colour": None, "pets": [], "summary": None}


async def test_fields_of_a_profile_have_the_numbers_of_their_memories() -> None:
    text = {"type": "string"}
    shape = outline(
        {
            "properties": {
                "home": text | {"description": "where they live"},
                "drinks": {
                    "type": "array",
                    "items": text,
                    "description": "tea and coffee they like",
                },
                "shoe_size": {"type": "integer", "description": "size of shoes"},
            }
        }
    )
    memories = ["User lives in Bern", "User likes tea", "User likes coffee", "User lives in Lima"]
    answer = await RulesModel().distil(Question(EventType.PROFILE, {}, shape), memories)
    assert answer.value == {
        "home": {"value": "User lives in Lima.", "memories": [4]},
        "drinks": {"value": ["User likes tea.", "User likes coffee."], "memories": [2, 3]},
        "shoe_size": {"value": None, "memories": []},
    }
