"""Profiles: the prompt for a user's properties, and the parser of its answer."""

from __future__ import annotations

import pytest

from pipeline.domain.errors import MalformedAnswer
from pipeline.domain.events import EventType, Question
from pipeline.models.json_schema import outline
from pipeline.models.prompted import PromptedModel
from tests.unit.models.test_prompted import ScriptedLLM

HOME = outline({"properties": {"home": {"type": "string", "description": "where one lives"}}})
PROFILE = Question(EventType.PROFILE, {}, HOME, "In capitals.")
WITH_JOB = outline({"properties": {"home": {"type": "string"}, "job": {"type": "string"}}})
TWO = Question(EventType.PROFILE, {}, WITH_JOB)


async def test_each_property_of_a_profile_is_asked_for_with_its_memories():
    llm = ScriptedLLM('{"home": {"value": "ROME", "memories": [1]}, "age": 7}')
    answer = await PromptedModel(llm).distil(PROFILE, ["Ann lives in Rome."])
    assert answer.value == {"home": {"value": "ROME", "memories": [1]}}
    assert answer.usage.prompt.startswith("profile@")
    [(system, user)] = llm.asked
    assert "In capitals." in system.content
    assert '"where one lives"' in user.content
    assert '"memories": {"type": "array", "items": {"type": "integer"}' in user.content
    assert '1: "Ann lives in Rome."' in user.content


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ('"ROME"', 'property "home": Input should be a valid dictionary'),
        ('{"value": "ROME"}', 'property "home".memories: Field required'),
        ('{"memories": [1]}', 'property "home".value: Field required'),
        ('{"value": "ROME", "memories": ["one"]}', 'property "home".memories.0: Input should be'),
    ],
)
async def test_a_property_in_another_form_is_asked_for_once_more(row: str, reason: str):
    llm = ScriptedLLM(f'{{"home": {row}}}', '{"home": {"value": null, "memories": []}}')
    answer = await PromptedModel(llm).distil(PROFILE, [])
    assert answer.usage.calls == 2
    assert answer.note is None
    assert reason in llm.asked[1][1].content


async def test_a_property_of_a_profile_left_out_is_asked_for_once_more():
    llm = ScriptedLLM("{}", '{"home": {"value": "ROME", "memories": [1]}}')
    answer = await PromptedModel(llm).distil(PROFILE, ["Ann lives in Rome."])
    assert answer.usage.calls == 2
    assert 'property "home" is missing' in llm.asked[1][1].content


async def test_numbers_may_be_strings_and_no_memories_null():
    llm = ScriptedLLM(
        '{"home": {"value": "ROME", "memories": ["1"]}, "job": {"value": null, "memories": null}}'
    )
    answer = await PromptedModel(llm).distil(TWO, ["Ann lives in Rome."])
    assert answer.value == {
        "home": {"value": "ROME", "memories": [1]}, "job": {"value": None, "memories": []},
    }  # fmt: skip
    assert answer.usage.calls == 1


async def test_a_property_malformed_after_its_repair_is_left_out_and_named():
    spoiled = '{"home": {"value": "ROME", "memories": [1]}, "job": "baker"}'
    llm = ScriptedLLM(spoiled, spoiled)
    answer = await PromptedModel(llm).distil(TWO, ["Ann lives in Rome."])
    assert answer.value == {"home": {"value": "ROME", "memories": [1]}}
    assert answer.note is not None
    assert '"job"' in answer.note
    assert "baker" not in answer.note


async def test_a_profile_without_a_valid_property_fails():
    spoiled = '{"home": "ROME", "job": "baker"}'
    with pytest.raises(MalformedAnswer):
        await PromptedModel(ScriptedLLM(spoiled, spoiled)).distil(TWO, [])
