"""import_lines: lines of an export -> rows of their scope. No model but the embedder is called.

It runs in its lane like an add. Rows that are stored already stay as they are, so a repeated import
changes nothing.
"""

from __future__ import annotations

import orjson

from pipeline.cpu_thread import beside_loop
from pipeline.domain.lanes import Batch
from pipeline.domain.stage_outputs import Extracted, dump
from pipeline.ingest.stages import Finished
from pipeline.lanes.import_effects import ImportEffects
from pipeline.ports import Embedder
from pipeline.transfer.planning import plan
from pipeline.transfer.records import SCOPED
from pipeline.transfer.store import Transfers


async def import_lines(batch: Batch, *, embedder: Embedder, transfers: Transfers) -> Finished:
    """Plan the rows of the batch's lines, and embed the texts of new memories and their states."""
    lines = batch.options.records
    assert lines is not None  # see steps.perform
    records = await beside_loop(lambda: SCOPED.validate_python(orjson.loads(lines)))
    stored = await transfers.stored(batch.scope, records)
    planned = await beside_loop(lambda: plan(records, batch.scope, stored))
    vectors = await embedder.embed(list(planned.texts)) if planned.texts else []
    everything = tuple(range(len(batch.events)))
    effects = ImportEffects(
        [event.id for event in batch.events],
        planned.rows,
        planned.receipt,
        vectors,
        embedder.name,
    )
    output = Extracted((), planned.note, left_out=everything)
    return Finished(dump(output), next_stage=None, effects=effects)
