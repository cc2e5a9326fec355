"""Numbers in metadata: stored exactly, or refused by the name of their key."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.api_service import ADD, LIST, MAYA, Service, error_of

MOST, LEAST = 2**64 - 1, -(2**63)
EXACT = {
    "most": MOST,
    "least": LEAST,
    "nested": {"list": [MOST, LEAST]},
    "large": 1e22,
    "small": 5e-324,
    "largest": 1.7976931348623157e308,
}


async def added(service: Service, body: str) -> Any:
    headers = {"content-type": "application/json"}
    return await service.client.post(ADD, content=body, headers=headers)


async def test_numbers_of_64_bits_and_floats_come_back_as_they_were_sent(service: Service) -> None:
    await service.add("Maya likes tea", metadata=EXACT)
    [row] = await service.listed()
    assert row["metadata"] == EXACT


@pytest.mark.parametrize(("key", "value"), EXACT.items())
async def test_a_filter_of_such_a_number_matches_it(service: Service, key: str, value: Any) -> None:
    await service.add("Maya likes tea", metadata={key: value})
    filters = {"AND": [MAYA, {"metadata": {key: value}}]}
    answer = await service.client.post(LIST, json={"filters": filters})
    assert answer.status_code == 200, answer.text
    assert [row["metadata"] for row in answer.json()["results"]] == [{key: value}]


@pytest.mark.parametrize("number", [str(MOST + 1), str(LEAST - 1), "9" * 300, "-" + "9" * 21])
@pytest.mark.parametrize("metadata", ['{{"order": {0}}}', '{{"a": {{"order": [1, [{0}]]}}}}'])
async def test_a_larger_integer_is_refused_by_the_name_of_its_key(
    service: Service, metadata: str, number: str
) -> None:
    sent = metadata.format(number)
    for answer in (
        await added(
            service,
            f'{{"messages": "Hi", "user_id": "maya", "infer": false, "metadata": {sent}}}',
        ),
        await service.client.post(
            LIST,
            content=f'{{"filters": {{"AND": [{{"user_id": "maya"}}, {{"metadata": {sent}}}]}}}}',
            headers={"content-type": "application/json"},
        ),
    ):
        assert answer.status_code == 400, answer.text
        assert "'order'" in error_of(answer)
        assert "string" in error_of(answer)


@pytest.mark.parametrize("number", ["1e400", "-1e400", "NaN", "Infinity", "-Infinity"])
async def test_what_is_no_number_of_json_is_refused(service: Service, number: str) -> None:
    answer = await added(
        service, f'{{"messages": "Hi", "user_id": "maya", "metadata": {{"order": {number}}}}}'
    )
    assert answer.status_code == 400, answer.text
    assert "JSON" in error_of(answer)


async def test_a_number_in_a_query_string_is_not_rounded(service: Service) -> None:
    await service.add("Maya likes tea", metadata={"order": float(MOST + 1)})
    await service.add("Maya likes jazz", metadata={"order": str(MOST + 1)})
    params = {"user_id": "maya", "metadata[order]": str(MOST + 1)}
    answer = await service.client.get("/v1/memories/", params=params)
    assert [row["memory"] for row in answer.json()] == ["Maya likes jazz"]
