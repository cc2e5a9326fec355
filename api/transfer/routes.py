"""Export and import of everything that is stored, as lines of JSON."""

from __future__ import annotations

from fastapi import APIRouter

from api.auth.tenant import Caller, Validity
from api.http.ids import EntityIds
from api.http.streams import LimitedStream, while_valid
from api.http.strict_json import StrictJson
from api.transfer import responses as transfer_responses
from api.transfer.requests import ImportRequest
from api.transfer.responses import ImportCountsJson, ImportedJson
from pipeline.ingest import imports

router = APIRouter(prefix="/v1/transfer", tags=["transfer"], route_class=StrictJson)

AS_FILE = {"Content-Disposition": 'attachment; filename="memlane.jsonl"'}


class JsonLines(LimitedStream):
    """Lines of JSON."""

    media_type = "application/x-ndjson"


@router.get("/export/", response_class=JsonLines)
async def export(call: Caller, ids: EntityIds, valid: Validity) -> JsonLines:
    """Everything that is stored of the scopes with these ids, or of the project, as lines of JSON:
    see [Export format](../reference/export-format.md).

    Temporary runs are left out, and events that have not ended. The file is one snapshot. If a read
    fails, or the key is revoked or expires, it ends early, without a line of type `end`. 429 while
    two others of the project run.
    """
    lines = while_valid(call.ledger.export.lines(call.project.id, ids), valid)
    return JsonLines(lines, place=call.api.exports.place(call.project.id), headers=AS_FILE)


@router.post("/import/")
async def import_lines(request: ImportRequest, call: Caller) -> ImportedJson | ImportCountsJson:
    """Store the lines of an export: one event for each of their scopes, with a receipt. Times stay;
    no language model is called.

    Lines that are stored already change nothing, so an import can be repeated. With `dry_run` the
    response counts what would be stored. Ids stay if the server has no other project. If it has,
    those of the project's own rows stay, and each other id is replaced by one that is derived from
    it and the project; with `new_ids` all ids are.
    """
    ledger, records = call.ledger, await request.lines()
    if request.dry_run:
        counts = await imports.count(
            records, call.project.id, new_ids=request.new_ids, ledger=ledger
        )
        return transfer_responses.counts(counts)
    for scope in imports.scopes_of(records, call.project.id):
        call.api.backpressure.admit(scope)
    events = await imports.accept_import(
        records,
        call.project.id,
        new_ids=request.new_ids,
        ledger=ledger,
        dispatcher=call.api.dispatcher,
    )
    return transfer_responses.accepted(events)
