"""Reduction of a caller's JSON schema to a form that any language model can fill."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pipeline.domain.errors import InvalidInput

DEEPEST, MOST_FIELDS = 6, 200
SCALARS = ("string", "number", "integer", "boolean")
WANTED = "schema must be a JSON schema of type object, with properties."


def outline(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema as nested objects, arrays and scalars; every property required, no others allowed.

    References are resolved. Of alternatives, the first that is not null is taken. Apart from types,
    only descriptions and enums of strings are kept.

    Errors: InvalidInput if the schema is not an object with properties, nests deeper than DEEPEST
    levels, has more than MOST_FIELDS properties, or has a reference to a missing part.
    """
    top = _Reader(schema).part(schema, depth=0)
    if top["type"] != "object" or not top["properties"]:
        raise InvalidInput(WANTED)
    return top


def property_names(form: Mapping[str, Any]) -> Iterator[str]:
    """The names of all properties of an outline, nested ones too."""
    for name, part in form.get("properties", {}).items():
        yield name
        yield from property_names(part)
    if "items" in form:
        yield from property_names(form["items"])


class _Reader:
    """Recursive reader of one schema; `root` resolves its references."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._fields = 0

    def part(self, schema: Any, *, depth: int) -> dict[str, Any]:
        """The reduced form of a subschema. Errors: InvalidInput."""
        if not isinstance(schema, Mapping):
            raise InvalidInput(WANTED)
        if depth > DEEPEST:
            raise InvalidInput(f"schema nests deeper than {DEEPEST} levels.")
        schema = self._resolved(schema)
        description = schema.get("description")
        described = {"description": description} if isinstance(description, str) else {}
        return self._typed(schema, depth) | described

    def _typed(self, schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
        match _type(schema):
            case "object":
                return self._object(schema, depth)
            case "array":
                items = self.part(schema.get("items") or {"type": "string"}, depth=depth + 1)
                return {"type": "array", "items": items}
            case kind:
                words = schema.get("enum")
                listed = isinstance(words, list) and all(isinstance(word, str) for word in words)
                return {"type": kind} | ({"enum": words} if listed and words else {})

    def _object(self, schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
        """An object with its properties, all of them required."""
        properties = schema.get("properties", {})
        if not isinstance(properties, Mapping):
            raise InvalidInput(WANTED)
        self._fields += len(properties)
        if self._fields > MOST_FIELDS:
            raise InvalidInput(f"schema has more than {MOST_FIELDS} properties.")
        parts = {str(name): self.part(part, depth=depth + 1) for name, part in properties.items()}
        return {
            "type": "object",
            "properties": parts,
            "required": list(parts),
            "additionalProperties": False,
        }

    def _resolved(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        """Target of a reference, or the first alternative that is not null.

        Follows at most DEEPEST references in a row, so a cycle ends.
        """
        for _ in range(DEEPEST):
            target = self._pointed(schema)
            if target is None:
                break
            schema = {**{k: v for k, v in schema.items() if k == "description"}, **target}
        return schema

    def _pointed(self, schema: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Target of the schema's `$ref` or first alternative, one step; None if it has neither."""
        if isinstance(reference := schema.get("$ref"), str):
            return self._at(reference)
        lists = [_list(schema.get(key)) for key in ("anyOf", "oneOf", "allOf")]
        objects = (option for options in lists for option in options if isinstance(option, Mapping))
        return next((option for option in objects if option.get("type") != "null"), None)

    def _at(self, reference: str) -> Mapping[str, Any]:
        node: Any = self._root
        for step in filter(None, reference.removeprefix("#").split("/")):
            node = node.get(step) if isinstance(node, Mapping) else None
        if not isinstance(node, Mapping):
            raise InvalidInput("schema refers to a part that it does not hold.")
        return node


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _type(schema: Mapping[str, Any]) -> str:
    """The first supported type that the schema names; without one, object or string."""
    given = [schema.get("type"), *_list(schema.get("type"))]
    for kind in given:
        if isinstance(kind, str) and kind in (*SCALARS, "array", "object"):
            return kind
    return "object" if "properties" in schema else "string"
