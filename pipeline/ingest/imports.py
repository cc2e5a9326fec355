"""Imports: lines of an export, accepted as one event for each of their scopes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from uuid import UUID

import orjson
from pydantic import TypeAdapter, ValidationError

from pipeline.cpu_thread import beside_loop
from pipeline.domain.errors import InvalidInput
from pipeline.domain.events import AddOptions, EventType, Priority
from pipeline.domain.limits import Metadata
from pipeline.domain.scope import Scope
from pipeline.domain.tenants import ProjectId
from pipeline.ingest.add import add_messages
from pipeline.ingest.ports import IngestStores
from pipeline.lanes.batches import OPTIONS
from pipeline.ports import Dispatcher
from pipeline.transfer.planning import plan
from pipeline.transfer.records import EventRecord, OwnerRecord, ScopedRecord
from pipeline.transfer.renaming import Renaming, ids_in


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


# Options of the server's own events. A replay of the event would perform them.
NOT_OF_ADDS = ("question", "dry_run", "records")
_METADATA: TypeAdapter[Metadata] = TypeAdapter(Metadata)


def scopes_of(
    records: Sequence[ScopedRecord | OwnerRecord], project_id: ProjectId
) -> Sequence[Scope]:
    """The scopes of the lines, each once, in order."""
    scoped = (record for record in records if not isinstance(record, OwnerRecord))
    return list(dict.fromkeys(record.scope(project_id) for record in scoped))


async def count(
    records: Sequence[ScopedRecord | OwnerRecord],
    project_id: ProjectId,
    *,
    new_ids: bool,
    ledger: IngestStores,
) -> Counts:
    """Compute what an import of the lines would store. Errors: InvalidInput."""
    scopes = await _by_scope(records, project_id, new_ids=new_ids, ledger=ledger)
    owners = [record for record in records if isinstance(record, OwnerRecord)]
    counts = Counts(Counter(), Counter())
    for scope, lines in scopes.items():
        stored = await ledger.transfers.stored(scope, lines)
        planned = await beside_loop(partial(plan, lines, scope, stored))
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

    A repeated import stores nothing twice. Errors: InvalidInput; Conflict if a private run has
    ended; ProjectGone; Overloaded.
    """
    scopes = await _by_scope(records, project_id, new_ids=new_ids, ledger=ledger)
    if owners := [record for record in records if isinstance(record, OwnerRecord)]:
        await ledger.transfers.register(project_id, owners)
    accepted = []
    for scope, lines in scopes.items():
        text = await beside_loop(partial(_as_json, lines))
        options = AddOptions(infer=False, records=text, priority=Priority.LOW)
        event_id = await add_messages(
            scope, (), options, said_at=None, ledger=ledger, dispatcher=dispatcher
        )
        accepted.append(AcceptedImport(event_id, scope, len(lines)))
    return accepted


async def _by_scope(
    records: Sequence[ScopedRecord | OwnerRecord],
    project_id: ProjectId,
    *,
    new_ids: bool,
    ledger: IngestStores,
) -> Mapping[Scope, Sequence[ScopedRecord]]:
    """The lines of each scope, in order, with their ids in the project. Errors: InvalidInput."""
    lines = [record for record in records if not isinstance(record, OwnerRecord)]
    renaming = await _renaming(lines, project_id, new_ids=new_ids, ledger=ledger)
    return await beside_loop(partial(_grouped, lines, project_id, renaming))


async def _renaming(
    lines: Sequence[ScopedRecord], project_id: ProjectId, *, new_ids: bool, ledger: IngestStores
) -> Renaming | None:
    """The renaming of the lines' ids; None if all stay, because the server has no other project."""
    if new_ids:
        return Renaming(project_id)
    if not await ledger.transfers.has_other_projects(project_id):
        return None
    ids = await beside_loop(lambda: {id_ for line in lines for id_ in ids_in(line)})
    return Renaming(project_id, await ledger.transfers.own_ids(project_id, ids))


def _grouped(
    lines: Sequence[ScopedRecord], project_id: ProjectId, renaming: Renaming | None
) -> Mapping[Scope, Sequence[ScopedRecord]]:
    scopes: dict[Scope, list[ScopedRecord]] = {}
    for line in lines:
        if isinstance(line, EventRecord) and line.event_type == EventType.ADD:
            _check_options(line)
        renamed = line if renaming is None else renaming.applied(line)
        scopes.setdefault(line.scope(project_id), []).append(renamed)
    return scopes


def _as_json(lines: Sequence[ScopedRecord]) -> str:
    return orjson.dumps([line.model_dump(mode="json") for line in lines]).decode()


def _check_options(record: EventRecord) -> None:
    """Refuse options that an add cannot have. Errors: InvalidInput."""
    try:
        options = OPTIONS.validate_python(dict(record.options))
        _METADATA.validate_python(options.metadata)
    except ValidationError as error:
        place = ".".join(map(str, error.errors()[0]["loc"])) or "metadata"
        raise InvalidInput(f"Event {record.id}: the option {place} is not valid.") from None
    if given := [name for name in NOT_OF_ADDS if record.options.get(name) is not None]:
        raise InvalidInput(f"Event {record.id}: an add has no option {given[0]}.")
