"""python -m deploy.demo [--no-kill]: the first five minutes with a running stack."""

from __future__ import annotations

import argparse
import sys
import uuid
from collections.abc import Sequence

from pydantic import ValidationError
from rich.console import Console

from deploy.demo import asking, crash, screens, sessions, story, tally
from deploy.demo.answers import DemoEvent
from deploy.demo.client import DemoClient
from deploy.demo.failure import DemoError
from deploy.stack.layout import Layout, command_line
from pipeline import settings as settings_of
from pipeline.domain.errors import InvalidInput
from pipeline.settings import Settings

USAGE = 2
INTERRUPTED = 130
PIPE_COLUMNS = 100

ACTS = (
    (
        "Three chats become memories",
        "Each turn is one POST: kept at once, understood later, in five stages.\n"
        "Turns that wait together share a batch. A receipt shows the outcome of each.\n"
        'Every turn carries the day it was said, so "last Friday" becomes a date.',
    ),
    (
        "Ask",
        "A search finds memories by meaning and by words, and the graph around them.",
    ),
    (
        "Kill a worker",
        "kill -9 in the middle of the work: nothing may be lost, nothing done twice.",
    ),
)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = argparse.ArgumentParser(prog="python -m deploy.demo", description=__doc__)
    top.add_argument("--no-kill", action="store_true", help="leave the worker alone (act 3)")
    return top


def main() -> int:
    """Play the demo. Returns the exit code."""
    return run(kill=not parser().parse_args().no_kill)


def run(*, kill: bool) -> int:
    """Play the demo. Returns 0, or 1 after printing the reason of the failure to stderr."""
    console = screen()
    try:
        play(settings_of.load(), console, kill=kill)
    except (InvalidInput, ValidationError) as error:
        print(error, file=sys.stderr)
        return USAGE
    except DemoError as error:
        print(f"\nThe demo stopped: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        status, down = command_line("status"), command_line("down")
        print(f"\nInterrupted. What was accepted goes on: `{status}`, `{down}`.")
        return INTERRUPTED
    return 0


def screen() -> Console:
    """The terminal; in a pipe or a log, wide enough for the tables."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=PIPE_COLUMNS)


def play(settings: Settings, console: Console, *, kill: bool) -> None:
    """Play all acts, with ids of this run only. Errors: DemoError."""
    layout = Layout(settings.data_dir)
    demo = story.load()
    run = uuid.uuid4().hex[:6]
    user_id = f"{demo.speaker.lower()}-{run}"
    with DemoClient(f"http://127.0.0.1:{settings.port}", key(layout)) as client:
        client.ping()
        console.print(screens.heading(1, *ACTS[0]))
        events = sessions.tell(demo, user_id, client=client, console=console)
        console.print(screens.mix(events))
        refuse_poor_mix(events, settings.llm.model)
        console.print(screens.heading(2, *ACTS[1]))
        asking.ask(demo, user_id, events, client=client, console=console)
        if kill:
            console.print(screens.heading(3, *ACTS[2]))
            crash.survive(
                demo,
                f"burst-{run}",
                lease_s=settings.lease_s,
                grace_s=settings.queued_grace_s,
                layout=layout,
                client=client,
                console=console,
            )
        farewell(client.url, layout, user_id, demo.questions[0], console)


def key(layout: Layout) -> str:
    """API key of the first project. Errors: DemoError if no stack has created one."""
    try:
        return layout.api_key.read_text().strip()
    except FileNotFoundError:
        raise DemoError(
            f"There is no key at {layout.api_key}: start the stack with"
            f" `{command_line('up')}` first."
        ) from None


def refuse_poor_mix(events: Sequence[DemoEvent], model: str) -> None:
    """Check that the receipts show all expected outcomes, if the built-in rules wrote them.

    A language model may decide differently, so it is not checked.
    Errors: DemoError.
    """
    if model != tally.RULES:
        return
    if absent := tally.missing(events):
        raise DemoError(f"No receipt shows {' or '.join(absent)}: local/rules should have.")
    if bare := tally.unexplained(events):
        raise DemoError(f"{bare} receipt lines have no reason.")


def farewell(url: str, layout: Layout, user_id: str, question: str, console: Console) -> None:
    """Print commands to try next."""
    body = f'{{"query": "{question}", "filters": {{"user_id": "{user_id}"}}}}'
    console.print("\nYour turn", style="bold magenta")
    command = (
        f"  curl -s {url}/v3/memories/search/ \\\n"
        f'    -H "Authorization: Token $(cat {layout.api_key})" \\\n'
        f"    -H 'Content-Type: application/json' -d '{body}'\n"
    )
    console.print(command, soft_wrap=True, markup=False)
    notes = (
        (f"{url}/docs", "every route, to try in the browser"),
        ("MEMLANE_LLM__MODEL", f"a real language model: set it, then {command_line('up')}"),
        (command_line("down"), "stop it all; what was remembered stays"),
        (command_line("reset"), "stop it all and delete every memory, those of the demo too"),
    )
    console.print(screens.explained(notes))


if __name__ == "__main__":
    sys.exit(main())
