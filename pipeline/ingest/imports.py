"""Imports: lines of an export, accepted as one event for each of their scopes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

import orjson
from pydantic import ValidationError

from pipeline.domain.errors import Conflict, InvalidInput
from pipeline.domain.events import AddOptions, EventType, Priority
from pipeline.domain.scope import Scope
from pipeline.domain.tenants import ProjectId
from pipeline.ingest.add import add_messages
from pipeline.ingest.ports import IngestStores
from pipeline.lanes.batches import OPTIONS
from pipeline.ports import Dispatcher
from pipeline.transfer.planning import plan
from pipeline.transfer.records import EventRecord, OwnerRecord, ScopedRecord
from pipeline.transfer.renaming import with_new_ids


@dataclass(frozen=True, slots=True)
class AcceptedImport:
    """An event of an import, with its scope and number of lines."""

    event_id: UUID
    scope: Scope
    lines: int


@dataclass(frozen=True, slots=True)
class Counts:
    """Numbers of lines by type: those that an import stores, and those that are stored already."""

    new: Counter[str]
    stored: Counter[str]


def by_scope(
    records: Sequence[ScopedRecord | OwnerRecord], project_id: ProjectId, *, new_ids: bool
) -> dict[Scope, list[ScopedRecord]]:
    """The lines of each scope, in order. Errors: InvalidInput."""
    scopes: dict[Scope, list[ScopedRecord]] = {}
    for record in records:
        if isinstance(record, OwnerRecord):
            continue
        if isinstance(record, EventRecord) and record.event_type == EventType.ADD:
            _check_options(record)
        line = with_new_ids(record, project_id) if new_ids else record
        scopes.setdefault(line.scope(project_id), []).append(line)
    return scopes


async def count(
    records: Sequence[ScopedRecord | OwnerRecord],
    project_id: ProjectId,
    *,
    new_ids: bool,
    ledger: IngestStores,
) -> Counts:
    """Compute what an import of the lines would store. Errors: InvalidInput, Conflict."""
    scopes = by_scope(records, project_id, new_ids=new_ids)
    await _refuse_foreign(scopes, project_id, ledger)
    owners = [record for record in records if isinstance(record, OwnerRecord)]
    counts = Counts(Counter(), Counter())
    for scope, lines in scopes.items():
        planned = plan(lines, scope, await ledger.transfers.stored(scope, lines))
        counts.new.update(planned.new)
        counts.stored.update(planned.stored)
    known = await ledger.transfers.registered(project_id, owners)
    counts.new.update({"owner": len(owners) - known} if len(owners) > known else {})
    counts.stored.update({"owner": known} if known else {})
    return counts


async def accept_import(
    records: Sequence[ScopedRecord | OwnerRecord],
    project_id: ProjectId,
    *,
    new_ids: bool,
    ledger: IngestStores,
    dispatcher: Dispatcher,
) -> list[AcceptedImport]:
    """Store the lines durably, in one event for each scope, and register the owners.

    A repeated import stores nothing twice. Errors: InvalidInput; Conflict if another project has an
    id, or a private run has ended; ProjectGone; Overloaded.
    """
    scopes = by_scope(records, project_id, new_ids=new_ids)
    await _refuse_foreign(scopes, project_id, ledger)
    if owners := [record for record in records if isinstance(record, OwnerRecord)]:
        await ledger.transfers.register(project_id, owners)
    accepted = []
    for scope, lines in scopes.items():
        text = orjson.dumps([line.model_dump(mode="json") for line in lines]).decode()
        options = AddOptions(infer=False, records=text, priority=Priority.LOW)
        event_id = await add_messages(
            scope, (), options, said_at=None, ledger=ledger, dispatcher=dispatcher
        )
        accepted.append(AcceptedImport(event_id, scope, len(lines)))
    return accepted


def _check_options(record: EventRecord) -> None:
    try:
        OPTIONS.validate_python(dict(record.options))
    except ValidationError as error:
        place = ".".join(map(str, error.errors()[0]["loc"]))
        raise InvalidInput(f"Event {record.id}: the option {place} is not valid.") from None


async def _refuse_foreign(
    scopes: dict[Scope, list[ScopedRecord]], project_id: ProjectId, ledger: IngestStores
) -> None:
    lines = [line for group in scopes.values() for line in group]
    if await ledger.transfers.foreign(project_id, lines):
        raise Conflict(
            "Some of these ids are in use outside of this project. Import with new_ids: each id is"
            " then replaced by one that is derived from it and the project."
        )
