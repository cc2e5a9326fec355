"""Ports: the interfaces of models, vector stores, webhooks and the broker.

Adapters implement them, and the fakes of the tests keep the same promises. The ledger is not a
port: it is always PostgreSQL (see pipeline/ledger).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, runtime_checkable
from uuid import UUID

from pipeline.domain.curation import CurationRequest, Proposal
from pipeline.domain.events import Instructions, Question
from pipeline.domain.facts import Decision, Fact, Neighbour
from pipeline.domain.graph.values import GraphChanges, RelationRequest
from pipeline.domain.lanes import Hint
from pipeline.domain.messages import Message, SourcedMessage
from pipeline.domain.summaries import SummaryUpdate
from pipeline.domain.tenants import ProjectId
from pipeline.domain.usage import Answer, Usage
from pipeline.domain.vectors import Vector


@dataclass(frozen=True, slots=True)
class ExtractionRequest:
    """Messages to extract facts from.

    `context`: earlier messages, oldest first; they explain pronouns and are no source of facts.
    `summary`: the summary of the conversation before them, likewise. `procedural`: one fact of type
    PROCEDURAL sums up the messages, which are an agent's work.
    """

    messages: Sequence[SourcedMessage]
    context: Sequence[Message] = ()
    instructions: Instructions = field(default_factory=Instructions)
    procedural: bool = False
    summary: str | None = None


class MemoryModel(Protocol):
    """A language model that answers five questions, with at most one call for each, and one repair.

    Errors: ModelUnavailable (retry later), ModelRejected, MalformedAnswer (after one repair).
    """

    @property
    def name(self) -> str:
        """Name as configured, such as `openai/gpt-4o-mini` or `local/rules`, for receipts."""

    async def extract(self, request: ExtractionRequest) -> Answer[tuple[Fact, ...]]:
        """Facts worth remembering that the messages state; none for small talk and questions."""

    async def decide(
        self, facts: Sequence[Fact], neighbours: Sequence[Neighbour], instructions: Instructions
    ) -> Answer[tuple[Decision, ...]]:
        """Decisions on each fact, in order; targets only from `neighbours`.

        A fact has one decision, or several changes or NOOPs, each with another target.
        Facts are in the order of their messages: if two contradict each other, the later one
        counts.
        """

    async def relate(self, request: RelationRequest) -> Answer[GraphChanges]:
        """Entities and relations that the facts state, and the current relations that they end."""

    async def distil(
        self, question: Question, memories: Sequence[str]
    ) -> Answer[Mapping[str, Any]]:
        """An object of the question's shape, filled from the memories (oldest first).

        For a profile each property is an object: its `value`, and in `memories` the numbers of the
        memories that state it, from 1.
        """

    async def curate(self, request: CurationRequest) -> Answer[tuple[Proposal, ...]]:
        """Proposals to delete, combine or update memories; each memory in at most one."""

    async def summarize(self, request: SummaryUpdate) -> Answer[str]:
        """The summary with the messages merged into it; it keeps their dates."""

    async def close(self) -> None:
        """Release connections, if any."""


@dataclass(frozen=True, slots=True)
class Completion:
    """Text of a chat completion, and its tokens and cost."""

    text: str
    usage: Usage


@dataclass(frozen=True, slots=True)
class ChatTurn:
    """One message of a chat. `role`: `system` or `user`."""

    role: str
    content: str


class LLM(Protocol):
    """Chat completions of one model; transient errors are retried within the call."""

    @property
    def name(self) -> str:
        """Name as configured, such as `openai/gpt-4o-mini`."""

    async def complete(
        self, turns: Sequence[ChatTurn], *, schema_name: str, schema: Mapping[str, object]
    ) -> Completion:
        """The model's text for a request for one JSON object of `schema`. It may not be valid JSON.

        Errors: ModelUnavailable, ModelRejected.
        """

    async def close(self) -> None:
        """Release connections, if any."""


class Embedder(Protocol):
    """A model that turns texts into vectors."""

    @property
    def name(self) -> str:
        """Name as configured; an index built with one model refuses the vectors of another."""

    async def dimensions(self) -> int:
        """Length of every vector. If the model does not declare it, one call measures it."""

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """One vector of length 1 for each text, in order.

        Errors: ModelUnavailable, ModelRejected.
        """

    async def close(self) -> None:
        """Release connections, if any."""


class Reranker(Protocol):
    """A model that rates how well texts answer a question."""

    @property
    def name(self) -> str:
        """Name as configured, such as `cohere/rerank-v3.5`."""

    async def rerank(self, question: str, texts: Sequence[str]) -> list[float]:
        """One score for each text, in order: from 0 (no answer) to 1.

        Returns within a few seconds, because a client waits for the search.
        Errors: ModelUnavailable, ModelRejected, MalformedAnswer.
        """


@dataclass(frozen=True, slots=True)
class VectorRecord:
    """A vector and its id. `payload`: flat ids and numbers to filter by, never text."""

    id: UUID
    vector: Vector = field(compare=False)  # comparing arrays gives no single truth value
    payload: Mapping[str, str | int]


class VectorHit(NamedTuple):
    """One search result. `similarity`: the cosine, from -1 to 1; larger is nearer."""

    id: UUID
    similarity: float


@dataclass(frozen=True, slots=True)
class CollectionInfo:
    """Facts about a collection: number of records, their dimensions and the embedder's name."""

    name: str
    count: int
    dimensions: int
    embedder: str


