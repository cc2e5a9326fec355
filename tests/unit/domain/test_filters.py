"""Filter language: operators, aliases and errors; the parser loses no condition."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pipeline.domain import filters
from pipeline.domain.errors import InvalidInput
from pipeline.domain.filters import (
    ALIASES,
    DEEPEST,
    ENTITY_IDS,
    KIND,
    LISTED,
    MOST_CONDITIONS,
    MOST_COVERS,
    OPERATORS,
    AllOf,
    AnyOf,
    Filter,
    Not,
    covers,
    moment,
    of_pins_only,
    parse,
    pinned,
    require_scope,
)

Condition = filters.Test  # pytest would collect a class named Test

ONE = "00000000-0000-0000-0000-000000000001"
MARCH = datetime(2026, 3, 1, tzinfo=UTC)


def refusal(value: object) -> str:
    with pytest.raises(InvalidInput) as caught:
        parse(value)
    return str(caught.value)


def leaves(tree: Filter) -> int:
    match tree:
        case AllOf(of) | AnyOf(of):
            return sum(leaves(part) for part in of)
        case Not(of):
            return leaves(of)
        case _:
            return 1


# ── single conditions ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ENTITY_IDS)
def test_a_bare_id_means_eq_and_a_bare_list_means_in(name: str) -> None:
    assert parse({name: "maya"}) == Condition(name, "eq", "maya")
    assert parse({name: ["maya", "jon"]}) == Condition(name, "in", ["maya", "jon"])


@pytest.mark.parametrize("name", ENTITY_IDS)
@pytest.mark.parametrize("operator", OPERATORS["entity"])
def test_an_id_takes_each_of_its_operators(name: str, operator: str) -> None:
    value: Any = ["maya"] if operator == "in" else "maya"
    assert parse({name: {operator: value}}) == Condition(name, operator, value)


def test_a_numeric_id_is_its_digits_and_null_stays_null() -> None:
    assert parse({"user_id": 7}) == Condition("user_id", "eq", "7")
    assert parse({"user_id": [7, "8"]}) == Condition("user_id", "in", ["7", "8"])
    assert parse({"user_id": None}) == Condition("user_id", "eq", None)


@pytest.mark.parametrize("name", filters.TIMES)
@pytest.mark.parametrize("operator", OPERATORS["time"])
def test_a_time_takes_each_of_its_operators(name: str, operator: str) -> None:
    operand: Any = ["2026-03-01"] if operator == "in" else "2026-03-01"
    expected: Any = [MARCH] if operator == "in" else MARCH
    assert parse({name: {operator: operand}}) == Condition(name, operator, expected)


def test_a_range_is_two_conditions_that_both_hold() -> None:
    assert parse({"created_at": {"gte": "2026-03-01", "lt": "2026-03-01"}}) == AllOf(
        (Condition("created_at", "gte", MARCH), Condition("created_at", "lt", MARCH))
    )


@pytest.mark.parametrize("operator", OPERATORS["text"])
def test_text_takes_each_of_its_operators(operator: str) -> None:
    assert parse({"text": {operator: "jazz"}}) == Condition("text", operator, "jazz")


def test_bare_text_means_eq_and_bare_keywords_ignore_case() -> None:
    assert parse({"text": "jazz"}) == Condition("text", "eq", "jazz")
    assert parse({"keywords": "jazz"}) == Condition("keywords", "icontains", "jazz")
    assert parse({"keywords": {"contains": "Jazz"}}) == Condition("keywords", "contains", "Jazz")


def test_memory_ids_are_a_list_of_uuids() -> None:
    assert parse({"memory_ids": [ONE]}) == Condition("memory_ids", "in", [UUID(ONE)])
    assert parse({"memory_ids": {"in": [ONE]}}) == Condition("memory_ids", "in", [UUID(ONE)])


@pytest.mark.parametrize("operator", OPERATORS["metadata"])
def test_metadata_takes_each_of_its_operators_in_both_spellings(operator: str) -> None:
    operand: Any = ["lisbon"] if operator in LISTED else "lisbon"
    expected = Condition("metadata", operator, operand, "trip")
    assert parse({"metadata.trip": {operator: operand}}) == expected
    assert parse({"metadata": {"trip": {operator: operand}}}) == AllOf((expected,))


@pytest.mark.parametrize(
    "operator",
    ["$gt", "$in", ">=", "!=", "not_in", "not in", "NIN", "like", "regex", "startsWith", "exists"],
)
def test_an_operator_of_another_language_is_refused(operator: str) -> None:
    """As a literal object it would match nothing, or everything under NOT."""
    for operand in ({operator: [1, 2]}, {"gt": 1, operator: 2}, {operator: 1, "city": "porto"}):
        message = refusal({"NOT": {"metadata": {"n": operand}}})
        assert message.startswith("metadata does not know ")
        assert message.endswith('icontains. To compare with an object, write {"eq": {...}}.')


def test_an_operator_beside_a_plain_key_is_refused() -> None:
    assert refusal({"metadata.a": {"gt": 1, "b": 2}}).startswith("metadata does not know 'b'.")


@pytest.mark.parametrize("operator", ["ne", "gt", "in"])
def test_an_operator_in_place_of_a_metadata_key_is_refused(operator: str) -> None:
    """As a metadata key it would match nothing, or everything under NOT."""
    message = refusal({"user_id": "maya", "NOT": {"metadata": {operator: "x"}}})
    assert message.startswith(f"metadata: {operator!r} needs a key.")
    named = parse({f"metadata.{operator}": "x"})
    assert named == Condition("metadata", "eq", "x", operator)


def test_an_object_whose_keys_are_operators_is_compared_with_eq() -> None:
    stored = {"in": [1], "like": "x"}
    assert parse({"metadata.a": {"eq": stored}}) == Condition("metadata", "eq", stored, "a")


def test_a_bare_list_of_metadata_is_ambiguous_and_refused() -> None:
    assert 'Write {"in": [...]} for any of its values' in refusal({"metadata": {"n": [1, 2]}})
    assert parse({"metadata.n": {"eq": [1, 2]}}) == Condition("metadata", "eq", [1, 2], "n")


@pytest.mark.parametrize("value", ["lisbon", 3, 0.5, True, None, {"city": "porto"}, {}])
def test_bare_metadata_of_any_type_is_compared_whole(value: object) -> None:
    assert parse({"metadata.trip": value}) == Condition("metadata", "eq", value, "trip")


def test_every_key_of_a_metadata_object_is_a_condition() -> None:
    assert parse({"metadata": {"trip": "lisbon", "n": 3}}) == AllOf(
        (Condition("metadata", "eq", "lisbon", "trip"), Condition("metadata", "eq", 3, "n"))
    )


def test_a_metadata_key_can_contain_dots() -> None:
    assert parse({"metadata.a.b": 1}) == Condition("metadata", "eq", 1, "a.b")


@pytest.mark.parametrize(("alias", "name"), ALIASES.items())
def test_an_alias_means_its_field(alias: str, name: str) -> None:
    values: dict[str, Any] = {"time": "2026-03-01", "memory_ids": [ONE]}
    value = values.get(KIND[name], "x")
    assert parse({alias: value}) == parse({name: value})


def test_a_name_and_its_alias_side_by_side_are_two_conditions() -> None:
    assert leaves(parse({"user_id": "maya", "userId": "jon"})) == 2


# ── how conditions combine ───────────────────────────────────────────────────────────────────────


def test_siblings_are_anded() -> None:
    assert parse({"user_id": "maya", "run_id": "r"}) == AllOf(
        (Condition("user_id", "eq", "maya"), Condition("run_id", "eq", "r"))
    )


def test_and_or_and_not_nest() -> None:
    tree = parse({"AND": [{"user_id": "maya"}, {"OR": [{"NOT": {"run_id": "*"}}, {"text": "x"}]}]})
    assert tree == AllOf(
        (
            Condition("user_id", "eq", "maya"),
            AnyOf((Not(AnyOf((Condition("run_id", "eq", "*"),))), Condition("text", "eq", "x"))),
        )
    )


def test_not_of_a_list_is_none_of_them() -> None:
    assert parse({"NOT": [{"user_id": "maya"}, {"user_id": "jon"}]}) == Not(
        AnyOf((Condition("user_id", "eq", "maya"), Condition("user_id", "eq", "jon")))
    )


@pytest.mark.parametrize("value", [{}, {"NOT": []}, {"NOT": {}}, {"AND": [{}]}])
def test_an_empty_filter_would_match_everything_and_is_refused(value: object) -> None:
    with pytest.raises(InvalidInput):
        parse(value)


# ── refusals ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], "A filter must be an object, not list."),
        ("user_id", "A filter must be an object, not str."),
        (None, "A filter must be an object, not NoneType."),
        ({"AND": []}, "AND takes a list of at least one filter."),
        ({"OR": {"user_id": "maya"}}, "OR takes a list of at least one filter."),
        ({"AND": ["maya"]}, "A filter must be an object, not str."),
        ({"NOT": "maya"}, "A filter must be an object, not str."),
        ({"user_id": {}}, "user_id needs a value."),
        ({"user_id": {"gt": "a"}}, "user_id does not know 'gt'. Allowed: eq, ne, in."),
        ({"user_id": {"in": "maya"}}, "user_id: 'in' takes a list."),
        ({"user_id": 1.5}, "user_id takes a string."),
        ({"user_id": [["maya"]]}, "user_id takes a string."),
        ({"text": {"like": "x"}}, "text does not know 'like'. Allowed: eq, contains, icontains."),
        ({"text": ["a"]}, "text does not know 'in'. Allowed: eq, contains, icontains."),
        ({"keywords": [1.5]}, "keywords takes a string."),
        ({"memory_ids": ONE}, "memory_ids does not know 'eq'. Allowed: in."),
        ({"memory_ids": ["x"]}, "memory_ids: 'x' is not a UUID."),
        ({"metadata": "lisbon"}, "metadata takes an object of keys and conditions."),
        ({"metadata": {}}, "metadata takes an object of keys and conditions."),
        ({"metadata.n": {"gt": [1]}}, "metadata: 'gt' takes a number or a string."),
        ({"metadata.n": {"lte": True}}, "metadata: 'lte' takes a number or a string."),
        ({"metadata.n": {"lt": None}}, "metadata: 'lt' takes a number or a string."),
        ({"metadata.n": {"in": 1}}, "metadata: 'in' takes a list."),
        ({"metadata.n": {"contains": {"a": 1}}}, "metadata takes a string."),
        ({"metadata.n": {"eq": float("nan")}}, "metadata takes values of JSON."),
        ({"metadata.n": {"eq": {1, 2}}}, "metadata takes values of JSON."),
        ({"keywords": "a" * 257}, "keywords: a pattern has at most 256 characters."),
        ({"text": {"contains": "a" * 257}}, "text: a pattern has at most 256 characters."),
        (
            {"metadata.n": {"icontains": "a" * 257}},
            "metadata: a pattern has at most 256 characters.",
        ),
        (
            {"categories": {"contains": "a" * 257}},
            "categories: a pattern has at most 256 characters.",
        ),
        ({"metadata": {"a" * 257: 1}}, "A metadata key has at most 256 characters."),
        ({"keywords": ["a"] * 101}, "filters hold more than 100 conditions."),
        ({"OR": [{"run_id": "r"}] * 101}, "filters hold more than 100 conditions."),
        ({"metadata": {str(n): n for n in range(101)}}, "filters hold more than 100 conditions."),
        ({"run_id": ["r"] * 1_001}, "filters hold more than 1000 values."),
        ({"AND": [{"run_id": ["r"] * 501}] * 2}, "filters hold more than 1000 values."),
        (
            {"created_at": {"after": "2026-03-01"}},
            "created_at does not know 'after'. Allowed: eq, ne, gt, gte, lt, lte, in.",
        ),
    ],
)
def test_a_refusal_names_the_part_and_the_allowed_values(value: object, message: str) -> None:
    assert refusal(value) == message


@pytest.mark.parametrize("key", ["user", "USER_ID", "and", "", "metadata.", "project_id"])
def test_an_unknown_key_is_refused_with_the_list_of_known_ones(key: str) -> None:
    message = refusal({"user_id": "maya", key: "x"})
    assert message.startswith(f"Unknown filter key {key!r}. Allowed: AND, OR, NOT, user_id, ")
    assert all(name in message for name in KIND)


@pytest.mark.parametrize("value", ["tomorrow", "2026-13-01", True, [1], {}, float("nan"), 1e300])
def test_an_invalid_time_is_refused_with_the_accepted_forms(value: object) -> None:
    with pytest.raises(InvalidInput, match=r"is no time\. Use 2026-03-01, "):
        moment("created_at", value)


def test_a_filter_can_nest_to_the_limit_and_not_beyond() -> None:
    tree: dict[str, Any] = {"user_id": "maya"}
    for _ in range(DEEPEST):
        tree = {"AND": [tree]}
    assert leaves(parse(tree)) == 1
    assert refusal({"NOT": tree}) == f"filters nest deeper than {DEEPEST} levels."


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2026-03-01", MARCH),
        ("2026-03-01T10:00:00", MARCH + timedelta(hours=10)),
        ("2026-03-01T10:00:00Z", MARCH + timedelta(hours=10)),
        ("2026-03-01T10:00:00+02:00", MARCH + timedelta(hours=8)),
        (1_772_323_200, MARCH),
        (1_772_323_200.5, MARCH + timedelta(seconds=0.5)),
    ],
)
def test_a_time_has_a_zone_and_without_one_it_is_utc(value: object, expected: datetime) -> None:
    assert moment("created_at", value) == expected
    assert moment("created_at", value).tzinfo is not None


def test_a_time_beyond_the_calendar_of_utc_is_refused() -> None:
    with pytest.raises(InvalidInput, match="is no time"):
        moment("created_at", "9999-12-31T23:59:59-14:00")


# ── scope ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "value",
    [
        {"user_id": "maya"},
        {"app_id": "*"},
        {"run_id": ["a", "b"]},
        {"AND": [{"text": "x"}, {"agent_id": "a"}]},
        {"OR": [{"user_id": "maya"}, {"agent_id": "a", "text": "x"}]},
        {"user_id": "maya", "NOT": {"run_id": "*"}},
    ],
)
def test_a_filter_that_names_an_owner_is_accepted(value: object) -> None:
    assert require_scope(parse(value)) == parse(value)


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"text": "x"},
        {"user_id": None},
        {"user_id": {"ne": "maya"}},
        {"NOT": {"user_id": "maya"}},
        {"NOT": {"NOT": {"user_id": "maya"}}},
        {"OR": [{"user_id": "maya"}, {"text": "x"}]},
        {"OR": [{"user_id": "maya"}, {}]},
        {"metadata.user_id": "maya"},
    ],
)
def test_a_filter_without_an_owner_would_read_all_owners_and_is_refused(value: object) -> None:
    with pytest.raises(InvalidInput, match="at least one of user_id, agent_id, app_id, run_id"):
        require_scope(parse(value))


def test_pinned_ids_are_those_every_match_must_have() -> None:
    value = {"user_id": "maya", "AND": [{"run_id": "r", "text": "x"}, {"agent_id": "a"}]}
    assert pinned(parse(value)) == {"user_id": "maya", "run_id": "r", "agent_id": "a"}


@pytest.mark.parametrize(
    "value",
    [
        {"user_id": "*"},
        {"user_id": ["maya"]},
        {"user_id": {"ne": "maya"}},
        {"user_id": None},
        {"OR": [{"user_id": "maya"}, {"user_id": "maya"}]},
        {"NOT": {"user_id": "maya"}},
        {"text": "maya"},
    ],
)
def test_ids_in_which_matches_can_differ_are_not_pinned(value: object) -> None:
    assert pinned(parse(value)) == {}


@pytest.mark.parametrize(
    ("value", "sets"),
    [
        ({"user_id": "a"}, [{"user_id": "a"}]),
        ({"text": "x"}, [{}]),
        ({"user_id": ["a", "b", "a"]}, [{"user_id": "a"}, {"user_id": "b"}]),
        ({"user_id": ["a", "*"]}, [{}]),
        ({"user_id": [str(n) for n in range(MOST_COVERS + 1)]}, [{}]),
        ({"OR": [{"user_id": "a"}, {"agent_id": "b"}]}, [{"user_id": "a"}, {"agent_id": "b"}]),
        ({"OR": [{"user_id": "a"}, {"text": "x"}]}, [{}]),
        ({"OR": [{"user_id": "a"}, {"NOT": {"agent_id": "b"}}]}, [{}]),
        (
            {"run_id": "r", "OR": [{"user_id": "a"}, {"agent_id": "b"}]},
            [{"user_id": "a", "run_id": "r"}, {"agent_id": "b", "run_id": "r"}],
        ),
        ({"NOT": {"user_id": "a"}}, [{}]),
    ],
)
def test_every_match_has_the_ids_of_one_set(value: object, sets: object) -> None:
    assert covers(parse(value)) == sets


@pytest.mark.parametrize(
    ("value", "only"),
    [
        ({"user_id": "a", "AND": [{"run_id": "r"}]}, True),
        ({"OR": [{"user_id": "a"}]}, True),
        ({"user_id": "a", "metadata": {"n": 1}}, False),
        ({"user_id": ["a"]}, False),
        ({"user_id": "*"}, False),
        ({"user_id": "a", "agent_id": None}, False),
        ({"NOT": {"user_id": "a"}}, False),
        ({"AND": [{"user_id": "a"}, {"user_id": "b"}]}, False),
    ],
)
def test_pins_are_equivalent_to_a_filter_of_equal_ids_only(value: object, *, only: bool) -> None:
    assert of_pins_only(parse(value)) is only


# ── arbitrary input ──────────────────────────────────────────────────────────────────────────────

KEYS = st.sampled_from(["AND", "OR", "NOT", "metadata.x", *KIND, *ALIASES]) | st.text(max_size=5)
OPERATOR = st.sampled_from(sorted({op for allowed in OPERATORS.values() for op in allowed}))
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.dates().map(str)
    | st.uuids().map(str)
)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS | OPERATOR, inner, max_size=3),
    max_leaves=12,
)


@given(JSON | st.dictionaries(KEYS, JSON, max_size=4))
def test_arbitrary_json_is_parsed_or_refused_by_name(value: object) -> None:
    with contextlib.suppress(InvalidInput):
        pinned(parse(value))


PLAIN = st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8)


def _of_kind(kind: str, operator: str) -> st.SearchStrategy[Any]:
    match kind:
        case "entity":
            return st.text(max_size=5) | st.integers() | st.none()
        case "time":
            return st.datetimes(timezones=st.just(UTC)).map(datetime.isoformat)
        case "memory_ids":
            return st.uuids().map(str)
        case "metadata" if operator in ("eq", "ne", *LISTED):
            return PLAIN | st.none() | st.booleans()
        case "metadata":
            return PLAIN
        case _:
            return st.text(max_size=5)


@st.composite
def _conditions(draw: st.DrawFn, kind: str) -> tuple[Any, int]:
    """The filter value of a key of this kind, and the number of conditions in it."""
    operators = draw(
        st.lists(st.sampled_from(OPERATORS[kind]), min_size=1, max_size=4, unique=True)
    )
    operands = {}
    for op in operators:
        operand = _of_kind(kind, op)
        operands[op] = draw(st.lists(operand, max_size=3) if op in LISTED else operand)
    return operands, len(operands)


@st.composite
def _entry(draw: st.DrawFn) -> tuple[str, Any, int]:
    name = draw(st.sampled_from([*KIND, *ALIASES, "metadata.trip", "metadata.a.b"]))
    if name == "metadata":
        # A key with the name of an operator is refused: it needs the form metadata.KEY.
        names = st.text(max_size=4).filter(lambda name: name not in filters.OPERATORS["metadata"])
        keys = draw(st.lists(names, min_size=1, max_size=3, unique=True))
        conditions = {key: draw(_conditions("metadata")) for key in keys}
        return (
            name,
            {k: v for k, (v, _) in conditions.items()},
            sum(n for _, n in conditions.values()),
        )
    kind = "metadata" if name.startswith("metadata.") else KIND[ALIASES.get(name, name)]
    value, count = draw(_conditions(kind))
    return name, value, count


LEVEL = st.lists(_entry(), min_size=1, max_size=3, unique_by=lambda entry: entry[0]).map(
    lambda entries: ({name: v for name, v, _ in entries}, sum(n for *_, n in entries))
)


def _nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several = st.lists(inner, min_size=1, max_size=3)

    def under(key: str, parts: list[Any], beside: Any) -> tuple[dict[str, Any], int]:
        value = {key: [tree for tree, _ in parts], **beside[0]}
        return value, sum(count for _, count in parts) + beside[1]

    return st.builds(under, st.sampled_from(["AND", "OR", "NOT"]), several, LEVEL)


@given(st.recursive(LEVEL, _nested, max_leaves=8))
def test_no_condition_is_lost_on_the_way_into_the_tree(tree: tuple[dict[str, Any], int]) -> None:
    value, count = tree
    assume(count <= MOST_CONDITIONS)
    assert leaves(parse(value)) == count
