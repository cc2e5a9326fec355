"""Query: a search with its options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from pipeline.domain.decay import Decay
from pipeline.domain.filters import Filter
from pipeline.domain.tenants import ProjectId
from pipeline.domain.versions import CURRENT, Snapshot
from pipeline.search.ranking.calibration import IDENTITY, Scale
from pipeline.search.weights import Weights
from pipeline.search.where import Where
from pipeline.text import terms
from pipeline.text.questions import content_words, has_known_question_words, is_latin


@dataclass(frozen=True, slots=True)
class Query:
    """A search.

    `threshold` is compared with the semantic score (0..1), which is the cosine on the embedder's
    `scale`; 0 excludes nothing.

    `keyword_search` also returns passages with a word of the query; `filter_memories` removes those
    that do not account for the query (see ranking/evidence); `rerank` uses the reranker.
    `default_cut` leaves out results without any sign of an answer (see ranking/cutoff); the three
    options above, and a question with earlier turns, turn it off.

    `now`: the time of the query, for "last week"; None is the present. `around`: number of turns
    before and after each hit. `explain`: ids to explain; None means the best that were not
    returned.

    `earlier`: the user's turns before the question, newest first; see pipeline/search/conversation.
    `decay`: that of the project, see pipeline/domain/decay. `snapshot`: the time of the memories
    and relations; see pipeline/domain/versions. `graph`: return relations.
    """

    text: str
    filter: Filter
    top_k: int
    threshold: float
    show_expired: bool = False
    show_superseded: bool = False
    facts: bool = True
    turns: bool = False
    now: datetime | None = None
    around: int = 0
    explain: Sequence[UUID] | None = ()
    keyword_search: bool = False
    filter_memories: bool = False
    rerank: bool = False
    default_cut: bool = False
    weights: Weights = field(default_factory=Weights)
    scale: Scale = IDENTITY
    earlier: Sequence[str] = ()
    decay: Decay | None = None
    snapshot: Snapshot = CURRENT
    graph: bool = True

    @property
    def is_cut(self) -> bool:
        """Tell if the default cut applies: the question says by itself what it is about."""
        otherwise = self.keyword_search or self.filter_memories or self.rerank or self.earlier
        return (
            self.default_cut
            and not otherwise
            and has_known_question_words(self.text)
            and bool(content_words(self.text))
        )

    @property
    def measures_evidence(self) -> bool:
        """Tell if the candidates' evidence is compared."""
        return self.filter_memories or self.is_cut

    @property
    def has_known_meaning(self) -> bool:
        """Tell if the embedder knows the script of the question."""
        return not self.scale.only_latin or is_latin(self.text)

    @property
    def turns_asked(self) -> tuple[str, ...]:
        """The question and the turns before it, newest first."""
        return (self.text, *self.earlier)

    @property
    def terms(self) -> list[str]:
        """The words to compare; those of the question come first."""
        return terms.query_terms("\n".join(self.turns_asked))

    @property
    def whole_text(self) -> str:
        """The conversation in its order, as one text."""
        return "\n".join(reversed(self.turns_asked))

    def where(self, project_id: ProjectId) -> Where:
        """The passages that the query may return."""
        return Where.of(
            project_id,
            self.filter,
            facts=self.facts,
            turns=self.turns,
            expired=self.show_expired,
            older=self.show_superseded,
            snapshot=self.snapshot,
        )
