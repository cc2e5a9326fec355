"""Limits of single values in a request; a test compares them with docs/reference/limits.md."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, Field

from pipeline.domain.limits import (
    LONGEST_NAME,
    LONGEST_REASON,
    MOST_CATEGORIES,
    one_line,
    short,
    small,
)
from pipeline.text.statements.slots import Cardinality, attribute_name

SPLIT = "split it over several messages"
LONGEST_INSTRUCTIONS = 20_000
LONGEST_DATE = 64
MOST_FIELDS = 100
LONGEST_CATEGORY = 2_000
LARGEST_SCHEMA_BYTES = 64_000


def few_categories(value: dict[str, str]) -> dict[str, str]:
    """Limit the number of categories and their texts; names are one line. Errors: ValueError."""
    if len(value) > MOST_CATEGORIES:
        raise ValueError(f"there are {len(value)} categories, the limit is {MOST_CATEGORIES}")
    if any(len(name) > LONGEST_NAME for name in value):
        raise ValueError(f"the name of a category has at most {LONGEST_NAME} characters")
    for name in value:
        one_line(name)
    if any(len(about) > LONGEST_CATEGORY for about in value.values()):
        raise ValueError(f"the text of a category has at most {LONGEST_CATEGORY:,} characters")
    return value


def few_attributes(value: dict[str, Cardinality]) -> dict[str, Cardinality]:
    """Limit the number of attributes and their names; the names as memories have them.

    Errors: ValueError.
    """
    if len(value) > MOST_CATEGORIES:
        raise ValueError(f"there are {len(value)} attributes, the limit is {MOST_CATEGORIES}")
    if any(len(name) > LONGEST_NAME for name in value):
        raise ValueError(f"the name of an attribute has at most {LONGEST_NAME} characters")
    named = {attribute_name(one_line(name)): number for name, number in value.items()}
    if "" in named:
        raise ValueError("the name of an attribute has a letter or a digit")
    return named


def not_blank(refusal: str) -> AfterValidator:
    """A validator that removes the blanks around a text. Errors: ValueError for a blank one."""

    def stripped(text: str) -> str:
        if not text.strip():
            raise ValueError(refusal)
        return text.strip()

    return AfterValidator(stripped)


InstructionText = Annotated[str, *short(LONGEST_INSTRUCTIONS, "shorten the instructions")]
ReasonText = Annotated[str, *short(LONGEST_REASON, "shorten the reason")]
DateText = Annotated[str, *short(LONGEST_DATE, "write an ISO 8601 date")]
SchemaObject = Annotated[
    dict[str, Any], AfterValidator(small(LARGEST_SCHEMA_BYTES, "ask for fewer properties"))
]
# Keys of a row that a request selects: `metadata.x` is one key of the metadata. Unknown names are
# ignored, as in the Mem0 Platform, because clients name fields that do not exist here.
Fields = Annotated[list[str], Field(max_length=MOST_FIELDS)]
Categories = Annotated[dict[str, str], AfterValidator(few_categories)]
Attributes = Annotated[dict[str, Cardinality], AfterValidator(few_attributes)]
