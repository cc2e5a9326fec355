"""What the pipeline asks of the outside world: adapters keep these promises, fakes the same ones.

The ledger is not a port: it is the one truth, PostgreSQL everywhere (see pipeline/ledger).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol
from uuid import UUID

from pipeline.domain.events import Instructions, Question
from pipeline.domain.facts import Decision, Fact, Neighbour
from pipeline.domain.graph import GraphChanges, StoredRelation
from pipeline.domain.lanes import Wake
from pipeline.domain.messages import Message, SourcedMessage
from pipeline.domain.tenants import ProjectId
from pipeline.domain.usage import Answer, Usage
from pipeline.domain.vectors import Vector


@dataclass(frozen=True, slots=True)
class ExtractionRequest:
    """`context` is what was said before (oldest first), for pronouns only: no facts from it."""

    messages: Sequence[SourcedMessage]
    context: Sequence[Message] = ()
    instructions: Instructions = field(default_factory=Instructions)


class MemoryModel(Protocol):
    """Everything a language model is asked: four questions, at most one call each.

    Errors: ModelUnavailable (try again later), ModelRejected, MalformedAnswer (after one repair).
    """

    @property
    def name(self) -> str:
        """As configured, e.g. `openai/gpt-4o-mini` or `local/rules`: receipts carry it."""
        ...

    async def extract(self, request: ExtractionRequest) -> Answer[tuple[Fact, ...]]:
        """The facts worth keeping that the messages state; none for small talk and questions."""
        ...

    async def decide(
        self, facts: Sequence[Fact], neighbours: Sequence[Neighbour], instructions: Instructions
    ) -> Answer[tuple[Decision, ...]]:
        """Exactly one decision a fact, in the facts' order; targets only from `neighbours`.

        Facts are in the order they were said: of two that contradict each other the later holds.
        """
        ...

    async def relate(
        self, facts: Sequence[str], current: Sequence[StoredRelation]
    ) -> Answer[GraphChanges]:
        """Typed entities and relations the facts state, and which current relations they end."""
        ...

    async def distil(
        self, question: Question, memories: Sequence[str]
    ) -> Answer[Mapping[str, Any]]:
        """An object of the question's shape from what the memories, oldest first, state."""
        ...

    async def close(self) -> None:
        """Release connections; nothing where there are none."""
        ...


@dataclass(frozen=True, slots=True)
class Completion:
    text: str
    usage: Usage


@dataclass(frozen=True, slots=True)
class ChatTurn:
    role: str
    content: str


class LLM(Protocol):
    """One chat completion against one provider, with in-call retries for what seconds can mend."""

    @property
    def name(self) -> str: ...

    async def complete(
        self, turns: Sequence[ChatTurn], *, schema_name: str, schema: Mapping[str, object]
    ) -> Completion:
        """The model's text, asked to be one JSON object of `schema`. Errors: as MemoryModel."""
        ...

    async def close(self) -> None:
        """Release connections; nothing where there are none."""
        ...


class Embedder(Protocol):
    @property
    def name(self) -> str:
        """Model name: an index built with one model refuses the vectors of another."""
        ...

    async def dimensions(self) -> int:
        """Length of every vector; measured once where the model does not say."""
        ...

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """One unit-length vector a text, in order. Errors: ModelUnavailable, ModelRejected."""
        ...

    async def close(self) -> None:
        """Release connections; nothing where there are none."""
        ...


class Reranker(Protocol):
    @property
    def name(self) -> str: ...

    async def rerank(self, question: str, texts: Sequence[str]) -> list[float]:
        """How well each text answers the question, 0..1, in the texts' order.

        Within a few seconds, for somebody waits. Errors: ModelUnavailable, ModelRejected,
        MalformedAnswer.
        """
        ...


@dataclass(frozen=True, slots=True)
class VectorRecord:
    """`payload` holds flat ids and numbers to filter by, never text."""

    id: UUID
    vector: Vector = field(compare=False)  # an array has no single truth value
    payload: Mapping[str, str | int]


class VectorHit(NamedTuple):
    """`similarity` is the cosine, -1..1, larger is nearer."""

    id: UUID
    similarity: float


@dataclass(frozen=True, slots=True)
class CollectionInfo:
    name: str
    count: int
    dimensions: int
    embedder: str


class VectorStore(Protocol):
    """A rebuildable index. Upserts are idempotent; a write is visible to the next search.

    Errors: StoreUnavailable whenever the server cannot answer; CollectionMissing for a name that
    was never created, or was wiped.
    """

    @property
    def name(self) -> str:
        """As MEMLANE_VECTORS names it."""
        ...

    async def ping(self) -> None:
        """Return where it answers. Errors: StoreUnavailable."""
        ...

    async def close(self) -> None: ...

    async def create_col(self, name: str, *, dimensions: int, embedder: str) -> None:
        """Create it, or do nothing where it exists with the same model; else InvalidInput."""
        ...

    async def insert(self, name: str, records: Sequence[VectorRecord]) -> None: ...

    async def search(
        self, name: str, vectors: Sequence[Vector], *, limit: int, where: Mapping[str, str | int]
    ) -> Sequence[Sequence[VectorHit]]:
        """For each vector the nearest records whose payload equals `where` in every key, nearest
        first.
        """
        ...

    async def update(self, name: str, records: Sequence[VectorRecord]) -> None: ...

    async def delete(self, name: str, ids: Sequence[UUID]) -> None: ...

    async def get(self, name: str, ids: Sequence[UUID]) -> list[VectorRecord]: ...

    async def list_cols(self) -> list[str]: ...

    async def delete_col(self, name: str) -> None: ...

    async def col_info(self, name: str) -> CollectionInfo | None: ...

    async def list(
        self, name: str, *, where: Mapping[str, str | int], limit: int
    ) -> list[VectorRecord]: ...

    async def reset(self) -> None:
        """Drop every collection of this index."""
        ...


class WebhookSender(Protocol):
    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> int:
        """The status of the receiver's answer, whatever it is; redirects are not followed.

        Errors: Undeliverable where there is no answer in time, or the address is not allowed.
        """
        ...


class Dispatcher(Protocol):
    """Hints to workers. A lost hint costs time, never an event: the ledger knows what is due."""

    def kick(self, wake: Wake, project_id: ProjectId) -> None:
        """Publish the task of a lane's next stage, in fairness to the lanes of other projects.

        Never raises, never blocks for long.
        """
        ...
