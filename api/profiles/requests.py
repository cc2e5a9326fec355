"""Requests for profiles of users."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from api.exports.requests import form_of, whole
from api.http.body import EntityId, Request, examples
from api.http.limits import InstructionText, SchemaObject
from pipeline.domain.profiles import MOST_SAMPLED, SAMPLED

NESTED = {"schema", "custom_instructions"}


class UserProfileSettings(BaseModel):
    """Settings of users' profiles. None clears a setting."""

    model_config = ConfigDict(extra="ignore")

    shape: SchemaObject | None = Field(
        default=None,
        alias="schema",
        description="A JSON schema of an object; every property needs a description.",
    )
    custom_instructions: InstructionText | None = None

    @field_validator("shape", mode="after")
    @classmethod
    def described(cls, shape: dict[str, Any] | None) -> dict[str, Any] | None:
        """Require an object whose properties have descriptions."""
        if shape is None:
            return None
        shape = whole(shape)
        if missing := list(_undescribed(form_of(shape), "")):
            raise ValueError(f"every property needs a description: {', '.join(missing[:10])}")
        return shape


class ProfileEntities(BaseModel):
    """Settings by kind of entity: only users have profiles."""

    model_config = ConfigDict(extra="forbid")

    user: UserProfileSettings | None = None


class ProfileSettingsRequest(Request):
    """Some settings of a project's profiles; those that are left out stay as they are."""

    model_config = examples(
        {
            "enabled": True,
            "entities": {
                "user": {
                    "schema": {
                        "type": "object",
                        "properties": {
                            "home": {"type": "string", "description": "where they live"}
                        },
                    }
                }
            },
        }
    )

    enabled: bool | None = None
    entities: ProfileEntities | None = None

    @model_validator(mode="before")
    @classmethod
    def nested(cls, value: Any) -> Any:
        """Refuse settings of users beside `enabled`."""
        if isinstance(value, dict) and (flat := NESTED & value.keys()):
            names = ", ".join(sorted(flat))
            raise ValueError(f"Unsupported settings: {names}. Send them in entities.user.")
        return value

    def values(self) -> dict[str, Any]:
        """The settings that the request changes, by name."""
        user = (self.entities and self.entities.user) or UserProfileSettings()
        given = {"schema": user.shape, "custom_instructions": user.custom_instructions}
        sent = {"schema" if name == "shape" else name for name in user.model_fields_set}
        changed = {name: value for name, value in given.items() if name in sent}
        return changed | ({} if self.enabled is None else {"enabled": self.enabled})


class ProfileJobRequest(Request):
    """A generation of one user's profile (`trigger`), or of a few users' (`sample`)."""

    model_config = examples({"operation": "trigger", "entity_id": "maya"})

    operation: Literal["trigger", "sample"] = "trigger"
    entity_type: Literal["user"] = "user"
    entity_id: EntityId = None
    limit: Annotated[int, Field(ge=1, le=MOST_SAMPLED)] = SAMPLED

    @model_validator(mode="after")
    def needs_a_user(self) -> ProfileJobRequest:
        """Require the user of a trigger."""
        if self.operation == "trigger" and self.entity_id is None:
            raise ValueError("entity_id is missing: the user whose profile is generated")
        return self


def _undescribed(shape: Mapping[str, Any], path: str) -> Iterator[str]:
    """Paths of the properties without a description."""
    for name, part in shape.get("properties", {}).items():
        here = f"{path}{name}"
        if not part.get("description", "").strip():
            yield here
        yield from _undescribed(part, f"{here}.")
