"""Reindex: build the index of the settings next to the live one, or repair the live one.

    another store, embedder or buckets   built next to it ──► WHOLE ──► LIVE after a restart
    the live one                         compared with the ledger: missing records are written,
                                         records unknown to the ledger are deleted

Both can be killed at any moment and run again: existing records are not written twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import structlog

from pipeline.domain.errors import InvalidInput, ModelRejected
from pipeline.ports import Embedder
from pipeline.reindex.store import FIRST, Indexes, ReindexProgress
from pipeline.vector_index.index import VectorIndex
from pipeline.vector_index.projections import Projection

log = structlog.get_logger()

AT_ONCE = 200
# Number of rows that the last pass may leave: they are stale in the new index, and written by the
# processes that use it.
REST = 100
# A text that every embedder takes, and the error if this one does not.
PLAIN = "I like tea."
REFUSES_ALL = (
    "The embedder refuses all texts, so no index is built. Check MEMLANE_EMBEDDER__MODEL with"
    " `memlane doctor`."
)

Tell = Callable[[ReindexProgress], None]


async def reindex(
    states: Indexes, indexes: Sequence[VectorIndex], embedder: Embedder, *, tell: Tell
) -> bool:
    """Make the index complete, with all its parts. True if it is not the live index.

    A text that the embedder refuses is left out: it is found by words. Errors: Conflict while
    another reindex runs; InvalidInput if the embedder refuses all texts; StoreUnavailable,
    ModelUnavailable.
    """
    async with states.alone():
        if await states.live() in (None, indexes[0].name):
            await _mend(indexes, embedder, tell)
            return False
        await _build(states, indexes, embedder, tell)
        return True


async def _build(
    states: Indexes, indexes: Sequence[VectorIndex], embedder: Embedder, tell: Tell
) -> None:
    """Build the index beside the live one. Errors: InvalidInput if all texts are refused."""
    name = indexes[0].name
    try:
        await embedder.embed([PLAIN])
    except ModelRejected:
        raise InvalidInput(REFUSES_ALL) from None
    if not await states.known(name):
        for index in indexes:
            await index.wipe()  # remains of an abandoned build
    await states.begin(name, embedder.name)
    while await _pass(states, indexes, tell) > REST:
        pass
    await states.whole(name)


async def _pass(states: Indexes, indexes: Sequence[VectorIndex], tell: Tell) -> int:
    """Write all missing rows once. Returns their number."""
    wrote, total = 0, await _total(indexes)
    for index in indexes:
        after = FIRST
        while unbuilt := await index.source.unbuilt(after, limit=AT_ONCE):
            await _build_in(states, index, unbuilt)
            wrote, after = wrote + len(unbuilt), unbuilt[-1].id
            done = await states.done()
            tell(ReindexProgress(done, max(done, total)))
    return wrote


async def _build_in(states: Indexes, index: VectorIndex, unbuilt: Sequence[Projection]) -> None:
    fitting = await index.fitting(unbuilt)
    pairs = list(zip(unbuilt, fitting, strict=True))
    refused = {new.id for old, new in pairs if old.wanted and not new.wanted}
    if refused:
        log.warning("texts_refused", count=len(refused))
    await index.write(fitting)
    for reembedded in (False, True):
        some = [
            new for old, new in pairs if (new is not old and new.id not in refused) is reembedded
        ]
        await states.built(some, reembedded=reembedded)


async def _mend(indexes: Sequence[VectorIndex], embedder: Embedder, tell: Tell) -> None:
    """Complete the live index: embed foreign rows, write missing records, delete unknown ones."""
    done, total = 0, await _total(indexes)
    for index in indexes:
        index.mending = True
        await index.source.mark_foreign_stale(embedder.name)
        while await index.refit() or await index.catch_up():
            pass
        after, expected = FIRST, Counter[str]()
        while page := await index.source.following(after, limit=AT_ONCE):
            lacking = await index.lacking(page)
            await index.write(lacking)
            expected += index.counted(page)
            done, after = done + len(page), page[-1].id
            tell(ReindexProgress(done, max(done, total)))
        await index.drop_unknown(expected)
        await index.large.wipe()  # filled again when they are read


async def _total(indexes: Sequence[VectorIndex]) -> int:
    return sum([await index.source.count() for index in indexes])
