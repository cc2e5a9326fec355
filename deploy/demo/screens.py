"""Output for the terminal. Pure functions: each returns something that rich can print."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from deploy.demo.answers import (
    DemoAccepted,
    DemoChange,
    DemoEvent,
    DemoReceiptLine,
    DemoRelation,
    DemoSearch,
)
from deploy.demo.story import Session, date_text
from deploy.demo.tally import OUTCOMES, RULES, Cost, outcomes
from pipeline.domain.events import StageName

COLOURS = {"ADD": "green", "UPDATE": "yellow", "DELETE": "red", "NOOP": "cyan"}
STATUS_COLOURS = {"SUCCEEDED": "green", "FAILED": "bold red", "RUNNING": "yellow"}
RELATIONS_SHOWN = 4
# The last step, settling, is not shown.
STAGES = tuple(stage.value for stage in StageName)


def heading(number: int, title: str, about: str) -> RenderableType:
    """Title of an act, and what it shows."""
    return Group("", Text(f"{number}  {title}", style="bold magenta"), Text(about, style="dim"), "")


def session(number: int, chat: Session) -> RenderableType:
    """The heading of one session."""
    return Text(f"Session {number}, {chat.day}: {chat.title}", style="bold")


def accepted(number: int, speaker: str, words: str, answer: DemoAccepted) -> RenderableType:
    """A turn, and the API's immediate response."""
    grid = _plain()
    grid.add_row(str(number), Text.assemble((f"{speaker}: ", "blue"), words))
    grid.add_row("", _at_once(answer))
    return _indented(grid)


def _at_once(answer: DemoAccepted) -> Text:
    return Text.assemble(
        ("-> ", "dim"),
        (answer.status, "yellow"),
        (f"  event {answer.event_id}", "dim"),
    )


def progress(events: Sequence[DemoEvent]) -> RenderableType:
    """One line for each event: milliseconds of finished stages, the current stage, the status."""
    table = _headed()
    table.add_column("turn")
    for name in STAGES:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("status", min_width=9)
    table.add_column("total ms", justify="right")
    for number, event in enumerate(events, start=1):
        table.add_row(str(number), *_stages(event), _status(event), _ms(event.latency))
    return _indented(table, above=1)


def _stages(event: DemoEvent) -> Iterator[Text]:
    done = {run.stage: run.ms for run in event.stages}
    for name in STAGES:
        if event.stage == name and not event.ended:
            yield Text("...", style="yellow")
        elif name in done:
            yield Text(_ms(done[name]), style="green")
        else:
            yield Text("-" if event.ended else "", style="dim")


def _status(event: DemoEvent) -> Text:
    if event.waiting and not event.ended:
        return Text(f"waits: {event.waiting.code}", style="yellow")
    return Text(event.status, style=STATUS_COLOURS.get(event.status, "dim"))


def _ms(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.1f}" if value < 100 else f"{value:,.0f}"


def receipts(events: Sequence[DemoEvent]) -> RenderableType:
    """The receipt of each turn: outcome, memory, its earlier text, and the reason of a change."""
    table = _headed()
    table.add_column("turn")
    table.add_column("outcome")
    table.add_column("memory", ratio=1)
    for number, event in enumerate(events, start=1):
        for line in event.results:
            outcome = Text(line.event, style=COLOURS.get(line.event, ""))
            table.add_row(str(number), outcome, _memory(line))
        if not event.results:
            nothing = Text(f"nothing stored. {event.note or ''}".strip(), style="dim")
            table.add_row(str(number), Text("-", style="dim"), nothing)
    return _indented(table, above=1)


def _memory(line: DemoReceiptLine) -> Text:
    text = Text(line.memory or "-", style="strike" if line.event == "DELETE" else "")
    if line.old_memory and line.old_memory != line.memory:
        text.append(f"\nbefore: {line.old_memory}", style="dim")
    if line.reason and line.event != "ADD":  # the reason of an ADD adds nothing
        text.append(f"\nreason: {line.reason}", style="dim")
    return text


def cost(spent: Cost) -> RenderableType:
    """The models that answered, and their cost."""
    shared = f"{spent.events} turns, {spent.batches} batch{'es' * (spent.batches != 1)}"
    who = ", ".join(spent.models) or "no model"
    if spent.models == (RULES,):
        who = f"{RULES} answered, not an LLM"
    line = f"{shared}, {spent.calls} calls, {spent.tokens:,} tokens{_price(spent)}: {who}"
    return _indented(Text(line, style="dim"), above=1)


def _price(spent: Cost) -> str:
    if spent.usd is not None:
        return f", ${spent.usd:.4f}"
    return ", price unknown" if spent.calls else ""


def mix(events: Sequence[DemoEvent]) -> Text:
    """Number of each outcome."""
    counted = outcomes(events)
    parts = [(f"{counted[name]} {name}", COLOURS[name]) for name in OUTCOMES if counted[name]]
    empty = sum(not event.results for event in events)
    text = Text("All receipts: ").append_text(Text(", ").join(Text(*part) for part in parts))
    return text.append(f", {empty} with nothing to store" * bool(empty)).append(".")


def found(query: str, answer: DemoSearch) -> RenderableType:
    """A question, and the memories that answer it, best first."""
    rows = _plain()
    for hit in answer.results:
        rows.add_row(f"{hit.score:.2f}", Text(hit.memory), _since(hit.timestamp))
    return Group(Text(f"{query}", style="bold"), _indented(rows), "")


def graph(edges: Sequence[DemoRelation]) -> RenderableType:
    """The first relations around the results."""
    rows = _plain()
    for edge in edges[:RELATIONS_SHOWN]:
        arrow = (f" --{edge.relationship}--> ", "cyan")
        rows.add_row(Text.assemble(edge.source, arrow, edge.target), _since(edge.valid_from))
    return Group(Text("Relations around the answers", style="bold"), _indented(rows), "")


def _since(moment: datetime | None) -> Text:
    return Text(f"since {date_text(moment)}" if moment else "-", style="dim")


def history(changes: Sequence[DemoChange]) -> RenderableType:
    """All states of a memory, oldest first."""
    rows = _plain()
    for change in changes:
        outcome = Text(change.event, style=COLOURS.get(change.event, ""))
        text = Text(change.new_memory or change.old_memory or "")
        rows.add_row(outcome, text, Text(change.reason or "", style="dim"))
    title = "History of a memory that changed: nothing is overwritten"
    return Group(Text(title, style="bold"), _indented(rows))


def moment(seconds: float, what: str) -> Text:
    """A line about the crash, with its time."""
    return Text.assemble((f"  {seconds:6.2f} s  ", "bold"), what)


def explained(pairs: Sequence[tuple[str, str]]) -> RenderableType:
    """Words, each with a line that explains it."""
    rows = _plain()
    for word, line in pairs:
        rows.add_row(Text(word, style="bold"), Text(line))
    return _indented(rows)


def _headed() -> Table:
    return Table(
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),
        header_style="dim",
    )


def _plain() -> Table:
    return Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))


def _indented(what: RenderableType, above: int = 0) -> Padding:
    return Padding(what, (above, 0, 0, 2), expand=False)
