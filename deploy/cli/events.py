"""memlane events: list events, show a receipt, retry what failed."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.text import Text

from deploy.cli.connection import encoded
from deploy.cli.context import (
    Agent,
    AppId,
    AsJson,
    Run,
    User,
    options,
    print_answer,
    print_json,
    print_table,
    scope_text,
    screen,
    when,
)
from pipeline.domain.events import FailureCode

app = typer.Typer(no_args_is_help=True, help="List events, show a receipt, retry what failed.")

COLOURS = {"SUCCEEDED": "green", "FAILED": "bold red", "RUNNING": "yellow", "PENDING": "cyan"}


@app.command("list")
def list_events(
    context: typer.Context,
    status: Annotated[
        str | None, typer.Option(help="PENDING, RUNNING, SUCCEEDED, FAILED; several with commas.")
    ] = None,
    user: User = None,
    agent: Agent = None,
    app_id: AppId = None,
    run: Run = None,
    limit: Annotated[int, typer.Option("-n", "--limit", min=1, max=200, help="Most rows.")] = 20,
    as_json: AsJson = False,
) -> None:
    """List the project's events, newest first."""
    with options(context).connect() as api:
        answer = api.get(
            "/v1/events/",
            status=status,
            user_id=user,
            agent_id=agent,
            app_id=app_id,
            run_id=run,
            page_size=limit,
        )
    if as_json:
        print_json(answer)
        return
    print_table([_row(event) for event in answer["results"]], empty="No events match.")
    if (count := answer["count"]) > limit:
        print(f"{limit} of {count}; -n shows more.")


@app.command("show")
def show_event(
    context: typer.Context,
    event_id: Annotated[str, typer.Argument(metavar="ID")],
    wait: Annotated[
        float, typer.Option(min=0, max=60, help="Seconds to wait for the event to end.")
    ] = 0,
    as_json: AsJson = False,
) -> None:
    """Show an event and its receipt: each fact, its outcome and the reason."""
    with options(context).connect() as api:
        event = api.get(f"/v1/event/{encoded(event_id)}/", wait=wait)
    if as_json:
        print_json(event)
    else:
        print_event(event)


@app.command("retry")
def retry_events(
    context: typer.Context,
    event_id: Annotated[str | None, typer.Argument(metavar="[ID]")] = None,
    code: Annotated[
        FailureCode | None, typer.Option(help="All events that failed with this code.")
    ] = None,
    user: User = None,
    agent: Agent = None,
    app_id: AppId = None,
    run: Run = None,
    graph: Annotated[
        bool, typer.Option("--graph", help="The graph alone, of events with graph_status FAILED.")
    ] = False,
    partial: Annotated[
        bool, typer.Option("--partial", help="The same, of events with graph_status PARTIAL.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Retry one failed event by its id, or all failed events that match (1,000 per call).

    A retried event goes to the tail of its lane.
    """
    stage = "relate" if graph or partial else None
    graph_status = "PARTIAL" if partial else None
    filters = {"user_id": user, "agent_id": agent, "app_id": app_id, "run_id": run}
    if bool(event_id) == any([code, *filters.values()]):
        raise typer.BadParameter("give the id of one event, or at least one filter", context)
    with options(context).connect() as api:
        if event_id:
            answer = api.post(f"/v1/event/{encoded(event_id)}/replay/", stage=stage)
        else:
            wanted = code.value if code else None
            answer = api.post(
                "/v1/events/replay/",
                code=wanted,
                stage=stage,
                graph_status=graph_status,
                **filters,
            )
    if event_id:
        text = f"{answer['id']} is {answer['status']} again."
    else:
        text = f"{answer['replayed']} events are PENDING again."
    print_answer(answer, text, as_json=as_json)


def print_event(event: dict[str, Any]) -> None:
    """Print an event with its receipt."""
    console = screen()
    status = Text.assemble(event["id"], "  ", (event["status"], COLOURS[event["status"]]))
    console.print(status)
    for name, value in _about(event).items():
        console.print(Text.assemble((f"  {name:<9} ", "dim"), value))
    rows = [
        {
            "outcome": line["event"],
            "memory": line["memory"] or "",
            "before": line["old_memory"] or "",
            "reason": line["reason"] or "",
        }
        for line in event["results"]
    ]
    print_table(rows, empty="  No facts.")


def _about(event: dict[str, Any]) -> dict[str, str]:
    """The lines between an event's status and its receipt; empty ones are left out."""
    usage = event["usage"]
    tokens = usage["prompt_tokens"] + usage["completion_tokens"]
    waiting = event["waiting"] or {}
    values = {
        "scope": scope_text(event["payload"]),
        "created": when(event["created_at"]),
        "ended": when(event["completed_at"]),
        "waits for": " ".join(filter(None, [waiting.get("code"), waiting.get("cause")])),
        "error": f"{event['code']}: {event['error']}" if event["error"] else "",
        "note": event["note"] or "",
        "graph": event["graph_status"] or "",
        "model": f"{', '.join(usage['models'])}: {usage['calls']} calls, {tokens} tokens",
        "stages": ", ".join(f"{run['stage']} {run['ms']:g} ms" for run in event["stages"]),
    }
    return {name: value for name, value in values.items() if value}


def _row(event: dict[str, Any]) -> dict[str, str]:
    return {
        "id": event["id"],
        "status": event["status"],
        "scope": scope_text(event["payload"]),
        "created": when(event["created_at"]),
        "facts": str(len(event["results"])),
        "code": event["code"] or (event["waiting"] or {}).get("code") or "",
    }
