"""Reindex: put the index the settings ask for beside the one that is served, or mend the latter.

    another store, embedder or buckets   built beside it ──► whole ──► served after a restart
    the one that is served               compared with the ledger; what it lacks is written again,
                                         what the ledger does not know is deleted

Both may be killed at any moment and run again: what is there already is not written twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from pipeline.ports import Embedder
from pipeline.reindex.ports import ReindexStores
from pipeline.reindex.store import FIRST, Progress
from pipeline.vector_index.index import VectorIndex
from pipeline.vector_index.projections import Projection

AT_ONCE = 200
# What the last pass may leave: it is owed to the new index, and caught up by those who serve it.
REST = 100

Tell = Callable[[Progress], None]


async def reindex(
    ledger: ReindexStores, indexes: Sequence[VectorIndex], embedder: Embedder, *, tell: Tell
) -> bool:
    """Make the index whole, in all its parts; True where it is another one than is served.

    Errors: Conflict while another reindex runs; StoreUnavailable, ModelUnavailable.
    """
    async with ledger.indexes.alone():
        if await ledger.indexes.live() in (None, indexes[0].name):
            await _mend(indexes, embedder, tell)
            return False
        await _build(ledger, indexes, embedder, tell)
        return True


async def _build(
    ledger: ReindexStores, indexes: Sequence[VectorIndex], embedder: Embedder, tell: Tell
) -> None:
    name = indexes[0].name
    if not await ledger.indexes.known(name):
        for index in indexes:
            await index.wipe()  # what a build given up long ago left there
    await ledger.indexes.begin(name, embedder.name)
    while await _pass(ledger, indexes, tell) > REST:
        pass
    await ledger.indexes.whole(name)


async def _pass(ledger: ReindexStores, indexes: Sequence[VectorIndex], tell: Tell) -> int:
    """Once through all there is; how many had to be written."""
    wrote, total = 0, await _total(indexes)
    for index in indexes:
        after = FIRST
        while owed := await index.source.unbuilt(after, limit=AT_ONCE):
            await _build_in(ledger, index, owed)
            wrote, after = wrote + len(owed), owed[-1].id
            done = await ledger.indexes.done()
            tell(Progress(done, max(done, total)))
    return wrote


async def _build_in(ledger: ReindexStores, index: VectorIndex, owed: Sequence[Projection]) -> None:
    fitting = await index.fitting(owed)
    await index.write(fitting)
    for anew in (False, True):
        some = [new for old, new in zip(owed, fitting, strict=True) if (new is not old) is anew]
        await ledger.indexes.built(some, anew=anew)


async def _mend(indexes: Sequence[VectorIndex], embedder: Embedder, tell: Tell) -> None:
    done, total = 0, await _total(indexes)
    for index in indexes:
        await index.source.owe_foreign(embedder.name)
        while await index.refit() or await index.catch_up():
            pass
        after, held = FIRST, Counter[str]()
        while page := await index.source.following(after, limit=AT_ONCE):
            lacking = await index.lacking(page)
            await index.write(lacking)
            held += index.counted(page)
            done, after = done + len(page), page[-1].id
            tell(Progress(done, max(done, total)))
        await index.drop_unknown(held)


async def _total(indexes: Sequence[VectorIndex]) -> int:
    return sum([await index.source.count() for index in indexes])
