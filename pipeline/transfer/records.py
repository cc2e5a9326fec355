"""Lines of an export: one JSON object per line, with a `type`.

    header                     format, version, and time of the export
    owner                      name and metadata of a user, agent, app or run
    event                      an add or another change, with its messages and receipt
    memory                     its current state, its history, its past states, its feedback
    entity, relation           the graph; relations name their entities by `key`
    summary                    one version of a conversation's summary
    conflict                   statements that cannot both hold
    end                        number of lines by type: a file without it is incomplete

Each line of a scope has the ids of its scope. A field that is not there is null or has its default.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from itertools import islice
from typing import Annotated, Any, Literal, Self
from uuid import UUID

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    FailFast,
    Field,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from pipeline.domain.errors import InvalidInput
from pipeline.domain.events import EventType, Status
from pipeline.domain.facts import FactKind, MemoryType, Outcome
from pipeline.domain.filters import ANY, ANY_IS_NO_ID
from pipeline.domain.graph.values import GraphOutcome, GraphStatus
from pipeline.domain.limits import (
    LARGEST_METADATA_BYTES,
    LONGEST_NAME,
    MOST_CATEGORIES,
    MOST_MESSAGES,
    MOST_PARTS,
    MemoryText,
    Metadata,
    PersonName,
    short,
    small,
)
from pipeline.domain.messages import Role
from pipeline.domain.modes import Mode
from pipeline.domain.scope import Scope
from pipeline.domain.tenants import ProjectId
from pipeline.text.statements.slots import Cardinality

FORMAT, VERSION = "memlane-export", 1
LONGEST_ID = 512
# Kinds of events that an export has. Questions and dry runs change nothing; of an erased user only
# numbers are left; the lines of an import are exported themselves.
EVENT_TYPES = (*(EventType.ADD, EventType.DELETE_ALL, EventType.SUGGESTION, EventType.RESOLUTION),)

# Rows of one line: states of a memory, lines of a receipt, statements of a conflict.
MOST_ROWS = 2_000
# Updates add to the metadata of a memory.
LARGEST_MERGED_BYTES = 4 * LARGEST_METADATA_BYTES

# Times that can be stored, read and written in every time zone: PostgreSQL's driver takes the first
# and the last time of Python as infinite ones.
EARLIEST = datetime(1, 1, 2, tzinfo=UTC)
LATEST = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)


def _storable(time: datetime) -> datetime:
    """The time. Errors: ValueError if it is not between EARLIEST and LATEST."""
    if not EARLIEST <= time < LATEST:
        raise ValueError("a time is between the years 1 and 9999 in UTC, without their ends")
    return time


def _names_one(value: str) -> str:
    """The id of one owner. Errors: ValueError for a blank one, and for the one that means any."""
    if not value.strip():
        raise ValueError("an id cannot be blank")
    if value == ANY:
        raise ValueError(ANY_IS_NO_ID)
    return value


StoredTime = Annotated[AwareDatetime, AfterValidator(_storable)]
OwnerId = Annotated[str, Field(min_length=1, max_length=LONGEST_ID), AfterValidator(_names_one)]
Count = Annotated[int, Field(ge=0, lt=2**31)]
Ordinal = Annotated[int, Field(ge=0, lt=2**15)]
Name = Annotated[str, Field(min_length=1, max_length=1_000)]
# Short texts of a model or of the server: a subject, an attribute, the name of a prompt.
Words = Annotated[str, *short(2_000, "shorten it")]
CategoryName = Annotated[str, *short(LONGEST_NAME, "shorten the name")]
MergedMetadata = Annotated[
    dict[str, Any], AfterValidator(small(LARGEST_MERGED_BYTES, "keep large values elsewhere"))
]
Omitted = Annotated[dict[str, Any], AfterValidator(small(2_000, "shorten the reason"))]


class RecordPart(BaseModel):
    """A JSON object of a line. Unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Header(RecordPart):
    """First line of a file. `exported_at` and `memlane` differ between two exports of one state."""

    type: Literal["header"]
    format: Literal["memlane-export"]
    version: Literal[1]
    memlane: str
    exported_at: StoredTime


class OwnerRecord(RecordPart):
    """Name and metadata of a user, agent, app or run."""

    type: Literal["owner"]
    kind: Literal["user", "agent", "app", "run"]
    id: OwnerId
    name: PersonName
    metadata: Metadata = {}
    created_at: StoredTime
    updated_at: StoredTime


class Scoped(RecordPart):
    """A line of one scope."""

    user_id: OwnerId | None = None
    agent_id: OwnerId | None = None
    app_id: OwnerId | None = None
    run_id: OwnerId | None = None

    def scope(self, project_id: ProjectId) -> Scope:
        """The scope in this project."""
        return Scope(project_id, self.user_id, self.agent_id, self.app_id, self.run_id)


class SaidMessage(RecordPart):
    """A message of an event. `omitted`: parts that were not stored."""

    role: Role
    name: PersonName | None = None
    content: MemoryText
    omitted: Annotated[list[Omitted] | None, Field(max_length=2 * MOST_PARTS)] = None
    said_at: StoredTime


