"""memlane replay: process all events of a scope again in a shadow, compare, and switch to it."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from deploy.cli.connection import encoded
from deploy.cli.context import (
    AsJson,
    options,
    print_answer,
    print_json,
    print_table,
    scope_text,
    when,
)

HELP = """Process a scope's whole log again, in a shadow: start, compare, then switch or discard."""
app = typer.Typer(no_args_is_help=True, help=HELP)

ReplayId = Annotated[str, typer.Argument(metavar="ID")]


@app.command("start")
def start_replay(
    context: typer.Context,
    user: Annotated[str | None, typer.Option("--user", help="user_id of the scope.")] = None,
    agent: Annotated[str | None, typer.Option("--agent", help="agent_id of the scope.")] = None,
    app_id: Annotated[str | None, typer.Option("--app", help="app_id of the scope.")] = None,
    run: Annotated[str | None, typer.Option("--run", help="run_id of the scope.")] = None,
    instructions: Annotated[
        str | None, typer.Option(help="custom_instructions for every event.")
    ] = None,
    llm: Annotated[
        str | None, typer.Option(help="Another model, listed in MEMLANE_REPLAY_MODELS.")
    ] = None,
    embedder: Annotated[
        str | None, typer.Option(help="Another embedder, listed in MEMLANE_REPLAY_MODELS.")
    ] = None,
    recorded: Annotated[
        bool, typer.Option("--recorded", help="Use the recorded answers: no model is called.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Start a replay of all events added under exactly these ids."""
    with options(context).connect() as api:
        replay = api.post(
            "/v1/replays/",
            user_id=user,
            agent_id=agent,
            app_id=app_id,
            run_id=run,
            custom_instructions=instructions,
            llm_model=llm,
            embedder_model=embedder,
            answers="recorded" if recorded else "fresh",
        )
    _show([replay], replay, as_json=as_json)


@app.command("list")
def list_replays(
    context: typer.Context,
    user: Annotated[str | None, typer.Option("--user", help="Only those of this user_id.")] = None,
    agent: Annotated[
        str | None, typer.Option("--agent", help="Only those of this agent_id.")
    ] = None,
    app_id: Annotated[str | None, typer.Option("--app", help="Only those of this app_id.")] = None,
    run: Annotated[str | None, typer.Option("--run", help="Only those of this run_id.")] = None,
    as_json: AsJson = False,
) -> None:
    """List the project's replays, newest first."""
    with options(context).connect() as api:
        answer = api.get("/v1/replays/", user_id=user, agent_id=agent, app_id=app_id, run_id=run)
    _show(answer["results"], answer, as_json=as_json)


@app.command("show")
def show_replay(context: typer.Context, replay_id: ReplayId, as_json: AsJson = False) -> None:
    """Show the progress of a replay: RUNNING, READY or SWITCHED."""
    with options(context).connect() as api:
        replay = api.get(f"/v1/replays/{encoded(replay_id)}/")
    _show([replay], replay, as_json=as_json)


@app.command("diff")
def diff_replay(context: typer.Context, replay_id: ReplayId, as_json: AsJson = False) -> None:
    """Show what a switch would change."""
    with options(context).connect() as api:
        diff = api.get(f"/v1/replays/{encoded(replay_id)}/diff/")
    if as_json:
        print_json(diff)
        return
    rows = [_change("=", each["memory"], each["becomes"]["memory"]) for each in diff["changed"]]
    rows += [_change("-", each["memory"], "") for each in diff["only_live"]]
    rows += [_change("+", "", each["memory"]) for each in diff["only_replay"]]
    rows += [_change("-", _relation(each), "") for each in diff["relations_removed"]]
    rows += [_change("+", "", _relation(each)) for each in diff["relations_added"]]
    print_table(rows, empty="A switch would change nothing.")
    counts = diff["counts"]
    print(f"{counts['same']} memories stay the same, {counts['edits_lost']} edits would be lost.")


@app.command("switch")
def switch_replay(
    context: typer.Context,
    replay_id: ReplayId,
    force: Annotated[
        bool,
        typer.Option("--force", help="Even if edits by people or events that failed are lost."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Replace the memories of the scope with the replay's. The old ones stay in the history."""
    with options(context).connect() as api:
        replay = api.post(f"/v1/replays/{encoded(replay_id)}/switch/", force=force)
    _show([replay], replay, as_json=as_json)


@app.command("discard")
def discard_replay(context: typer.Context, replay_id: ReplayId, as_json: AsJson = False) -> None:
    """Delete a replay and its memories. Nothing else changes."""
    with options(context).connect() as api:
        answer = api.delete(f"/v1/replays/{encoded(replay_id)}/")
    print_answer(answer, answer["message"], as_json=as_json)


def _show(replays: list[dict[str, Any]], answer: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(answer)
    else:
        print_table([_row(replay) for replay in replays], empty="No replays.")


def _row(replay: dict[str, Any]) -> dict[str, str]:
    """A replay as a row of the table."""
    ended = replay["succeeded"] + replay["failed"]
    return {
        "id": replay["id"],
        "status": replay["status"],
        "scope": scope_text(replay),
        "events": f"{ended} of {replay['accepted']}",
        "failed": str(replay["failed"]),
        "behind": str(replay["behind"]),
        "created": when(replay["created_at"]),
    }


def _change(sign: str, before: str, after: str) -> dict[str, str]:
    return {"": sign, "before": before, "after": after}


def _relation(edge: dict[str, str]) -> str:
    return f"{edge['source']} {edge['relationship']} {edge['target']}"
