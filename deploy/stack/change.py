"""A change of settings: the words that show it, and the yes that it needs."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from deploy.stack.fingerprint import changes
from deploy.stack.journal import State, read
from deploy.stack.layout import Layout, command_line
from deploy.stack.rolling import COUNTS
from deploy.stack.saved_settings import DEFAULT, SavedSettings, downgrades, masked
from pipeline.model_settings import MINILM, RULES
from pipeline.settings import Settings

# Settings of the servers, of the port and of the index: all processes have to change together.
OF_ALL = {
    *("MEMLANE_HOST", "MEMLANE_PORT", "MEMLANE_DATABASE_URL", "MEMLANE_BROKER_URL"),
    *("MEMLANE_CHROMA_URL", "MEMLANE_QDRANT_URL", "MEMLANE_VECTORS", "MEMLANE_VECTOR_BUCKETS"),
    *("MEMLANE_EMBEDDER__MODEL", "MEMLANE_GRAPH_STORE", "MEMLANE_BOLT_URL"),
}
# Placeholder for an earlier value that is known by its hash only.
BEFORE = "(before)"
ONE_BY_ONE = "API and workers are replaced one by one; the others answer requests."
COUNTED = "Processes are added or drained; the others go on."
API_STOPS = "The only API process is replaced: requests fail for some seconds, nothing is lost."
ALL_STOP = "Everything restarts: the API does not answer for about a minute, nothing is lost."


@dataclass(frozen=True)
class SettingsChange:
    """New settings of a stack.

    `lines`: each setting that a person changed, with its old and new value. `edited`: the settings
    that were changed in the saved file since the stack started. `downgrades`: sentences about a
    model that is given up. `how`: what happens to a running stack; None if none runs.
    """

    lines: Mapping[str, tuple[str, str]]
    edited: Mapping[str, str]
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
        last = state or _last(layout, saved)
        lines = saved.differences(settings)
        current = saved.current(settings)
        others = changes(settings, last.salt, last.settings) if last else []
        edited = {
            name: masked(name, current.get(name))
            for name in others
            if last and name in last.settings and name not in lines
        }
        llm, embedder = (last.llm, last.embedder) if last else (RULES, settings.embedder.model)
        if saved.path.exists():
            llm = saved.file.get("MEMLANE_LLM__MODEL", llm)
            embedder = saved.file.get("MEMLANE_EMBEDDER__MODEL", MINILM)
        else:  # started by a release that saved no settings, or the file is lost
            lines |= {name: (BEFORE, value) for name, value in edited.items()}
            edited = {}
        sentences = downgrades(settings, llm=llm, embedder=embedder)
        return cls(lines, edited, sentences, _how(settings, state, changed))

    @property
    def rolls(self) -> bool:
        """True if the processes can be replaced one by one."""
        return self.how in (ONE_BY_ONE, API_STOPS, COUNTED)

    def _show(self) -> None:
        """Print the settings, what they give up, and what happens to a running stack."""
        if self.lines or self.edited or self.downgrades:
            print("Settings that change:")
        for name, (old, new) in self.lines.items():
            print(f"  {name}: {old} → {new}")
        for name, value in self.edited.items():
            print(f"  {name}: {BEFORE} → {value}")
        for sentence in (*self.downgrades, *filter(None, [self.how])):
            print(sentence, flush=True)

    def agreed(self, *, sure: bool) -> bool:
        """Show the change, and ask at the terminal unless `sure`. True if it may be applied."""
        needs_consent = bool(self.lines or self.downgrades)
        if needs_consent or self.how:
            self._show()
        if not needs_consent:
            return True
        if sure or (sys.stdin.isatty() and input("Apply them? Type yes: ") == "yes"):
            return True
        unasked = command_line("up", "--yes")
        print(
            f"Nothing was changed. To apply them without a terminal: {unasked}. To keep what is"
            f" saved, unset these variables; an empty value means {DEFAULT}.",
            file=sys.stderr,
        )
        return False


def _last(layout: Layout, saved: SavedSettings) -> State | None:
    """State of the last stack; None if only first starts, which failed, have left one."""
    state = read(layout)
    return state if state is not None and (state.served or saved.path.exists()) else None


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
    if set(changed) <= set(COUNTS):
        return COUNTED
    return API_STOPS if alone else ONE_BY_ONE
