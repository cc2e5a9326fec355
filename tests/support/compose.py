"""deploy/docker/compose.yaml as values."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).resolve().parents[2] / "deploy" / "docker"


@dataclass(frozen=True)
class ComposeService:
    """A service of compose.yaml; `ours` tells if it runs Memlane's image."""

    name: str
    ours: bool
    command: tuple[str, ...]
    environment: dict[str, str]
    ports: tuple[str, ...]
    raw: dict[str, Any]

    @property
    def module(self) -> str:
        assert self.command[:2] == ("python", "-m"), self.command
        return self.command[2]


@cache
def services() -> dict[str, ComposeService]:
    parsed = yaml.safe_load((FOLDER / "compose.yaml").read_text("utf-8"))
    return {name: _service(name, raw) for name, raw in parsed["services"].items()}


def _service(name: str, raw: dict[str, Any]) -> ComposeService:
    return ComposeService(
        name=name,
        ours=raw["image"] == "memlane",
        command=tuple(raw.get("command", ())),
        environment=raw.get("environment", {}),
        ports=tuple(raw.get("ports", ())),
        raw=raw,
    )


def example_values() -> dict[str, str]:
    """The variables of .env.example."""
    text = (FOLDER / ".env.example").read_text("utf-8")
    return dict(re.findall(r"^([A-Z_]+)=(.*)$", text, re.MULTILINE))