class VectorStore(Protocol):
    """A vector index that can be rebuilt. Upserts are idempotent; the next search sees a write.

    Errors: StoreUnavailable if the server does not answer or fails; CollectionMissing for a name
    that was never created, or was deleted.
    """

    @property
    def name(self) -> str:
        """Name as in MEMLANE_VECTORS."""

    def reach(self, records: int) -> int:
        """Least `limit` of a search without a filter that finds the ten nearest well enough.

        `records`: number of records in the collection.
        """

    async def ping(self) -> None:
        """Check that the server answers. Errors: StoreUnavailable."""

    async def close(self) -> None:
        """Release connections."""

    async def create_col(self, name: str, *, dimensions: int, embedder: str) -> None:
        """Create the collection unless it exists.

        Errors: InvalidInput if it exists with another embedder.
        """

    async def insert(self, name: str, records: Sequence[VectorRecord]) -> None:
        """Insert the records; those whose ids exist are replaced."""

    async def search(
        self, name: str, vectors: Sequence[Vector], *, limit: int, where: Mapping[str, str | int]
    ) -> Sequence[Sequence[VectorHit]]:
        """The `limit` nearest records of each vector, nearest first.

        `where`: only records whose payload has these values are searched.
        """

    async def update(self, name: str, records: Sequence[VectorRecord]) -> None:
        """Replace the records; those whose ids are missing are inserted."""

    async def delete(self, name: str, ids: Sequence[UUID]) -> None:
        """Delete the records with these ids; unknown ids are ignored."""

    async def get(self, name: str, ids: Sequence[UUID]) -> list[VectorRecord]:
        """The records with these ids, in any order; unknown ids are left out.

        Their payloads have no entity ids if the store keeps digests of these.
        """

    async def differing(self, name: str, records: Sequence[VectorRecord]) -> list[UUID]:
        """Ids of the records that are missing, or stored in another form or with another payload.

        Vectors are not compared.
        """

    async def list_cols(self) -> list[str]:
        """Names of all collections."""

    async def delete_col(self, name: str) -> None:
        """Delete the collection; nothing happens if it does not exist."""

    async def col_info(self, name: str) -> CollectionInfo | None:
        """Facts about the collection, or None if it does not exist."""

    async def list(
        self, name: str, *, where: Mapping[str, str | int], limit: int
    ) -> list[VectorRecord]:
        """Up to `limit` records whose payload has the values of `where`, as `get`."""

    async def reset(self) -> None:
        """Delete all collections of this index."""


@runtime_checkable
class CompactableStore(VectorStore, Protocol):
    """A vector index in which deleted records keep their space until a collection is replaced."""

    async def mirror(self, name: str, copy: str) -> None:
        """Bring another collection to the state of this one; it is created if it is missing.

        Records are compared by their ids and the `version` in their payloads.
        """

    async def replace(self, name: str, copy: str, *, former: str) -> None:
        """Give the copy the name of a collection, which is deleted.

        `former`: the name of the latter until then. At any moment the name stands for one of the
        two, except for milliseconds.
        """


class WebhookSender(Protocol):
    """HTTP client of webhook deliveries."""

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> int:
        """Send a POST request and return the status of the response. Redirects are not followed.

        Errors: Undeliverable if the address is not allowed or not reachable, or if no response
        arrives in time.
        """

    async def close(self) -> None:
        """Close the connections."""


class Dispatcher(Protocol):
    """Publisher of hints to workers. A lost hint delays an event, but never loses it."""

    def kick(self, hint: Hint, project_id: ProjectId) -> None:
        """Publish a hint for the lane's next stage, into the queue that is fair to other projects.

        Never raises and never blocks for long.
        """
