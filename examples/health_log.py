"""A health log: dated entries, the current state and its history, and erasure on request.

python health_log.py
"""

from __future__ import annotations

import uuid

from memlane_wait import Memlane, connect, parser

ENTRIES = (
    ("2026-01-05T08:00:00+00:00", "My weight is 84 kg. I am allergic to penicillin."),
    ("2026-02-02T08:00:00+00:00", "My weight is 82 kg. I take ibuprofen every morning."),
    ("2026-03-02T08:00:00+00:00", "My weight is 81 kg. I sleep seven hours."),
)


def write_log(memory: Memlane, user_id: str) -> None:
    """Add each entry with its date, and print what it changed.

    Waits for each event before the next add: events that wait together share a batch, in which a
    later fact replaces an earlier one before that one is stored.
    """
    for time, text in ENTRIES:
        for fact in memory.remember(text, user_id=user_id, timestamp=time):
            before = f" (was: {fact['old_memory']})" if fact["old_memory"] else ""
            print(f"{time[:10]}  {fact['event']:<6} {fact['memory']}{before}")


def show_state(memory: Memlane, user_id: str) -> None:
    """Print the current memories, and all earlier states of those that changed."""
    for row in memory.memories(user_id=user_id):
        print(row["memory"])
        changes = memory.history(row["id"])
        for change in changes if len(changes) > 1 else ():
            print(f"  {change['event']:<6} {change['new_memory']}")


def main(memory: Memlane) -> None:
    """Write the log, show its state, and erase the patient."""
    user_id = f"patient-{uuid.uuid4().hex[:6]}"  # of this run only, so it can be run again
    write_log(memory, user_id)
    print("\nThe state now:")
    show_state(memory, user_id)
    print("\nBefore a prescription:", memory.search("Any allergy?", user_id=user_id, top_k=1))
    memory.erase(user_id)
    print(f"Erased on request: {len(memory.memories(user_id=user_id))} memories left.")


if __name__ == "__main__":
    main(connect(parser("Keep a health log, then erase it.").parse_args()))
