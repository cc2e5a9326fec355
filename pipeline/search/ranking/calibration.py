"""Scale of semantic scores: maps a model's cosines to the scores that thresholds are written for.

Clients compare thresholds such as 0.1 or 0.3 with the semantic score, and expect the cosines of
large embedding models. all-MiniLM gives a simple question and its answer only 0.08 to 0.5. So each
known model has a monotone map from cosine to score. The map changes no order: fusion uses the
cosine itself.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.domain.errors import InvalidInput

Points = Sequence[tuple[float, float]]
FORM = "Write it as increasing pairs of cosine:score, such as 0.1:0.3,0.5:0.7"


@dataclass(frozen=True, slots=True)
class Scale:
    """A piecewise linear map through `points` (cosine, score) and (1, 1); no points: the identity.

    Below the first point, the score is that of the first point. `only_latin`: cosines of texts in
    other scripts say nothing.
    """

    points: Points = ((0.0, 0.0),)
    only_latin: bool = False

    def scores(self, cosines: Sequence[float]) -> list[float]:
        """The score of each cosine, 0..1; a larger cosine never has a smaller score."""
        known, scores = self._axes()
        return [_interpolated(cosine, known, scores) for cosine in cosines]

    def cosine(self, score: float) -> float:
        """The smallest cosine with this score; -1, the least of all, for a score of 0."""
        if score <= 0:
            return -1.0
        cosines, scores = self._axes()
        return _interpolated(score, scores, cosines)

    def _axes(self) -> tuple[list[float], list[float]]:
        points = [*self.points, (1.0, 1.0)]
        return [cosine for cosine, _ in points], [score for _, score in points]


def _interpolated(value: float, known: Sequence[float], results: Sequence[float]) -> float:
    """The result at a value between two known ones, on a line; outside, that of the nearest.

    Not numpy's: the settings import this module, and so do programs that compute nothing else.
    """
    if value <= known[0]:
        return results[0]
    after = bisect_right(known, value)
    if after == len(known):
        return results[-1]
    start, end = known[after - 1], known[after]
    share = (value - start) / (end - start)
    return results[after - 1] + share * (results[after] - results[after - 1])


IDENTITY = Scale()
# Source: tests/integration/search/test_plain_questions.py, forty facts and forty plain questions.
# Cosine of a question and its answer: minimum 0.08, median 0.36; of a question and another fact:
# median 0.03, 95th percentile 0.17.
# all-MiniLM was trained on English: most Chinese characters are one unknown token.
_MINILM = ((-0.05, 0.0), (0.02, 0.1), (0.07, 0.3), (0.2, 0.45), (0.5, 0.75))
KNOWN = {"local/minilm": Scale(_MINILM, only_latin=True)}


def scale(embedder: str, configured: str | None = None) -> Scale:
    """The configured scale, or the one known for the model, or the identity."""
    return parse(configured) if configured else KNOWN.get(embedder, IDENTITY)


def parse(text: str) -> Scale:
    """A scale written as `cosine:score,…`. Errors: InvalidInput."""
    try:
        pairs = [pair.split(":") for pair in text.split(",")]
        points = [(float(cosine), float(score)) for cosine, score in pairs]
    except ValueError:
        raise InvalidInput(f"{text!r} is not a scale. {FORM}.") from None
    steps = list(zip([(-1.0, -1.0), *points], [*points, (1.0, 1.0)], strict=True))
    if any(after[0] <= before[0] or after[1] <= before[1] for before, after in steps):
        raise InvalidInput(f"{text!r} does not increase. {FORM}, below 1:1.")
    return Scale(((points[0][0] - 0.1, 0.0), *points) if points[0][1] > 0 else tuple(points))
