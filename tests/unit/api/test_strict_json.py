"""JSON bodies: values that PostgreSQL cannot store are refused by name; parsing is bounded."""

from __future__ import annotations

import json
import time
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.http.query_string import literal
from api.http.strict_json import DEEPEST, MOST_VALUES, read
from pipeline.domain.errors import InvalidInput


@pytest.mark.parametrize(
    "value",
    ["a\0b", {"user_id": "ma\0ya"}, {"a": [{"b": "\0"}]}, {"\0": 1}, "\\\0"],
)
def test_a_nul_anywhere_is_refused_by_name(value: object) -> None:
    with pytest.raises(InvalidInput, match="NUL character"):
        read(json.dumps(value).encode())


@pytest.mark.parametrize("text", [r"In C, '\u0000' ends a string.", r"C:\u0000", r"\\u0000", "\\"])
def test_text_about_the_nul_escape_holds_no_nul(text: str) -> None:
    assert read(json.dumps(text).encode()) == text


@pytest.mark.parametrize(
    "body",
    [b'"\\ud800"', b'{"\\udfff": 1}', b"NaN", b"[Infinity]", b"1e999", b'"\xff"', b'"a', b""],
)
def test_what_json_does_not_have_is_no_json(body: bytes) -> None:
    with pytest.raises(orjson.JSONDecodeError):
        read(body)


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        (b'{"zzz": [' + b"{}," * MOST_VALUES + b"{}]}", "20,000 values"),
        (b"[" + b"1," * MOST_VALUES + b"1]", "20,000 values"),
        (b"[" * (DEEPEST + 1) + b"]" * (DEEPEST + 1), "64 levels"),
        (b'{"a":' * 400 + b"1" + b"}" * 400, "64 levels"),
    ],
)
def test_too_many_values_or_levels_are_refused(body: bytes, fault: str) -> None:
    with pytest.raises(InvalidInput, match=fault):
        read(body)


@pytest.mark.parametrize(
    ("body", "key"),
    [
        (b'{"user_id": "maya", "user_id": "noor"}', "user_id"),
        (b'{"a": 1, "\\u0061": 1}', "a"),
        (b'[{"a": {"b": 1, "c: d": "e: f", "b": 1}}]', "b"),
        (b'{"": 1, "": ' + b"9" * 300 + b"}", ""),
        (b'{"a": {"' + b"k" * 300 + b'": 1, "' + b"k" * 300 + b'": 2}}', "k" * 50),
    ],
)
def test_a_key_that_is_given_twice_is_refused_by_name(body: bytes, key: str) -> None:
    with pytest.raises(InvalidInput, match=f"the key '{key}' twice"):
        read(body)


def test_colons_in_texts_and_equal_keys_of_two_objects_are_no_repetition() -> None:
    body = b'[{"a": ": {\\"a\\": 1}", "b": {"a": 1}}, {"a": "x:y"}]'
    assert read(body) == [{"a": ': {"a": 1}', "b": {"a": 1}}, {"a": "x:y"}]


def test_commas_and_brackets_in_texts_are_not_counted() -> None:
    text = '[{,"\\' * MOST_VALUES
    assert read(orjson.dumps([text, {"a": text}])) == [text, {"a": text}]


def test_the_largest_honest_batch_is_read() -> None:
    edit = {"memory_id": "x", "text": "y", "metadata": {f"key{n}": n for n in range(10)}}
    batch = {"memories": [edit] * 1_000}
    assert read(orjson.dumps(batch)) == batch


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_any_other_value_arrives_as_it_was_sent(value: object) -> None:
    sent = orjson.dumps(value)
    if "\\u0000" not in json.dumps(value):
        assert read(sent) == value


@pytest.mark.parametrize(
    "body",
    [
        b'{"zzz":[' + b"{}," * 330_000 + b"{}]}",
        b"[" * 500_000 + b"]" * 500_000,
        b'"' + b"\\" * 999_991 + b'"',
        b'"' + b"\\\\" * 499_000 + b'\\u0000"',
        b'"a,' * 330_000,
        b"[" + b'"' * 999_999,
    ],
    ids=["objects", "brackets", "backslashes", "backslashes and a NUL", "open texts", "quotes"],
)
def test_a_megabyte_of_anything_is_read_in_linear_time(body: bytes) -> None:
    began = time.process_time()
    with pytest.raises((InvalidInput, orjson.JSONDecodeError)):
        read(body)
    assert time.process_time() - began < 1


# ── values in query strings ──────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"user_id": "maya"}', {"user_id": "maya"}),
        ("{'user_id': 'maya', 'n': None, 'on': True}", {"user_id": "maya", "n": None, "on": True}),
        ("('a', 'b')", ["a", "b"]),
    ],
)
def test_a_literal_is_json_or_what_python_prints_of_it(text: str, value: Any) -> None:
    assert literal("filters", text) == value


@pytest.mark.parametrize(
    "text",
    [
        "{'x': b'a'}",
        "{'x': {1}}",
        "{'x': 1j}",
        "{'x': ...}",
        "{{}}",
        "{'x': 1e999}",
        "{'x': '\\ud800'}",
        "{'x': '\\x00'}",
        "{'x': " + "[" * 900 + "]" * 900 + "}",
        "{'x': 0x" + "f" * 5_000 + "}",
        "abc",
    ],
)
def test_what_json_does_not_have_is_no_literal(text: str) -> None:
    with pytest.raises(InvalidInput):
        literal("filters", text)


@pytest.mark.parametrize("number", [2**64, -(2**63) - 1, 10**30])
@pytest.mark.parametrize("body", ['{{"order": {}}}', '{{"a": [{{"order": [[{}], 1]}}], "b": 1}}'])
def test_an_integer_that_would_be_rounded_is_refused_by_its_key(body: str, number: int) -> None:
    with pytest.raises(InvalidInput, match=r"'order'.*as a string"):
        read(body.format(number).encode())


@pytest.mark.parametrize(
    "body",
    [
        *(str(2**64 - 1), str(-(2**63)), "[1e22]", "[1.12345678901234567890123]"),
        *('"18446744073709551616"', '{"18446744073709551616": 1}', '"\\"18446744073709551616"'),
        "[1e-00000000000000000000001, 12345678901234567890123.5, 12345678901234567890123e2]",
    ],
)
def test_other_long_digits_are_read(body: str) -> None:
    assert read(body.encode()) == json.loads(body)


def test_an_integer_without_a_key_is_refused() -> None:
    with pytest.raises(InvalidInput, match="as a string"):
        read(b"[18446744073709551616]")
