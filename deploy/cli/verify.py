"""memlane verify: compare the rows of a project with their seals."""

from __future__ import annotations

import typer

from deploy.cli.context import AsJson, options, print_json


def verify(context: typer.Context, as_json: AsJson = False) -> None:
    """Name the rows of the key's project that were changed in the database. Exit code 1 if any."""
    with options(context).connect() as api:
        answer = api.get("/v1/verify/")
    if as_json:
        print_json(answer)
    else:
        print(f"{answer['sealed']} rows sealed, {answer['waiting']} not yet.")
        for fault in answer["faults"]:
            print(f"{fault['problem']}: {fault['kind']} {fault['id']} {fault['number']}")
    raise typer.Exit(0 if answer["ok"] else 1)
