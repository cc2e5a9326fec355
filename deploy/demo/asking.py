"""Act 2: searches, and the history of a memory."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from deploy.demo import screens, tally
from deploy.demo.answers import DemoEvent
from deploy.demo.client import DemoClient
from deploy.demo.story import Story

TOP_K = 2


def ask(
    story: Story, user_id: str, events: Sequence[DemoEvent], *, client: DemoClient, console: Console
) -> None:
    """Search for the story's questions, and show the history of a memory that changed."""
    answers = {q: client.search(q, top_k=TOP_K, user_id=user_id) for q in story.questions}
    for question, answer in answers.items():
        console.print(screens.found(question, answer))
    if edges := next((answer.relations for answer in answers.values() if answer.relations), None):
        console.print(screens.graph(edges))
    if memory_id := tally.changed(events):
        console.print(screens.history(client.history(memory_id)))
