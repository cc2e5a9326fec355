"""Reindex: put the index the settings ask for beside the one that is served, or mend the latter.

    another store, embedder or buckets   built beside it ──► whole ──► served after a restart
    the one that is served               compared with the ledger; what it lacks is written again

Both may be killed at any moment and run again: what is there already is not written twice.
"""

from __future__ import annotations

from collections.abc import Callable

from pipeline.ledger import Ledger
from pipeline.ledger.indexes import FIRST, Progress
from pipeline.ports import Embedder
from pipeline.vectors import VectorIndex

AT_ONCE = 200
# What the last pass may leave: it is owed to the new index, and caught up by those who serve it.
REST = 100

Tell = Callable[[Progress], None]


async def reindex(ledger: Ledger, index: VectorIndex, embedder: Embedder, *, tell: Tell) -> bool:
    """Make the index whole; True where it is another one than is served.

    Errors: Conflict while another reindex runs; StoreUnavailable, ModelUnavailable.
    """
    async with ledger.indexes.alone():
        if await ledger.indexes.live() in (None, index.name):
            await _mend(ledger, index, embedder, tell)
            return False
        await _build(ledger, index, embedder, tell)
        return True


async def _build(ledger: Ledger, index: VectorIndex, embedder: Embedder, tell: Tell) -> None:
    if not await ledger.indexes.known(index.name):
        await index.wipe()  # what a build given up long ago left there
    await ledger.indexes.begin(index.name, embedder.name)
    while await _pass(ledger, index, tell) > REST:
        pass
    await ledger.indexes.whole(index.name)


async def _pass(ledger: Ledger, index: VectorIndex, tell: Tell) -> int:
    """Once through all memories; how many had to be written."""
    wrote, after = 0, FIRST
    while owed := await ledger.indexes.unbuilt(after=after, limit=AT_ONCE):
        fitting = await index.fitting(owed)
        await index.write(fitting)
        for anew in (False, True):
            some = [new for old, new in zip(owed, fitting, strict=True) if (new is not old) is anew]
            await ledger.indexes.built(some, anew=anew)
        wrote, after = wrote + len(owed), owed[-1].memory.id
        tell(await ledger.indexes.progress())
    return wrote


async def _mend(ledger: Ledger, index: VectorIndex, embedder: Embedder, tell: Tell) -> None:
    await ledger.memories.owe_foreign(embedder.name)
    while await index.refit():
        pass
    done, after, total = 0, FIRST, (await ledger.indexes.progress()).total
    while page := await ledger.memories.following(after, limit=AT_ONCE):
        lacking = await index.lacking(page)
        await index.write(lacking)
        await ledger.memories.projected(lacking, index=index.name)
        done, after = done + len(page), page[-1].memory.id
        tell(Progress(done, max(done, total)))
