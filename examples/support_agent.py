"""A support agent: memories for each customer, a run for each ticket, and an undo of a mistake.

python support_agent.py
"""

from __future__ import annotations

import uuid

from memlane_wait import Memlane, connect, parser

AGENT = "support"


def handle_ticket(memory: Memlane, customer: str, ticket: str, *lines: str) -> str:
    """Store a ticket's conversation as one event, and return its id once it has been processed."""
    messages = [{"role": "user", "content": line} for line in lines]
    event_id = memory.add(messages, user_id=customer, agent_id=AGENT, run_id=ticket)
    event = memory.wait(event_id)
    print(f"{ticket} of {customer}:")
    for fact in event["results"]:
        print(f"  {fact['event']:<6} {fact['memory']}")
    return event_id


def briefing(memory: Memlane, customer: str, question: str) -> list[str]:
    """Facts about the question, from all tickets of the customer."""
    texts = memory.search(question, user_id=customer)
    print(f"About {customer}: {'; '.join(texts) or 'nothing known'}")
    return texts


def main(memory: Memlane) -> None:
    run = uuid.uuid4().hex[:6]  # ids of this run only, so that the example can be run again
    ana, ben = f"ana-{run}", f"ben-{run}"
    handle_ticket(memory, ana, "ticket-1", "I use the Android app.", "I prefer answers by email.")
    handle_ticket(memory, ben, "ticket-2", "I have a Fairphone.")

    question = "Which app does the customer use?"
    assert any("Android" in text for text in briefing(memory, ana, question))
    assert not any("Android" in text for text in briefing(memory, ben, question))

    wrong = handle_ticket(memory, ben, "ticket-3", "I use the iPhone app.")
    print("ticket-3 was filed under the wrong customer: undo it.")
    memory.undo(wrong)
    assert not any("iPhone" in text for text in briefing(memory, ben, question))


if __name__ == "__main__":
    main(connect(parser("Handle tickets of two customers.").parse_args()))
