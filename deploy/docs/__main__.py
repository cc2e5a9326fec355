"""Write the generated reference pages and the dashboard: `python -m deploy.docs`."""

from __future__ import annotations

from pathlib import Path

from deploy.docs.dashboards import dashboard
from deploy.docs.pages import PAGES

REFERENCE = Path("docs/reference")
DASHBOARD = Path("deploy/monitoring/dashboards/memlane.json")


def main() -> None:
    """Write all generated pages into docs/reference, and the dashboard."""
    for name, page in PAGES.items():
        (REFERENCE / name).write_text(page(), encoding="utf-8")
    DASHBOARD.write_text(dashboard(), encoding="utf-8")


if __name__ == "__main__":
    main()
