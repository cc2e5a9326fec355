"""Calibration of semantic scores: monotone, invertible; an invalid scale is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.domain.errors import InvalidInput
from pipeline.search.ranking.calibration import IDENTITY, KNOWN, Scale, parse, scale

SCALES = [IDENTITY, *KNOWN.values(), parse("0.1:0.3,0.5:0.7")]
COSINE = st.floats(-1, 1)


@pytest.mark.parametrize("scale", SCALES)
@given(cosines=st.lists(COSINE, min_size=2, max_size=2).map(sorted))
def test_a_larger_cosine_is_never_a_smaller_score(scale: Scale, cosines: list[float]) -> None:
    scores = scale.scores(cosines)
    assert 0 <= scores[0] <= scores[1] <= 1


@pytest.mark.parametrize("scale", SCALES)
@given(score=st.floats(0.001, 1))
def test_a_score_names_the_cosine_that_has_it(scale: Scale, score: float) -> None:
    assert scale.scores([scale.cosine(score)]) == pytest.approx([score])


def test_a_threshold_of_nothing_lets_every_cosine_through() -> None:
    assert {scale.cosine(0.0) for scale in SCALES} == {-1.0}


def test_an_unknown_model_keeps_its_cosines_and_a_setting_overrules_what_is_known() -> None:
    assert scale("other/model").scores([0.37]) == pytest.approx([0.37])
    assert scale("local/minilm").scores([0.08]) > [0.3]
    assert scale("local/minilm", "0.1:0.3").scores([0.1]) == pytest.approx([0.3])


@pytest.mark.parametrize(
    "text", ["", "x", "0.1", "0.1:0.3:0.5", "0.5:0.3,0.1:0.7", "0.1:0.7,0.5:0.3", "1:1", "2:0.5"]
)
def test_what_is_no_increasing_scale_is_refused_with_its_form(text: str) -> None:
    with pytest.raises(InvalidInput, match="cosine:score"):
        parse(text)
