"""Write the generated reference pages: `python -m deploy.docs`."""

from __future__ import annotations

from pathlib import Path

from deploy.docs.pages import PAGES

REFERENCE = Path("docs/reference")


def main() -> None:
    """Write all generated pages into docs/reference."""
    for name, page in PAGES.items():
        (REFERENCE / name).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
