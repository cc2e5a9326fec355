"""Settings in a manifest: those with which a restored stack works as before, without secrets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from deploy.stack.failure import StackError
from deploy.stack.saved_settings import SavedSettings, masked, take
from pipeline.backup.manifest import Manifest
from pipeline.settings import Settings, known_names

# Servers of a host: a copy that is restored elsewhere must not write to them.
_SERVERS = re.compile(r"MEMLANE_(BROKER|BOLT)_\w+|\w+_URL")
DIFFERENT = (
    "This stack has other settings than the backup:\n{lines}\nTo keep those of this stack, add"
    " --yes. To use those of the backup, set them in this shell, or in {path}."
)


@dataclass(frozen=True)
class RecordedSettings:
    """Settings of a stack for a manifest. `left_out`: names of secrets and of servers."""

    values: Mapping[str, str] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()

    @classmethod
    def of(cls, saved: SavedSettings, configured: Settings) -> RecordedSettings:
        """The settings in force; with the defaults that matter, if this host has a stack.

        Another host, which only reaches the database, does not know the settings of the stack.
        """
        current = saved.current(configured)
        values = _movable(current)
        if saved.path.exists():
            values |= choices(configured)
        return cls(values, tuple(sorted(current.keys() - values.keys())))


NO_SETTINGS = RecordedSettings()


def choices(configured: Settings) -> dict[str, str]:
    """Settings that decide how memories are made and found: a change of them needs a yes."""
    return {
        "MEMLANE_LLM__MODEL": configured.llm.model,
        "MEMLANE_EMBEDDER__MODEL": configured.embedder.model,
        "MEMLANE_VECTORS": configured.vectors,
        "MEMLANE_VECTOR_BUCKETS": str(configured.vector_buckets),
    }


def take_recorded(saved: SavedSettings, manifest: Manifest) -> SavedSettings:
    """The settings of the backup where the shell has none; those of the stack if any are saved."""
    return saved if saved.path.exists() else take(saved, _movable(manifest.settings))


def require_same(manifest: Manifest, saved: SavedSettings, configured: Settings) -> None:
    """Compare the settings in force with those of the backup. Errors: StackError that names them.

    A manifest of an earlier release has no settings, and equals any.
    """
    lines = [
        f"  {name}: {manifest.settings[name]} in the backup, {value} here"
        for name, value in choices(configured).items()
        if manifest.settings.get(name, value) != value
    ]
    if lines:
        raise StackError(DIFFERENT.format(lines="\n".join(lines), path=saved.path))


def _movable(values: Mapping[str, str]) -> dict[str, str]:
    """The settings that may leave a host: none that is secret, names a server, or is unknown."""
    known = known_names()
    return {
        name: value
        for name, value in values.items()
        if name in known and not _SERVERS.fullmatch(name) and masked(name, value) == value
    }
