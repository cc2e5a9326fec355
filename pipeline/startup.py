"""Start of a process: its settings, or a sentence that says why it cannot run."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from pydantic import SecretStr, ValidationError

from pipeline import settings
from pipeline.domain.errors import InvalidInput
from pipeline.settings import Settings

# Exit code of a process whose settings are refused: a restart does not help.
REFUSED = 2
LOOK_EVERY_S = 0.02


def load() -> Settings:
    """The settings of an API process, a worker or a sweeper, with the URL of each of its servers.

    Ends the process with the code REFUSED and a sentence on stderr if they are wrong.
    """
    try:
        configured = settings.load()
        require_servers(configured)
    except (InvalidInput, ValidationError) as error:
        sys.stderr.write(f"{sentence(error)}\n")
        sys.exit(REFUSED)
    return configured


def wait_for(start_file: Path | None) -> None:
    """Wait until the start file exists, if there is one.

    The supervisor starts a process before the database is migrated, so that it loads its modules
    at the same time. It may use a server only after this.
    """
    while start_file is not None and not start_file.exists():
        time.sleep(LOOK_EVERY_S)  # noqa: TID251  this process has no event loop yet


def require_servers(configured: Settings) -> None:
    """Check that each server has a URL. Errors: InvalidInput."""
    required(configured.database_url, "database_url")
    required(configured.broker_url, "broker_url")
    if configured.vectors == "chroma":
        required(configured.chroma_url, "chroma_url")
    if configured.vectors == "qdrant":
        required(configured.qdrant_url, "qdrant_url")
    if configured.graph_store == "bolt":
        required(configured.bolt_url, "bolt_url")


def required(value: str | SecretStr | None, name: str) -> str:
    """The value of a setting. Errors: InvalidInput if it is not set."""
    if value is None:
        raise InvalidInput(
            f"MEMLANE_{name.upper()} is not set. The local stack sets it for its own processes;"
            " a process started by itself needs it."
        )
    return value.get_secret_value() if isinstance(value, SecretStr) else value


def sentence(error: InvalidInput | ValidationError) -> str:
    """The error for a person."""
    return bad_values(error) if isinstance(error, ValidationError) else str(error)


def bad_values(error: ValidationError) -> str:
    """One line for each invalid variable, without its value, which may be secret.

    The message about several variables together names them itself.
    """
    lines = []
    for problem in error.errors():
        name = (settings.PREFIX + "__".join(map(str, problem["loc"]))).upper()
        text = problem["msg"].removeprefix("Value error, ")
        lines.append(f"{name}: {text}" if problem["loc"] else text)
    return "\n".join(lines)
