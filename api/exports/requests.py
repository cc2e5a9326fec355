"""Requests for exports and summaries of all memories that match."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import orjson
from pydantic import Field, field_validator, model_validator

from api.http.body import examples
from api.http.limits import InstructionText, SchemaObject
from api.lists.requests import ReadRequest
from pipeline.domain.errors import InvalidInput
from pipeline.domain.events import AddOptions, EventType, Question
from pipeline.domain.filters import pinned
from pipeline.domain.limits import one_line
from pipeline.domain.scope import Scope
from pipeline.domain.versions import Snapshot
from pipeline.models.json_schema import outline, property_names
from pipeline.tenants.projects import Project

# A JSON object with one of these keys is a schema already.
SCHEMA_WORDS = {"type", "properties", "$ref", "anyOf", "oneOf", "allOf"}
TYPES = {"string", "number", "integer", "boolean", "array"}
SUMMARY = {"type": "object", "properties": {"summary": {"type": "string"}}}


class QuestionRequest(ReadRequest):
    """The memories to read. Ids may be in the filters or beside them."""

    def scope(self, project: Project) -> Scope:
        """The scope whose lane processes the request, after the adds before it."""
        return Scope(project.id, **pinned(self.tree()))

    def at(self) -> Snapshot | None:
        """The time of the memories to read; None for the current ones."""
        snapshot = self.snapshot()
        return None if snapshot.is_current else snapshot


class SummaryRequest(QuestionRequest):
    """A summary of some memories."""

    model_config = examples({"filters": {"user_id": "maya"}})

    def options(self) -> AddOptions:
        """The question as options of an add."""
        question = Question(
            EventType.SUMMARY, self.condition(), outline(SUMMARY), snapshot=self.at()
        )
        return AddOptions(question=question)


class ExportRequest(QuestionRequest):
    """An export of some memories in the shape of a JSON schema."""

    model_config = examples(
        {
            "filters": {"user_id": "maya"},
            "schema": {
                "type": "object",
                "properties": {
                    "home": {"type": "string", "description": "the city of residence"},
                    "food": {"type": "array", "items": {"type": "string"}},
                },
            },
        }
    )

    shape: SchemaObject = Field(alias="schema", description="A JSON schema of an object.")
    export_instructions: InstructionText | None = None

    @field_validator("shape", mode="before")
    @classmethod
    def as_object(cls, value: object) -> object:
        """Accept a schema as JSON text, or only the names of its fields."""
        try:
            schema = orjson.loads(value) if isinstance(value, str) else value
        except orjson.JSONDecodeError:
            raise ValueError("a schema that is a string must be JSON") from None
        return whole(schema) if isinstance(schema, dict) else schema

    def options(self) -> AddOptions:
        """The question as options of an add."""
        question = Question(
            EventType.EXPORT,
            self.condition(),
            form_of(self.shape),
            self.export_instructions,
            self.at(),
        )
        return AddOptions(question=question)


class ExportReadRequest(ReadRequest):
    """The export to read: by its id, or the newest one with these filters."""

    memory_export_id: UUID | None = None

    @model_validator(mode="after")
    def something(self) -> ExportReadRequest:
        """Require an id or filters."""
        if self.memory_export_id is None and not self.condition():
            raise ValueError("give memory_export_id or filters")
        return self


def whole(schema: dict[str, Any]) -> dict[str, Any]:
    """A JSON schema of an object, also if only fields are given: `{"fields": ["home"]}` or
    `{"home": "string"}`.
    """
    if not schema or SCHEMA_WORDS & schema.keys():
        return schema
    fields = schema.get("fields")
    if len(schema) == 1 and isinstance(fields, list):
        return _object({str(name): "string" for name in fields})
    return _object(schema)


def _object(fields: dict[str, Any]) -> dict[str, Any]:
    properties = {
        name: about if isinstance(about, dict) else _property(about)
        for name, about in fields.items()
    }
    return {"type": "object", "properties": properties}


def _property(about: object) -> dict[str, Any]:
    """The schema of a field; a word that is not a type is its description."""
    if isinstance(about, str):
        return {"type": about} if about in TYPES else {"type": "string", "description": about}
    return {"type": "array" if isinstance(about, list) else "string"}


def form_of(schema: dict[str, Any]) -> dict[str, Any]:
    """The outline of a schema whose property names are one line each. Errors: InvalidInput."""
    form = outline(schema)
    for name in property_names(form):
        try:
            one_line(name)
        except ValueError as error:
            raise InvalidInput(f"schema, properties: {error}.") from None
    return form
