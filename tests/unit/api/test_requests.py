"""Request schemas: the forms that are accepted, and the texts of errors."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from api.adds.requests import AddRequest
from api.http.body import LONGEST_ID
from api.lists.requests import ListRequest, ReadRequest
from api.memories import responses as memory_responses
from api.memories.requests import UpdateRequest
from api.search.requests import OlderSearchRequest, SearchRequest
from api.tenants.requests import BudgetRequest
from pipeline.domain import filters
from pipeline.domain.errors import InvalidInput
from pipeline.domain.events import Instructions
from pipeline.domain.filters import ENTITY_IDS, AllOf
from pipeline.domain.limits import MOST_MESSAGES
from pipeline.domain.messages import Message, Role
from pipeline.domain.scope import Scope
from pipeline.domain.tenants import OrganizationId, ProjectId
from pipeline.tenants.projects import Project

PROJECT = Project(ProjectId(UUID(int=1)), OrganizationId(UUID(int=2)), "test")
MARCH = datetime(2026, 3, 1, tzinfo=UTC)


def add(**body: object) -> AddRequest:
    return AddRequest.model_validate({"messages": "I like tea.", "user_id": "maya"} | body)


def refused(**body: object) -> str:
    with pytest.raises((ValidationError, InvalidInput)) as caught:
        add(**body)
    return str(caught.value)


# ── messages ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "messages",
    ["I like tea.", {"role": "user", "content": "I like tea."}, [{"content": "I like tea."}]],
    ids=["a string", "an object", "a list"],
)
def test_messages_are_a_string_an_object_or_a_list(messages: object) -> None:
    assert add(messages=messages).turns() == [Message(Role.USER, "I like tea.")]


def test_turns_keep_their_order_roles_and_names() -> None:
    turns = [
        {"role": "user", "content": "Hi", "name": "Maya"},
        {"role": "assistant", "content": "Hello"},
        {"role": "system", "content": "Be kind"},
    ]
    assert add(messages=turns).turns() == [
        Message(Role.USER, "Hi", "Maya"),
        Message(Role.ASSISTANT, "Hello"),
        Message(Role.SYSTEM, "Be kind"),
    ]


@pytest.mark.parametrize(("role", "read"), [("agent", Role.ASSISTANT), ("developer", Role.SYSTEM)])
def test_other_words_for_a_role_are_understood(role: str, read: Role) -> None:
    assert add(messages=[{"role": role, "content": "x"}]).turns()[0].role is read


def test_text_parts_become_lines_of_one_message() -> None:
    parts = [{"type": "text", "text": "I like tea."}, {"type": "text", "text": "And rye."}]
    assert add(messages=[{"content": parts}]).turns()[0].content == "I like tea.\nAnd rye."
    assert add(messages=[{"content": parts[0]}]).turns()[0].content == "I like tea."


@pytest.mark.parametrize("messages", [[], None, 7, [7], [{}], [{"text": "I like tea."}]])
def test_messages_that_say_nothing_are_refused(messages: object) -> None:
    assert "messages" in refused(messages=messages)


def test_more_messages_than_one_add_may_hold_are_refused() -> None:
    assert len(add(messages=[{"content": "x"}] * MOST_MESSAGES).turns()) == MOST_MESSAGES
    assert f"at most {MOST_MESSAGES}" in refused(messages=[{"content": "x"}] * (MOST_MESSAGES + 1))


# ── ids ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ENTITY_IDS)
def test_any_one_id_is_enough(name: str) -> None:
    request = add(**({"user_id": None} | {name: "x"}))
    assert request.scope(PROJECT) == Scope(PROJECT.id, **{name: "x"})


def test_an_id_may_be_a_number() -> None:
    assert add(user_id=7, run_id=0).scope(PROJECT) == Scope(PROJECT.id, user_id="7", run_id="0")


@pytest.mark.parametrize("blank", ["", "  ", None])
def test_a_blank_id_is_as_good_as_none(blank: object) -> None:
    assert add(agent_id=blank).scope(PROJECT) == Scope(PROJECT.id, user_id="maya")
    assert "give at least one of user_id, agent_id, app_id, run_id" in refused(user_id=blank)


@pytest.mark.parametrize("value", [True, 1.5, ["maya"], {"id": "maya"}])
def test_an_id_that_is_neither_text_nor_number_is_refused_by_name(value: object) -> None:
    assert "user_id" in refused(user_id=value)


def test_ids_inside_filters_count_and_the_top_level_wins() -> None:
    request = add(user_id=None, filters={"user_id": "maya", "run_id": 7, "agent_id": " "})
    assert request.scope(PROJECT) == Scope(PROJECT.id, user_id="maya", run_id="7")
    both = add(user_id="maya", filters={"user_id": "jon"})
    assert both.scope(PROJECT) == Scope(PROJECT.id, user_id="maya")


@pytest.mark.parametrize("where", ["top level", "filters"])
def test_an_id_longer_than_an_index_can_hold_is_refused(where: str) -> None:
    longest, longer = "x" * LONGEST_ID, "x" * (LONGEST_ID + 1)

    def body(value: str) -> dict[str, Any]:
        if where == "filters":
            return {"user_id": None, "filters": {"user_id": value}}
        return {"user_id": value}

    assert add(**body(longest)).scope(PROJECT).user_id == longest
    assert str(LONGEST_ID) in refused(**body(longer))


# ── text ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("text", [r"In C, '\u0000' ends a string.", r"C:\u0000", r"\\u0000"])
def test_text_about_the_nul_escape_holds_no_nul(text: str) -> None:
    assert add(messages=text).turns()[0].content == text


@pytest.mark.parametrize("number", [2**64, -(10**30)])
def test_a_number_too_large_is_not_called_bad_unicode(number: int) -> None:
    refusal = ""
    try:
        assert add(metadata={"n": number}).options().metadata == {"n": number}
    except ValidationError as error:
        refusal = str(error)
    assert "Unicode" not in refusal


@given(st.text(max_size=40))
def test_any_other_text_arrives_as_it_was_sent(text: str) -> None:
    sent = text.replace("\0", "").replace("\\u0000", "")
    if sent.strip():
        assert add(messages=sent).turns()[0].content == sent


# ── options ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        ("2026-03-01", MARCH),
        ("2026-03-01T10:00:00Z", MARCH + timedelta(hours=10)),
        ("2026-03-01T10:00:00+02:00", MARCH + timedelta(hours=8)),
        (1_772_323_200, MARCH),
        (1_772_323_200.5, MARCH + timedelta(milliseconds=500)),
        (None, None),
    ],
)
def test_a_timestamp_is_iso_or_unix_seconds(sent: object, read: datetime | None) -> None:
    assert add(timestamp=sent).timestamp == read
    assert UpdateRequest.model_validate({"timestamp": sent}).timestamp == read


@pytest.mark.parametrize("sent", ["tomorrow", "", True, [], 1e300])
def test_a_bad_timestamp_is_refused_with_the_forms_that_are_known(sent: object) -> None:
    assert "Use 2026-03-01, 2026-03-01T10:00:00Z or Unix seconds." in refused(timestamp=sent)


def test_an_expiration_is_a_date() -> None:
    assert add(expiration_date="2027-01-01").options().expiration_date == date(2027, 1, 1)
    assert add(expiration_date="2027-01-01T00:00:00").options().expiration_date == date(2027, 1, 1)
    assert add(expiration_date=" ").options().expiration_date is None


@pytest.mark.parametrize("sent", ["soon", "31.12.2027", "2027-01-01T10:00:00Z", True, []])
def test_a_bad_expiration_is_refused_with_the_form_that_is_known(sent: object) -> None:
    text = refused(expiration_date=sent)
    assert "expiration_date" in text
    assert "is no date. Use 2027-01-31" in text


def test_an_empty_filter_is_refused_with_a_whole_sentence() -> None:
    with pytest.raises(InvalidInput, match="matches everything: filters must name at least one of"):
        filters.parse({})


def test_options_are_what_was_asked_and_empty_where_nothing_was() -> None:
    plain = add().options()
    assert (plain.infer, dict(plain.metadata), plain.immutable) == (True, {}, False)
    request = add(
        infer=False,
        metadata={"trip": "lisbon"},
        immutable=True,
        custom_instructions="c",
        includes="i",
        excludes="e",
    ).options()
    assert (request.infer, request.metadata, request.immutable) == (False, {"trip": "lisbon"}, True)
    assert request.instructions == Instructions("c", "i", "e")


def test_unknown_keys_are_ignored_as_clients_send_many() -> None:
    known = add()
    assert add(source="CLI", version="v2", org_id="o", output_shape=True, output={}) == known


# ── reads ────────────────────────────────────────────────────────────────────────────────────────


def test_ids_at_the_top_level_are_anded_to_the_filters() -> None:
    request = ReadRequest.model_validate({"user_id": "maya", "filters": {"run_id": "r"}})
    assert request.tree() == AllOf(
        (filters.Test("run_id", "eq", "r"), filters.Test("user_id", "eq", "maya"))
    )


@pytest.mark.parametrize("body", [{}, {"filters": {}}, {"filters": None}, {"user_id": " "}])
def test_a_read_without_a_scope_is_refused(body: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="at least one of user_id, agent_id, app_id, run_id"):
        ReadRequest.model_validate(body).tree()


def test_a_search_has_defaults_and_bounds() -> None:
    request = SearchRequest.model_validate({"query": "  tea?  "})
    assert (request.query, request.top_k, request.threshold) == ("tea?", 10, 0.1)
    assert not request.show_expired
    switches = (request.rerank, request.keyword_search, request.filter_memories)
    assert not any(switches)


@pytest.mark.parametrize("request_type", [ListRequest, SearchRequest, OlderSearchRequest])
def test_a_field_that_no_row_has_is_ignored(request_type: type[ReadRequest]) -> None:
    request = request_type.model_validate({"query": "x", "fields": ["memory", "hash", ""]})
    assert request.model_dump()["fields"] == ["memory", "hash", ""]
    assert memory_responses.only({"id": "1", "memory": "x"}, ["memory", "hash"]) == {
        "id": "1",
        "memory": "x",
    }


def test_a_query_beyond_the_limit_is_cut() -> None:
    [question] = SearchRequest(query="x" * 9_000).turns()
    assert len(question) == 8_000


def test_a_conversation_asks_its_last_user_message() -> None:
    messages = [
        {"role": "user", "content": "My sister moves."},
        {"role": "assistant", "content": "Where to?"},
        {"role": "user", "content": "Guess!"},
    ]
    assert SearchRequest(messages=messages).turns() == ["Guess!", "My sister moves."]
    with_query = SearchRequest(query="Where?", messages=messages)
    assert with_query.turns() == ["Where?", "Guess!", "My sister moves."]


@pytest.mark.parametrize("body", [{}, {"messages": [{"role": "assistant", "content": "Hello"}]}])
def test_a_search_needs_a_question(body: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="query or as a user message"):
        SearchRequest.model_validate(body)


@pytest.mark.parametrize("request_type", [SearchRequest, OlderSearchRequest])
def test_a_null_is_the_default(request_type: type[SearchRequest]) -> None:
    names = [name for name in SearchRequest.model_fields if name != "query"]
    request = request_type.model_validate({"query": "x", "limit": None} | dict.fromkeys(names))
    assert request == request_type(query="x")


def test_a_row_keeps_its_id_and_what_is_asked_for() -> None:
    row = {"id": "1", "memory": "x", "metadata": {"a": 1, "b": {"c": 2}}}
    assert memory_responses.only(row, None) == memory_responses.only(row, []) == row
    assert memory_responses.only(row, ["memory"]) == {"id": "1", "memory": "x"}
    assert memory_responses.only(row, ["metadata.a"]) == {"id": "1", "metadata": {"a": 1}}
    assert memory_responses.only(row, ["metadata.a", "metadata"]) == {
        "id": "1",
        "metadata": row["metadata"],
    }
    assert memory_responses.only(row, ["metadata.x"]) == {"id": "1", "metadata": None}
    assert memory_responses.only(row | {"metadata": None}, ["metadata.a"]) == {
        "id": "1",
        "metadata": None,
    }


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "query"),
        ({"query": ""}, "query"),
        ({"query": "  "}, "give the text to search for"),
        ({"query": None}, "query"),
        ({"query": "x", "max_tokens": 200_001}, "max_tokens"),
        ({"query": "x", "explain": [str(PROJECT.id)] * 101}, "explain"),
        ({"query": "x", "top_k": 0}, "top_k"),
        ({"query": "x", "top_k": 1_001}, "top_k"),
        ({"query": "x", "threshold": 1.1}, "threshold"),
        ({"query": "x", "rerank": "perhaps"}, "rerank"),
        ({"query": "x", "keyword_search": 2}, "keyword_search"),
        ({"query": "x", "filter_memories": {}}, "filter_memories"),
        ({"query": "x", "latest_only": "newest"}, "latest_only"),
        ({"query": "x", "fields": "memory"}, "fields"),
        ({"query": "x", "fields": [7]}, "fields.0"),
    ],
)
def test_a_search_out_of_bounds_is_refused_by_name(body: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        SearchRequest.model_validate(body)


# ── updates ──────────────────────────────────────────────────────────────────────────────────────


def changes(**body: object) -> dict[str, Any]:
    return UpdateRequest.model_validate(body).values()


def test_only_what_is_sent_is_changed() -> None:
    assert changes() == {}
    assert changes(text=" Maya likes rye. ") == {"text": "Maya likes rye."}
    assert changes(metadata={}) == {"metadata": {}}
    assert changes(timestamp="2026-03-01") == dict.fromkeys(
        ("said_at", "valid_from", "created_at"), MARCH
    )


def test_an_expiration_of_null_is_cleared_and_an_absent_one_kept() -> None:
    assert changes(expiration_date=None) == {"expiration_date": None}
    assert changes(expiration_date="2027-01-01") == {"expiration_date": date(2027, 1, 1)}
    assert "expiration_date" not in changes(text="x")


def test_any_other_null_is_as_good_as_absent() -> None:
    assert changes(text=None, metadata=None, timestamp=None) == {}


@pytest.mark.parametrize("name", ["message", "data", "memory"])
def test_older_names_of_the_text_are_read_where_it_has_none(name: str) -> None:
    assert changes(**{name: "x"}) == {"text": "x"}
    assert changes(**{name: "x", "text": "y"}) == {"text": "y"}


@pytest.mark.parametrize("text", ["", "   ", "\n"])
def test_a_memory_cannot_be_made_blank(text: str) -> None:
    with pytest.raises((ValidationError, InvalidInput)):
        changes(text=text)


@pytest.mark.parametrize(
    "limit",
    [
        {"tokens": True},
        {"tokens": "5"},
        {"tokens": 2**63},
        {"tokens": 1.5},
        {"tokens": -1},
        {"usd": False},
        {"usd": "5"},
        {"usd": 1e30},
        {"usd": float("nan")},
        {"usd": -0.01},
        {},
    ],
)
def test_a_budget_that_is_no_number_in_range_is_refused(limit: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        BudgetRequest.model_validate(limit)


@pytest.mark.parametrize("limit", [{"tokens": 0}, {"tokens": 10**15}, {"usd": 2}, {"usd": 0.5}])
def test_a_budget_takes_numbers(limit: dict[str, object]) -> None:
    assert (
        BudgetRequest.model_validate(limit).model_dump(exclude_none=True, exclude={"per"}) == limit
    )
