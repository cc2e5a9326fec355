"""Findings of `memlane doctor`: the result of each check, and how they are shown."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from rich import box
from rich.table import Table
from rich.text import Text

from deploy.cli.context import screen


class CheckStatus(StrEnum):
    """Result of a check. Only FAIL changes the exit code."""

    OK = "ok"
    WARN = "warn"
    FAIL = "FAIL"


OK, WARN, FAIL = CheckStatus
COLOURS = {OK: "green", WARN: "yellow", FAIL: "bold red"}


@dataclass(frozen=True)
class Finding:
    """The result of one check. `advice`: what to do if it is not OK."""

    check: str
    status: CheckStatus
    text: str
    advice: str = ""


def show(findings: list[Finding]) -> int:
    """Print a line for each check. Returns exit code 1 if one failed."""
    table = Table(box=box.SIMPLE, show_header=False, pad_edge=False)
    for finding in findings:
        status = Text(finding.status, style=COLOURS[finding.status])
        text = Text(finding.text)
        if finding.advice and "Check MEMLANE_" not in finding.text:
            text.append(
                f"{'' if finding.text.endswith('.') else ':'} {finding.advice}", style="bold"
            )
        table.add_row(status, finding.check, text)
    screen().print(table)
    return int(any(finding.status is FAIL for finding in findings))
