"""Act 1: three chats are posted and followed stage by stage, with their receipts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.console import Console
from rich.live import Live

from deploy.demo import screens, tally
from deploy.demo.answers import DemoAccepted, DemoEvent
from deploy.demo.client import DemoClient
from deploy.demo.failure import DemoError
from deploy.demo.story import Session, Story
from deploy.stack.layout import command_line
from deploy.stack.waiting import wait_until

# The built-in rules take a second; a slow remote model needs longer.
ENDED_WITHIN_S = 180.0
FRAMES_PER_S = 12


def tell(story: Story, user_id: str, *, client: DemoClient, console: Console) -> list[DemoEvent]:
    """Post all sessions one after the other, and show each receipt. Returns the ended events.

    Errors: DemoError if an event fails or does not end.
    """
    events = []
    for number, session in enumerate(story.sessions, start=1):
        console.print(screens.session(number, session))
        answers = _post(session, story.speaker, user_id, client=client, console=console)
        ended = _watch([answer.event_id for answer in answers], client=client, console=console)
        console.print(screens.receipts(ended), screens.cost(tally.cost(ended)), "")
        events += ended
    return events


def _post(
    session: Session, speaker: str, user_id: str, *, client: DemoClient, console: Console
) -> list[DemoAccepted]:
    """Post the turns of a session, and print each answer."""
    answers = []
    for number, turn in enumerate(session.turns, start=1):
        messages = [
            {"role": "user", "content": turn.user, "name": speaker},
            {"role": "assistant", "content": turn.assistant},
        ]
        answer = client.add(messages, timestamp=session.at, user_id=user_id)
        console.print(screens.accepted(number, speaker, turn.user, answer))
        answers.append(answer)
    return answers


def _watch(ids: Sequence[str], *, client: DemoClient, console: Console) -> list[DemoEvent]:
    """Show the events' progress: live on a terminal, else once they have ended."""
    if not console.is_terminal:
        events = follow(ids, client.event, lambda _: None)
        console.print(screens.progress(events))
        return events
    with Live(console=console, refresh_per_second=FRAMES_PER_S) as live:
        return follow(ids, client.event, lambda events: live.update(screens.progress(events)))


def follow(
    ids: Sequence[str],
    look: Callable[[str], DemoEvent],
    show: Callable[[Sequence[DemoEvent]], None],
    within_s: float = ENDED_WITHIN_S,
) -> list[DemoEvent]:
    """Poll the events until all have ended, and show each state.

    Returns them in the order of `ids`.
    Errors: DemoError if one failed, or has not ended in time.
    """
    seen = {event_id: look(event_id) for event_id in ids}

    def all_ended() -> bool:
        seen.update(
            {event_id: look(event_id) for event_id, event in seen.items() if not event.ended}
        )
        show(list(seen.values()))
        return all(event.ended for event in seen.values())

    wait_until(all_ended, within_s)
    events = list(seen.values())
    refuse_failures(events, within_s)
    return events


def refuse_failures(events: Sequence[DemoEvent], within_s: float) -> None:
    """Check that all events succeeded. Errors: DemoError that names the first one that did not."""
    for event in events:
        if event.status == "FAILED":
            raise DemoError(f"Event {event.id} FAILED with {event.code}: {event.error}")
    for event in events:
        if not event.ended:
            why = f"it waits: {event.waiting.code}" if event.waiting else f"stage {event.stage}"
            raise DemoError(
                f"Event {event.id} is still {event.status} after {within_s:.0f} s ({why}). "
                f"It is kept, and will end; see `{command_line('logs')}`."
            )
