"""The generated pages by file name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from deploy.docs import failures, metrics, operations, settings

PAGES: Mapping[str, Callable[[], str]] = {
    "settings.md": settings.page,
    "failures.md": failures.page,
    "metrics.md": metrics.page,
    "operations.md": operations.page,
}
