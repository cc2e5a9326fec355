"""Signals: the evidence for each candidate, by meaning, words, speaker, time and graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

import numpy as np

from pipeline.domain.passages import PassageKey
from pipeline.domain.vectors import Vector
from pipeline.search.candidates import Candidate, Signals
from pipeline.search.ranking.calibration import Scale
from pipeline.text import terms
from pipeline.text.speakers import first_named
from pipeline.text.times import dates

# Time in which the recency of a passage halves; a new one has 1.
HALF_LIFE = timedelta(days=30)
_ANY_TIME = datetime(2000, 6, 15, tzinfo=UTC)


def names_time(text: str) -> bool:
    """Tell if a query names a time. The result does not depend on the time of the query."""
    return bool(dates.spans(text, _ANY_TIME))


@dataclass(frozen=True, slots=True)
class ChannelScores:
    """Results of the channels.

    `words` and `cosines`: by passage, for those that the channel found. `vector`: of the query.
    `on_paths`: by a memory's id, the share of the query that the best path with one of its
    relations accounts for; `on_chains`: the score of the best chain (pipeline/graph/chains).
    """

    words: Mapping[PassageKey, float]
    cosines: Mapping[PassageKey, float]
    vector: Vector
    on_paths: Mapping[UUID, float]
    on_chains: Mapping[UUID, float]


def set_signals(
    candidates: Sequence[Candidate],
    turns: Sequence[str],
    channels: ChannelScores,
    *,
    scale: Scale,
    now: datetime | None,
) -> set[str]:
    """Set each candidate's signals. Returns the terms that an answer can have.

    `turns`: the question, and the turns before it, newest first. A time counts only if the question
    names it; a speaker is that of the newest turn that names one.

    A candidate without a cosine, but with an embedding, is compared with the query's vector here.
    `now`: time of the query, None if no term depends on it.
    """
    text = turns[0]
    words, on_paths, on_chains = channels.words, channels.on_paths, channels.on_chains
    cosines = _compared(candidates, channels.cosines, channels.vector)
    near = [cosines.get(candidate.key) for candidate in candidates]
    calibrated = scale.scores([-1.0 if cosine is None else cosine for cosine in near])
    times = dates.spans(text, now) if now else ()
    speakers = {candidate.speaker for candidate in candidates if candidate.speaker}
    speaker = first_named(turns, speakers)
    for candidate, cosine, on_scale in zip(candidates, near, calibrated, strict=True):
        candidate.unembedded = cosine is None and candidate.key.is_turn
        candidate.signals = Signals(
            0.0 if cosine is None else max(0.0, min(1.0, cosine)),
            words.get(candidate.key, 0.0),
            1.0 if speaker is not None and candidate.speaker == speaker else 0.0,
            dates.closeness(times, candidate.at) if times else 0.0,
            0.5 ** (max(timedelta(), now - candidate.at) / HALF_LIFE) if now else 0.0,
            0.0 if candidate.key.is_turn else on_paths.get(candidate.key.id, 0.0),
            0.0 if candidate.key.is_turn else on_chains.get(candidate.key.id, 0.0),
            0.0 if cosine is None else on_scale,
        )
    can_earn = {
        "dense": channels.vector.size > 0,
        "lexical": any(terms.query_terms(turn) for turn in turns),
        "speaker": speaker is not None,
        "date": now is not None and names_time(text),
        "recency": now is not None,
        "graph": bool(on_paths),
        "chain": bool(on_chains),
    }
    return {term for term, can in can_earn.items() if can}


def _compared(
    candidates: Sequence[Candidate], cosines: Mapping[PassageKey, float], vector: Vector
) -> Mapping[PassageKey, float]:
    """Return the cosines, with those of the candidates that the index did not compare."""
    missing = [
        candidate
        for candidate in candidates
        if candidate.embedding and candidate.key not in cosines
    ]
    if not missing:
        return cosines
    packed = np.frombuffer(
        b"".join(candidate.embedding or b"" for candidate in missing), np.float32
    )
    compared = packed.reshape(len(missing), -1) @ np.asarray(vector, np.float32)
    keys = (candidate.key for candidate in missing)
    return {**cosines, **dict(zip(keys, compared.tolist(), strict=True))}
