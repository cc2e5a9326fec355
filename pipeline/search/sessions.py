"""Where candidates lie in their conversations: the turns beside them, and their sessions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from pipeline.domain.passages import PassageKey
from pipeline.search.fusion import Place
from pipeline.search.store import Placed

# A conversation that was silent for so long is over: who has no run ids has sessions all the same.
# Source: the half hour of web analytics, doubled, for people who think before they answer.
SILENCE = timedelta(hours=1)


def places(candidates: Sequence[Placed]) -> dict[PassageKey, Place]:
    """Each candidate's place. A session is what was said in one lane without a long silence."""
    by_lane: dict[UUID, list[Placed]] = defaultdict(list)
    for one in candidates:
        by_lane[one.lane_id].append(one)
    found = {}
    # Lanes by a number: fusion looks turns up by these keys, and an id is slower to hash.
    for number, lane in enumerate(by_lane.values()):
        session, last = 0, None
        for one in sorted(lane, key=lambda one: (one.at, one.key)):
            session += last is not None and one.at - last > SILENCE
            last = one.at
            found[one.key] = Place(
                (number, one.turn) if one.turn else one.key,
                (number, session),
                (number, one.before) if one.before else None,
            )
    return found
