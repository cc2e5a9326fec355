"""A change of settings: the words that show it, and the yes that it needs."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from deploy.stack.fingerprint import changes
from deploy.stack.journal import State, read
from deploy.stack.layout import Layout, command_line
from deploy.stack.saved_settings import DEFAULT, SavedSettings, downgrades, masked
from pipeline.settings import MINILM, RULES, Settings

# Settings of the servers, of the port and of the index: all processes have to change together.
OF_ALL = {
    *("MEMLANE_HOST", "MEMLANE_PORT", "MEMLANE_DATABASE_URL", "MEMLANE_BROKER_URL"),
    *("MEMLANE_CHROMA_URL", "MEMLANE_QDRANT_URL", "MEMLANE_VECTORS", "MEMLANE_VECTOR_BUCKETS"),
    *("MEMLANE_EMBEDDER__MODEL", "MEMLANE_GRAPH_STORE", "MEMLANE_BOLT_URL"),
}
ONE_BY_ONE = "API and workers are replaced one by one; the others answer requests."
API_STOPS = "The only API process is replaced: requests fail for some seconds, nothing is lost."
ALL_STOP = "Everything restarts: the API does not answer for about a minute, nothing is lost."


@dataclass(frozen=True)
class SettingsChange:
    """New settings of a stack.

    `lines`: each setting that a person changed, with its old and new value. `downgrades`: sentences
    about a model that is given up. `how`: what happens to a running stack; None if none runs.
    """

    lines: Mapping[str, tuple[str, str]]
    downgrades: list[str]
    how: str | None

    @classmethod
    def of(
        cls,
        settings: Settings,
        layout: Layout,
        saved: SavedSettings,
        state: State | None,
        changed: Collection[str],
    ) -> SettingsChange:
        """The change to these settings.

        `state`: of the running stack. `changed`: names of the settings that it does not have yet.
        """
        last = state or read(layout)
        lines = saved.differences(settings)
        llm, embedder = settings.llm.model, settings.embedder.model
        if saved.path.exists():
            llm = saved.file.get("MEMLANE_LLM__MODEL", RULES)
            embedder = saved.file.get("MEMLANE_EMBEDDER__MODEL", MINILM)
        elif last is not None:  # started by a release that saved no settings
            llm, embedder = last.llm, last.embedder
            current = saved.current(settings)
            for name in changes(settings, last.salt, last.settings):
                if name in last.settings:
                    lines[name] = ("(before)", masked(name, current.get(name)))
        sentences = downgrades(settings, llm=llm, embedder=embedder)
        return cls(lines, sentences, _how(settings, state, changed))

    @property
    def rolls(self) -> bool:
        """True if the processes can be replaced one by one."""
        return self.how in (ONE_BY_ONE, API_STOPS)

    def agreed(self, *, sure: bool) -> bool:
        """Show the change, and ask at the terminal unless `sure`. True if it may be applied."""
        if not self.lines and not self.downgrades:
            if self.how:
                print(self.how, flush=True)
            return True
        print("Settings that change:")
        for name, (old, new) in self.lines.items():
            print(f"  {name}: {old} → {new}")
        for sentence in (*self.downgrades, *filter(None, [self.how])):
            print(sentence, flush=True)
        if sure or (sys.stdin.isatty() and input("Apply them? Type yes: ") == "yes"):
            return True
        unasked = command_line("up", "--yes")
        print(
            f"Nothing was changed. To apply them without a terminal: {unasked}. To keep what is"
            f" saved, unset these variables; an empty value means {DEFAULT}.",
            file=sys.stderr,
        )
        return False


def _how(settings: Settings, state: State | None, changed: Collection[str]) -> str | None:
    """The effect on a running stack; None without one."""
    if state is None:
        return None
    before = sum(name.partition("-")[0] == "api" for name in state.processes)
    alone = 1 in (before, settings.api_processes)
    if (
        state.reloads is None
        or OF_ALL & set(changed)
        or (alone and before != settings.api_processes)
    ):
        return ALL_STOP
    only_counts = set(changed) <= {"MEMLANE_WORKERS"}
    return API_STOPS if alone and not only_counts else ONE_BY_ONE