class ReceiptPart(RecordPart):
    """The outcome of one fact of an event. `message_ordinal`: the message that states it."""

    outcome: Outcome
    memory_id: UUID | None = None
    text: MemoryText
    previous_text: MemoryText | None = None
    reason: MemoryText
    message_ordinal: Ordinal
    conflict_id: UUID | None = None
    adopted_at: StoredTime | None = None


class GraphReceiptPart(RecordPart):
    """The effect of one fact on the graph."""

    outcome: GraphOutcome
    relation_id: UUID | None = None
    memory_id: UUID | None = None
    source: Words
    relation: Words
    destination: Words
    reason: MemoryText
    message_ordinal: Ordinal


class EventRecord(Scoped):
    """An ended event: an add with its turns and receipt, or another change of memories."""

    type: Literal["event"]
    id: UUID
    event_type: Literal[
        EventType.ADD, EventType.DELETE_ALL, EventType.SUGGESTION, EventType.RESOLUTION
    ]
    status: Literal[Status.SUCCEEDED, Status.FAILED, Status.CANCELLED]
    options: dict[str, Any] = {}
    failure_code: Words | None = None
    failure_detail: MemoryText | None = None
    graph_status: GraphStatus | None = None
    note: MemoryText | None = None
    mode: Mode | None = None
    mode_reason: MemoryText | None = None
    created_at: StoredTime
    started_at: StoredTime | None = None
    completed_at: StoredTime
    replays: Ordinal = 0
    replayed_at: StoredTime | None = None
    undone_at: StoredTime | None = None
    messages: Annotated[list[SaidMessage], FailFast(), Field(max_length=MOST_MESSAGES)] = []
    receipt: Annotated[list[ReceiptPart], FailFast(), Field(max_length=MOST_ROWS)] = []
    graph_receipt: Annotated[list[GraphReceiptPart], FailFast(), Field(max_length=MOST_ROWS)] = []


class MemoryState(RecordPart):
    """A state of a memory. `event_id` and `message_ordinal`: the source of its text."""

    text: Annotated[MemoryText, Field(min_length=1)]
    metadata: MergedMetadata = {}
    categories: Annotated[list[CategoryName], FailFast(), Field(max_length=MOST_CATEGORIES)] = []
    attributed_to: Role = Role.USER
    state: Literal["ACTIVE", "RETIRED"] = "ACTIVE"
    immutable: bool = False
    expiration_date: date | None = None
    version: Annotated[int, Field(ge=1, lt=2**31)] = 1
    event_id: UUID | None = None
    message_ordinal: Ordinal | None = None
    said_at: StoredTime
    valid_from: StoredTime
    kind: FactKind = FactKind.OTHER
    memory_type: MemoryType = MemoryType.SEMANTIC
    subject: Words | None = None
    attribute: Words | None = None
    speaker: Words | None = None
    cardinality: Cardinality | None = None
    confidence: float | None = None
    superseded_by: UUID | None = None
    appended: bool = False
    replaced_by: UUID | None = None
    pinned: bool = False
    edited_at: StoredTime | None = None
    created_at: StoredTime
    updated_at: StoredTime
    stored_at: StoredTime | None = None


class PastStatePart(MemoryState):
    """An earlier state, which held from `stored_at` until `replaced_at`."""

    id: UUID
    stored_at: StoredTime
    replaced_at: StoredTime


class HistoryPart(RecordPart):
    """A change of a memory: by an event (`event_id`), or by a person (`key_id`: the API key).

    `event` NOOP: a later statement was stored already, so this one was never current.
    """

    version: Annotated[int, Field(ge=1, lt=2**31)]
    event: Outcome
    old_text: MemoryText | None = None
    new_text: MemoryText | None = None
    metadata: MergedMetadata = {}
    expiration_date: date | None = None
    reason: MemoryText | None = None
    event_id: UUID | None = None
    message_ordinal: Ordinal | None = None
    undoes: UUID | None = None
    key_id: UUID | None = None
    said_at: StoredTime | None = None
    valid_from: StoredTime
    structure: Metadata | None = None
    created_at: StoredTime


class FeedbackEntry(RecordPart):
    """The opinion of a user on a memory."""

    feedback: Literal["POSITIVE", "NEGATIVE", "VERY_NEGATIVE"]
    reason: MemoryText | None = None
    created_at: StoredTime


class MemoryRecord(Scoped, MemoryState):
    """A memory. `copy`: a person gave it the text of another memory of the scope."""

    type: Literal["memory"]
    id: UUID
    copy_of_text: bool = False
    forgotten_at: StoredTime | None = None
    history: Annotated[list[HistoryPart], FailFast(), Field(max_length=MOST_ROWS)] = []
    past_states: Annotated[list[PastStatePart], FailFast(), Field(max_length=MOST_ROWS)] = []
    feedback: FeedbackEntry | None = None

    @model_validator(mode="after")
    def _has_each_version_once(self) -> Self:
        """Refuse versions that the next change of the memory would write again."""
        versions = [entry.version for entry in self.history]
        if len(set(versions)) < len(versions):
            raise ValueError("The history gives a version twice.")
        if max(versions, default=0) > self.version:
            raise ValueError("The history gives a later version than the memory has.")
        return self


