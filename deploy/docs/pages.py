"""The generated pages by file name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from deploy.docs import commands, export_format, failures, metrics, operations, settings

PAGES: Mapping[str, Callable[[], str]] = {
    "settings.md": settings.page,
    "failures.md": failures.page,
    "metrics.md": metrics.page,
    "operations.md": operations.page,
    "cli.md": commands.page,
    "export-format.md": export_format.page,
}
