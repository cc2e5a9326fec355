"""Sessions: conversations, separated by long pauses, and the place of each candidate in one."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from pipeline.ledger.row_values import grouped
from pipeline.search.candidates import Candidate, Place

# A pause of this length ends a session, so clients that send no run ids have sessions, too.
# Source: the half hour of web analytics, doubled, because people think before they answer.
SILENCE = timedelta(hours=1)


def locate(candidates: Sequence[Candidate]) -> None:
    """Set each candidate's place. A session is a part of one lane without a long pause.

    With several speakers among its candidates, it is a dialogue.
    """
    # Number the lanes: fusion looks up turns by these keys, and numbers hash faster than ids.
    for number, lane in enumerate(grouped(candidates, "lane_id").values()):
        # Numbers, because messages of one add often have the same time, and ids compare slowly.
        lane.sort(key=lambda candidate: (candidate.at, candidate.key.id.int, candidate.key.ordinal))
        for count, session in enumerate(_sessions(lane)):
            dialogue = len({candidate.speaker for candidate in session}) > 1
            for candidate in session:
                candidate.place = Place(
                    (number, *candidate.turn) if candidate.turn else candidate.key,
                    (number, count),
                    (number, *candidate.before) if candidate.before else None,
                    dialogue,
                )


def _sessions(lane: Sequence[Candidate]) -> list[list[Candidate]]:
    """Split the candidates of a lane, in order of time, at long pauses."""
    sessions = [[lane[0]]]
    for candidate in lane[1:]:
        if candidate.at - sessions[-1][-1].at > SILENCE:
            sessions.append([])
        sessions[-1].append(candidate)
    return sessions
