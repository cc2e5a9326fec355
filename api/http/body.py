"""The base of all request bodies."""

from __future__ import annotations

from datetime import UTC, date, datetime
from functools import cache
from typing import Annotated, Any, ClassVar, Self

from pydantic import (
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)

from api.http import unknown_fields
from pipeline.domain.errors import InvalidInput
from pipeline.domain.filters import ENTITY_IDS, local_moment
from pipeline.domain.scope import Scope
from pipeline.domain.tenants import ProjectId

LONGEST_ID = 512
# Some languages send an unset time as the year 1. The driver of PostgreSQL stores the first and the
# last time of Python as infinite ones, which are no times when they are read.
EARLIEST = datetime(1000, 1, 1, tzinfo=UTC)
LATEST = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)


def as_id(value: object) -> object:
    """The value as an id: a number as its text, a blank text as None."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return none_if_blank(value)


def none_if_blank(value: object) -> object:
    """None for a blank string, else the value."""
    return None if isinstance(value, str) and not value.strip() else value


def as_moment(value: object, info: ValidationInfo) -> object:
    """The value as a time, in any form that `moment` accepts; None stays None.

    Errors: InvalidInput, also for a time that is not between EARLIEST and LATEST.
    """
    time = as_local_moment(value, info)
    return time.astimezone(UTC) if isinstance(time, datetime) else time


def as_local_moment(value: object, info: ValidationInfo) -> object:
    """The value as a time with the offset that it has; None stays None. Errors: as `as_moment`."""
    if value is None:
        return None
    name = info.field_name or "time"
    time = local_moment(name, value)
    if not EARLIEST <= time < LATEST:
        raise InvalidInput(
            f"{name}: {value!r} is before the year {EARLIEST.year}, or the end of time. Leave the"
            " field out if the time is not known."
        )
    return time


def as_day(value: object, parse: ValidatorFunctionWrapHandler) -> object:
    """The value as a date; None for a blank string. Errors: ValueError, with the accepted form."""
    try:
        return parse(none_if_blank(value))
    except ValidationError:
        raise ValueError(f"{str(value)[:50]!r} is no date. Use 2027-01-31, the last day.") from None


EntityId = Annotated[Annotated[str, Field(max_length=LONGEST_ID)] | None, BeforeValidator(as_id)]
Moment = Annotated[datetime | None, BeforeValidator(as_moment)]
# The day of the speaker counts for words such as "yesterday".
LocalMoment = Annotated[datetime | None, BeforeValidator(as_local_moment)]
ExpirationDate = Annotated[date | None, WrapValidator(as_day)]


def examples(*bodies: dict[str, Any]) -> ConfigDict:
    """The configuration of a model with these examples in the OpenAPI description."""
    return ConfigDict(json_schema_extra={"examples": list(bodies)})


class Request(BaseModel):
    """A body of a Mem0 route: unknown keys are ignored, and named in a response header."""

    model_config = ConfigDict(extra="ignore")

    # Older names of keys, which validators accept.
    also: ClassVar[frozenset[str]] = frozenset()
    strict: ClassVar[bool] = False

    @model_validator(mode="before")
    @classmethod
    def unknown_keys(cls, value: Any) -> Any:
        """Note or refuse keys that the model does not have."""
        if isinstance(value, dict):
            unknown_fields.refuse_or_note(value, _names(cls) | cls.also, strict=cls.strict)
        return value


class OwnRequest(Request):
    """A body of one of Memlane's own routes: unknown keys are refused."""

    strict: ClassVar[bool] = True


class EntityIdFields(BaseModel):
    """The four entity ids of a body."""

    user_id: EntityId = None
    agent_id: EntityId = None
    app_id: EntityId = None
    run_id: EntityId = None


class ScopeRequest(OwnRequest, EntityIdFields):
    """A body about the scope with exactly the given ids."""

    @model_validator(mode="after")
    def has_an_id(self) -> Self:
        """Require at least one id."""
        if not any(getattr(self, name) for name in ENTITY_IDS):
            raise ValueError(f"give at least one of {', '.join(ENTITY_IDS)}")
        return self

    def scope(self, project_id: ProjectId) -> Scope:
        """The scope of exactly these ids."""
        return Scope(project_id, self.user_id, self.agent_id, self.app_id, self.run_id)


@cache
def _names(model: type[BaseModel]) -> frozenset[str]:
    """All keys that the model's fields are read from."""
    names: set[str] = set()
    for name, field in model.model_fields.items():
        match field.validation_alias:
            case AliasChoices(choices=choices):
                names |= {choice for choice in choices if isinstance(choice, str)}
            case str(alias):
                names.add(alias)
            case _:
                names.add(name)
    return frozenset(names)
