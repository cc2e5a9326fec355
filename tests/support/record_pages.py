"""Write the output blocks of documentation pages again, from a stack of its own:

    python -m tests.support.record_pages README.md docs/quickstart.md

Keys and list lengths stay as a page shows them; values become those of this run.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.support.pages import UUID, Block, Run, Shell, environment, parsed
from tests.support.stack import Stack

WIDTH = 150


def recorded(page: str, run: Run) -> str:
    """The page with the outputs of this run."""
    for _, shown, output in reversed(list(run_and_bind(page, run))):
        page = page[: shown.start] + written(shown, output, run) + page[shown.end :]
    return page


def run_and_bind(page: str, run: Run) -> list[tuple[Block, Block, str]]:
    steps = []
    for block, shown, output in run.steps(page):
        if shown is not None and shown.language == "json":
            bind(json.loads(shown.text), parsed(output), run)
            steps.append((block, shown, output))
    return steps


def bind(shown: Any, real: Any, run: Run) -> None:
    """Map the ids of the page to those of this run."""
    if isinstance(shown, dict):
        for key in shown.keys() & real.keys():
            bind(shown[key], real[key], run)
    elif isinstance(shown, list):
        for value, other in zip(shown, real, strict=False):
            bind(value, other, run)
    elif isinstance(shown, str) and isinstance(real, str) and UUID.fullmatch(shown):
        run.ids.setdefault(shown, real)


def written(shown: Block, output: str, run: Run) -> str:
    names = {real: name for name, real in run.ids.items()}
    return layout(shaped(json.loads(shown.text), parsed(output), names)) + "\n"


def shaped(shown: Any, real: Any, names: dict[str, str]) -> Any:
    """The real value, cut to the keys and lengths of the shown one; ids keep their shown names."""
    if isinstance(shown, dict) and isinstance(real, dict):
        return {key: shaped(shown[key], real[key], names) for key in shown}
    if isinstance(shown, list) and isinstance(real, list):
        return [shaped(value, other, names) for value, other in zip(shown, real, strict=False)]
    if isinstance(shown, str) and "…" in shown:
        return shown
    return names.get(real, real) if isinstance(real, str) else real


def layout(value: Any, indent: int = 0) -> str:
    """JSON text in which each value is on one line if it fits."""
    line = json.dumps(value, ensure_ascii=False)
    if len(line) + indent <= WIDTH or not isinstance(value, dict | list) or not value:
        return line
    inner = " " * (indent + 2)
    if isinstance(value, dict):
        parts = [f"{json.dumps(key)}: {layout(item, indent + 2)}" for key, item in value.items()]
    else:
        parts = [layout(item, indent + 2) for item in value]
    opening, closing = ("{", "}") if isinstance(value, dict) else ("[", "]")
    return f"{opening}\n{inner}" + f",\n{inner}".join(parts) + f"\n{' ' * indent}{closing}"


def main(names: list[str]) -> None:
    for name in names:
        with (
            tempfile.TemporaryDirectory() as folder,
            Stack(Path(folder) / "stack") as stack,
            Shell(environment(stack.environment, Path(folder)), Path(folder) / "errors") as shell,
        ):
            page = Path(name)
            run = Run(shell, stack.url, stack.data_dir)
            page.write_text(recorded(page.read_text("utf-8"), run), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
