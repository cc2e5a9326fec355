"""memlane keys: list, create and revoke API keys."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import typer

from deploy.cli import recovery
from deploy.cli.connection import encoded
from deploy.cli.context import AsJson, local, options, print_answer, print_json, print_table, when
from pipeline.domain.tenants import Access

app = typer.Typer(no_args_is_help=True, help="List, create and revoke API keys.")

Project = Annotated[str | None, typer.Option(help="Another project of the organization.")]


@app.command("list")
def list_keys(
    context: typer.Context,
    project: Project = None,
    as_json: AsJson = False,
) -> None:
    """List the keys of a project, newest first. Only their hashes are stored."""
    with options(context).connect() as api:
        answer = api.get("/v1/keys/", project_id=project)
    if as_json:
        print_json(answer)
    else:
        print_table([_row(key) for key in answer["results"]], empty="No keys.")


@app.command("create")
def create_key(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="What the key is for, such as 'chat backend'.")],
    scope: Annotated[Access, typer.Option(help="Each scope includes the one before.")] = (
        Access.WRITE
    ),
    project: Project = None,
    member: Annotated[str | None, typer.Option(help="Email of the member it belongs to.")] = None,
    expires_at: Annotated[
        str | None, typer.Option(help="ISO 8601 time, such as 2027-01-31T00:00:00Z.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Create a key and print it. It cannot be shown again: only its hash is stored."""
    with options(context).connect() as api:
        answer = api.post(
            "/v1/keys/",
            name=name,
            scope=scope.value,
            project_id=project,
            member=member,
            expires_at=expires_at,
        )
    print_answer(answer, answer["key"], as_json=as_json)


@app.command("revoke")
def revoke_key(
    context: typer.Context,
    key_id: Annotated[str, typer.Argument(metavar="ID", help="The id that `keys list` shows.")],
    descendants: Annotated[
        bool, typer.Option("--descendants", help="Also the keys that were made with this one.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Revoke a key. API processes may accept it for five more seconds."""
    with options(context).connect() as api:
        answer = api.delete(f"/v1/keys/{encoded(key_id)}/", descendants=descendants)
    print_answer(answer, answer["message"], as_json=as_json)


@app.command("recover")
def recover_key(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="What to call the new key.")] = "recovered",
    as_json: AsJson = False,
) -> None:
    """Create an admin key directly in the database, if all admin keys are lost.

    It needs MEMLANE_DATABASE_URL, or the running local stack. Revoke the lost key afterwards.
    """
    url = recovery.database_url(*local())
    key = asyncio.run(recovery.recover(url, name))  # noqa: TID251  a separate process
    print_answer({"key": key}, key, as_json=as_json)


def _row(key: dict[str, Any]) -> dict[str, str]:
    ends = key["revoked_at"] or key["expires_at"]
    state = "revoked" if key["revoked_at"] else "expires" if ends else "active"
    return {
        "id": key["id"],
        "name": key["name"],
        "key": f"{key['prefix']}…",
        "scope": key["scope"],
        "member": key["member"] or "",
        "created": when(key["created_at"]),
        "state": f"{state} {when(ends)}".rstrip(),
    }