class PastMerge(RecordPart):
    """An earlier merge of an entity, which held from `merged_at` until `replaced_at`.

    `merged_into`: key of the other entity.
    """

    merged_into: Name
    merge_reason: MemoryText | None = None
    merged_at: StoredTime | None = None
    replaced_at: StoredTime


class EntityRecord(Scoped):
    """A node of the graph. `merged_into`, `root`: keys of the entities it is merged into.

    `past_merges`: merges that a split has taken back, oldest first.
    """

    type: Literal["entity"]
    key: Name
    name: Name
    kind: Name
    plain_name: Words | None = None
    qualifier: Words | None = None
    mentions: Count = 1
    mentioned_at: StoredTime | None = None
    merged_into: Name | None = None
    root: Name | None = None
    merge_reason: MemoryText | None = None
    merged_at: StoredTime | None = None
    past_merges: Annotated[list[PastMerge], FailFast(), Field(max_length=MOST_ROWS)] = []
    created_at: StoredTime


class PastEnd(RecordPart):
    """An earlier end of a relation, which held from `expired_at` until `replaced_at`."""

    valid_to: StoredTime | None = None
    expired_at: StoredTime
    ended_by: UUID | None = None
    replaced_at: StoredTime


class RelationRecord(Scoped):
    """An edge of the graph, between the entities with these keys, with both its times."""

    type: Literal["relation"]
    id: UUID
    source: Name
    relation: Name
    destination: Name
    event_id: UUID
    message_ordinal: Ordinal | None = None
    memory_id: UUID | None = None
    ended_by: UUID | None = None
    valid_from: StoredTime
    valid_to: StoredTime | None = None
    created_at: StoredTime
    expired_at: StoredTime | None = None
    past_ends: Annotated[list[PastEnd], FailFast(), Field(max_length=MOST_ROWS)] = []


class SummaryRecord(Scoped):
    """A version of a summary. `until_event`: the last event that it has read."""

    type: Literal["summary"]
    version: Annotated[int, Field(ge=1, lt=2**31)]
    text: MemoryText
    until_event: UUID
    messages: Count
    model: Words
    prompt: Words
    created_at: StoredTime


class ConflictMember(RecordPart):
    """A statement, and the one it contradicts. It stands while the memory has this text."""

    memory_id: UUID
    against_id: UUID
    text_hash: Annotated[str, Field(pattern="^([0-9a-f]{2})*$", max_length=128)]


class ConflictRecord(Scoped):
    """Statements that cannot both hold, and the decision about them."""

    type: Literal["conflict"]
    id: UUID
    slot: Words
    event_id: UUID
    resolved_by: UUID | None = None
    resolution: Literal["ONE", "BOTH", "TEXT"] | None = None
    created_at: StoredTime
    resolved_at: StoredTime | None = None
    members: Annotated[list[ConflictMember], FailFast(), Field(max_length=MOST_ROWS)] = []

    @model_validator(mode="after")
    def _has_whole_decision(self) -> Self:
        if (self.resolved_by is None) != (self.resolution is None):
            raise ValueError("Give `resolved_by` and `resolution` together, or neither.")
        return self


class End(RecordPart):
    """Last line of a file: the number of lines by type."""

    type: Literal["end"]
    lines: dict[str, Count]


ScopedRecord = (
    EventRecord | MemoryRecord | EntityRecord | RelationRecord | SummaryRecord | ConflictRecord
)
ImportRecord = Annotated[ScopedRecord | OwnerRecord, Field(discriminator="type")]
Line = Annotated[ScopedRecord | OwnerRecord | Header | End, Field(discriminator="type")]
SCOPED: TypeAdapter[list[ScopedRecord]] = TypeAdapter(
    list[Annotated[ScopedRecord, Field(discriminator="type")]]
)
LINE: TypeAdapter[Any] = TypeAdapter(Line)
_IMPORTED: TypeAdapter[ScopedRecord | OwnerRecord] = TypeAdapter(ImportRecord)
# Faults that the error of an import names.
MOST_FAULTS = 5


def read_lines(lines: Sequence[Any]) -> list[ScopedRecord | OwnerRecord]:
    """The lines of an import. Errors: InvalidInput, with the places of the first faults."""
    try:
        return [_IMPORTED.validate_python(line) for line in lines]
    except ValidationError:
        faults = islice(_faults(lines), MOST_FAULTS)
        raise InvalidInput("; ".join(faults)) from None


def _faults(lines: Sequence[Any]) -> Iterator[str]:
    """The faults of the lines, one line after the other."""
    for number, line in enumerate(lines):
        try:
            _IMPORTED.validate_python(line)
        except ValidationError as error:
            for fault in error.errors(
                include_url=False, include_context=False, include_input=False
            ):
                place = ".".join(map(str, ("records", number, *fault["loc"])))
                yield f"{place}: {fault['msg'].removeprefix('Value error, ')}"
