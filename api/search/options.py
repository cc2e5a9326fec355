"""Options of a search besides its query: selection, additions and omissions."""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import UUID

from pydantic import BaseModel, Field

from api.http.body import LocalMoment
from api.http.limits import Fields


class SearchOptions(BaseModel):
    """Options of a search: selection, additions and omissions."""

    rerank: bool = Field(
        default=False,
        description=(
            "Let the configured reranker order the best candidates; `reranked` says whether it "
            "did, `not_reranked` why not."
        ),
    )
    keyword_search: bool = Field(
        default=False,
        description="Also what holds a word of the query, however far below the threshold.",
    )
    filter_memories: bool = Field(
        default=False, description="Only memories that account for the question; possibly none."
    )
    enable_graph: bool | None = Field(default=None, description="False: no `relations`.")
    fields: Fields | None = Field(
        default=None, description="Keys of a result to answer with; `metadata.x` is one key of it."
    )
    reference_date: LocalMoment = Field(
        default=None,
        description='When the question is asked, with its offset, for "last week"; default: now.',
    )
    include: frozenset[Literal["facts", "turns"]] | None = Field(
        default=None,
        min_length=1,
        description=(
            "Facts are memories; turns are messages as they were said, pending ones too. "
            'Default: ["facts"]; both with `max_tokens`.'
        ),
    )
    context_turns: int = Field(
        default=0, ge=0, le=10, description="Also that many turns before and after each result."
    )
    max_tokens: int | None = Field(
        default=None,
        ge=1,
        le=200_000,
        description="Also `context`: the best that fit, as dated lines.",
    )
    explain: bool | Annotated[list[UUID], Field(max_length=100)] = Field(
        default=False,
        description="Also the verdict on these ids, or (true) on the best that were cut.",
    )

    def wants(self, channel: Literal["facts", "turns"]) -> bool:
        """True if the search covers this channel."""
        if self.include is not None:
            return channel in self.include
        return channel == "facts" or self.max_tokens is not None

    def named(self) -> list[UUID] | None:
        """The ids to explain; None for the best candidates that were cut."""
        if isinstance(self.explain, bool):
            return None if self.explain else []
        return self.explain
