"""Identity of entities on planted pairs, with the vectors of local/minilm."""

from __future__ import annotations

from uuid import UUID

import pytest

from pipeline.adapters.embedder_minilm import MiniLM
from pipeline.domain.graph.entity_resolution import SIMILAR, may_be_same
from pipeline.domain.graph.values import Node
from pipeline.text.names import plain_name
from tests.eval.graphs.names import NamePair, pairs

# Least share of the aliases that are merged; names of one thing that differ more stay two nodes,
# until a person or a fact ("also known as") merges them.
LEAST = 0.45


@pytest.fixture(scope="module")
def embedder() -> MiniLM:
    return MiniLM()


async def merged(embedder: MiniLM, pair: NamePair) -> bool:
    """True if the two names are one node."""
    kind, first, second = pair
    plain, other = plain_name(first), plain_name(second)
    if plain == other:
        return True
    node = Node(UUID(int=1), second, other, other, kind)
    if not may_be_same(plain, node, kind):
        return False
    vectors = await embedder.embed([plain, other])
    return float(vectors[0] @ vectors[1]) >= SIMILAR


async def test_no_look_alike_is_merged_and_most_plain_aliases_are(embedder: MiniLM) -> None:
    aliases, look_alikes = pairs("aliases"), pairs("look_alikes")
    assert min(len(aliases), len(look_alikes)) >= 40
    assert [pair for pair in look_alikes if await merged(embedder, pair)] == []
    results = [await merged(embedder, pair) for pair in aliases]
    assert sum(results) >= LEAST * len(results)
