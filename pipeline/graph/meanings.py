"""Meanings: the relations that the words of a question mean although they are none of their names.

    "Where did Ana's sister study?"     study: graduated_from, as the facts "… studied at …" say
    "Who is Ana's landlord?"            landlord: rents_from, by the embedder

First the facts of the walk: a word that they have means the relations that they state. A word that
no fact has is compared with the names of the relations by the embedder, whose cache keeps both.
Only similarities beyond the mean of all names count, because embedders differ in their scale.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from uuid import UUID

import numpy as np
import structlog

from pipeline.domain.errors import StageError
from pipeline.graph.chains import NOTHING_NEAR, Near, Word
from pipeline.graph.views import Walk
from pipeline.ports import Embedder

log = structlog.get_logger()

# Maximum number of phrases and of names of relations that are embedded for a search.
MOST_PHRASES, MOST_NAMES = 4, 32
# If the embedder takes longer, words are compared as they are written.
LONGEST_S = 1.0
# Distances from the mean of the names from which on a similarity counts, and counts in full.
NEAR, FULL = 0.1, 0.4


def by_facts(walk: Walk, words: Sequence[Word], spoken: Mapping[UUID, frozenset[str]]) -> Near:
    """For each word the relations that it means, 0..1: their shares of the facts with the word.

    `spoken`: the terms of the memories that state the relations.
    """
    stated = {
        (relation.memory_id, relation.relation)
        for path in walk.paths
        for relation in (*path.via, path.relation)
        if relation.memory_id
    }
    near: dict[tuple[str, str], float] = {}
    for word in words:
        counts = Counter(
            name
            for memory_id, name in stated
            if not word.terms.isdisjoint(spoken.get(memory_id, ()))
        )
        total = counts.total()
        near |= {(name, word.text): count / total for name, count in counts.items()}
    return near


async def by_embedder(walk: Walk, phrases: Sequence[Sequence[Word]], embedder: Embedder) -> Near:
    """For each phrase the relations that it means by their names, 0..1.

    Empty if the embedder refuses the texts, or does not answer in time.
    """
    phrases = phrases[:MOST_PHRASES]
    relations = list(dict.fromkeys(path.relation.relation for path in walk.paths))[:MOST_NAMES]
    texts = [name.replace("_", " ") for name in relations]
    texts += [" ".join(word.text for word in phrase) for phrase in phrases]
    if not phrases or not relations:
        return NOTHING_NEAR
    try:
        async with asyncio.timeout(LONGEST_S):
            vectors = np.stack(await embedder.embed(texts))
    except (StageError, TimeoutError):
        log.warning("search_without_meanings_of_relations", model=embedder.name)
        return NOTHING_NEAR
    cosines = vectors[: len(relations)] @ vectors[len(relations) :].T
    beyond = cosines - cosines.mean(axis=0)
    values = np.clip((beyond - NEAR) / (FULL - NEAR), 0.0, 1.0)
    return {
        (relation, word.text): float(values[row, column])
        for row, relation in enumerate(relations)
        for column, phrase in enumerate(phrases)
        for word in phrase
        if values[row, column] > 0
    }
