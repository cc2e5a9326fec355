"""Scale of an embedder: the cosine below which two texts are about different matters.

Two unrelated sentences have a cosine of 0.1 with one embedder and of 0.7 with another, so no
constant suits all. The stored vectors of a scope show the scale: most pairs are unrelated.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

# Highest floor. Source: of the 212 targets of tests/eval/candidates.py, embedded by local/minilm,
# one has a lower cosine; it shares a word or slot.
FAR = 0.25
# Floor of a scope with few vectors: low on the scale of any embedder.
FAR_UNKNOWN = 0.05
# Vectors that show a scale, and the most that are read.
LEAST_VECTORS, MOST_VECTORS = 6, 64
# Standard deviations below the mean of all pairs. Of the 212 targets, a floor at 0.25 hides 57 from
# an embedder with a mean of 0, and 33 from one with half the cosines of local/minilm. This floor,
# from 12 vectors, hides 0.4 and 4.4; one at 0.3 deviations hides 14 and 15.
DEVIATIONS = 1.5


def far_below(packed: Sequence[bytes]) -> float:
    """The cosine below which a text is far from all of a scope, given stored vectors of the scope.

    Never above FAR: an embedder with high cosines compares more, and hides nothing.
    """
    if len(packed) < LEAST_VECTORS:
        return FAR_UNKNOWN
    sample = packed[:MOST_VECTORS]
    vectors = np.frombuffer(b"".join(sample), np.float32).reshape(len(sample), -1)
    cosines = (vectors @ vectors.T)[np.triu_indices(len(sample), 1)]
    return min(FAR, float(cosines.mean() - DEVIATIONS * cosines.std()))
