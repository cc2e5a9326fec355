"""Settings that are kept with the data, in `MEMLANE_DATA_DIR/env` (mode 600).

`up` writes the MEMLANE_… variables that it was started with, and the keys that LiteLLM reads from
the environment. Every command of the local stack reads them: a variable that the shell does not
have takes the value of the file, so a stack does not depend on the shell that starts it.

    MEMLANE_LLM__MODEL=openai/gpt-4o-mini
    MEMLANE_LLM__API_KEY='sk-…'          # quoted as in a shell; comments are allowed
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, replace
from pathlib import Path

from deploy.stack.failure import StackError
from deploy.stack.fingerprint import provider_names
from deploy.stack.layout import Layout, write_private
from pipeline.model_settings import MINILM, RULES
from pipeline.settings import PREFIX, Settings, require_known, secret_names

DATA_DIR = "MEMLANE_DATA_DIR"
DEFAULT, SECRET, OTHER_SECRET = "(default)", "(secret)", "(another secret)"
HEADER = "# Settings of this stack. `memlane settings` lists them; `memlane up` applies changes.\n"
_NAME = re.compile(r"[A-Z][A-Z0-9_]*")


@dataclass(frozen=True)
class SavedSettings:
    """The file, and the variables of the shell that started this command.

    `file`: the saved values. `shell`: the same kind of variables as the shell has them; an empty
    value asks for the default.
    """

    path: Path
    file: Mapping[str, str]
    shell: Mapping[str, str]

    @property
    def taken(self) -> list[str]:
        """Names that the shell does not have, so that the file's values count."""
        return sorted(self.file.keys() - self.shell.keys())

    def current(self, settings: Settings) -> dict[str, str]:
        """The values that count: those of the shell, else those of the file."""
        keys = {name for name in provider_names(settings) if not name.startswith(PREFIX)}
        values = {**self.file, **self.shell}
        return {
            name: value
            for name, value in sorted(values.items())
            if value and (name.startswith(PREFIX) or name in keys or name in self.file)
        }

    def differences(self, settings: Settings) -> dict[str, tuple[str, str]]:
        """Old and new value of each variable in which the shell differs from the file.

        None without a file. Secrets are masked.
        """
        if not self.path.exists():
            return {}
        current = self.current(settings)
        names = sorted(current.keys() | self.file.keys())
        return {
            name: _pair(name, self.file.get(name), current.get(name))
            for name in names
            if current.get(name) != self.file.get(name)
        }

    def write(self, values: Mapping[str, str]) -> None:
        """Replace the file."""
        lines = (f"{name}={shlex.quote(value)}\n" for name, value in sorted(values.items()))
        write_private(self.path, HEADER + "".join(lines))


def adopt(environment: MutableMapping[str, str] = os.environ) -> SavedSettings:  # noqa: TID251
    """Put the saved settings into this process's environment, where the shell has none.

    Child processes inherit them. Errors: StackError for a file that cannot be read.
    """
    path = own_layout(environment).env
    file = parse(path)
    shell = {
        name.upper(): value
        for name, value in environment.items()
        if name.upper().startswith(PREFIX) and name.upper() != DATA_DIR
    }
    others = {name for name in environment if name.endswith("_API_KEY") and name not in shell}
    shell |= {name: environment[name] for name in others | (file.keys() & environment.keys())}
    saved = SavedSettings(path, file, shell)
    environment.update({name: file[name] for name in saved.taken})
    return saved


def own_layout(environment: Mapping[str, str] = os.environ) -> Layout:  # noqa: TID251
    """The files of the stack of this shell. No other setting is read: a wrong one stops nothing."""
    given = {name.upper(): value for name, value in environment.items()}
    return Layout(Path(given.get(DATA_DIR) or ".memlane").expanduser().resolve())


def replace_environment(layout: Layout) -> None:
    """Replace the settings in this process's environment by the saved ones.

    Errors: StackError for a file that cannot be read.
    """
    environment = os.environ  # noqa: TID251  what the supervisor's children inherit
    file = parse(layout.env)
    for name in [name for name in environment if name.upper().startswith(PREFIX)]:
        if name.upper() != DATA_DIR:
            del environment[name]
    environment.update(file)


def override(saved: SavedSettings, values: Mapping[str, str]) -> SavedSettings:
    """The settings with these values, as if the shell had them; also in the environment."""
    os.environ.update(values)  # noqa: TID251  what child processes inherit
    return replace(saved, shell={**saved.shell, **values})


def take(saved: SavedSettings, values: Mapping[str, str]) -> SavedSettings:
    """The settings with these values as the saved ones; also in the environment, as `adopt`."""
    taken = replace(saved, file=values)
    os.environ.update({name: values[name] for name in taken.taken})  # noqa: TID251  as in `adopt`
    return taken


def parse(path: Path) -> dict[str, str]:
    """The variables in the file; none if there is no file.

    Errors: StackError that names the line's variable, never its value; InvalidInput for an unknown
    setting.
    """
    try:
        words = shlex.split(path.read_text(), comments=True)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise StackError(f"{path} cannot be read: {error.strerror}.") from None
    except ValueError as error:
        raise StackError(f"{path} is not a list of NAME='value': {error}.") from None
    values: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not _NAME.fullmatch(name):
            known = ", ".join(values) or "nothing"
            raise StackError(f"{path}: write NAME='value' on each line; read so far: {known}.")
        values[name] = value
    values.pop(DATA_DIR, None)
    require_known((name for name in values if name.startswith(PREFIX)), source=f"{path}: ")
    return values


def masked(name: str, value: str | None) -> str:
    """A value as it may be shown."""
    if not value:
        return DEFAULT
    hidden = name in secret_names() or name.endswith(("_API_KEY", "_PASSWORD", "_TOKEN"))
    return SECRET if hidden or value.lstrip().startswith("[") or "@" in value else value


def _pair(name: str, old: str | None, new: str | None) -> tuple[str, str]:
    shown = masked(name, old), masked(name, new)
    return (SECRET, OTHER_SECRET) if shown == (SECRET, SECRET) else shown


def downgrades(settings: Settings, *, llm: str, embedder: str) -> list[str]:
    """Sentences about changes that need a yes of their own, given the models in use before."""
    sentences = []
    if settings.llm.model == RULES and llm != RULES:
        sentences.append(
            f"The language model {llm} is replaced by {RULES}: fixed rules, which keep about a"
            " third of what a model keeps."
        )
    if settings.embedder.model != embedder:
        kind = ", in process" if settings.embedder.model == MINILM else ""
        sentences.append(
            f"The embedder {embedder} is replaced by {settings.embedder.model}{kind}, which needs"
            " `make reindex` first."
        )
    return sentences
