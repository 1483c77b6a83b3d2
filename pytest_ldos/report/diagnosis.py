"""A diagnosis for a terminal, and for programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from pytest_ldos.doctor.diagnose import worst
from pytest_ldos.doctor.finding import Finding, Status
from pytest_ldos.report.console import print_to_text
from pytest_ldos.report.text import visible

SCHEMA: Final = 1
_STYLES: Final = {Status.OK: "green", Status.WARNING: "yellow", Status.ERROR: "bold red"}
_NARROWEST: Final = 60


def render_diagnosis(findings: Sequence[Finding], *, width: int, color: bool) -> str:
    """A line a finding, below it what to do about it, and a line that counts them."""
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for finding in findings:
        status = Text(finding.status.value, style=_STYLES[finding.status])
        table.add_row(status, Text(visible(finding.name)), _describe(finding))
    content: list[RenderableType] = [table, Text(), _summary(findings)]
    return print_to_text(Group(*content), width=max(width, _NARROWEST), color=color)


def _describe(finding: Finding) -> Text:
    text = Text(visible(finding.text))
    if finding.remedy:
        text.append(f"\n→ {visible(finding.remedy)}", style="dim" if finding.status is Status.OK else "cyan")
    return text


def _summary(findings: Sequence[Finding]) -> Text:
    counts = {status: sum(finding.status is status for finding in findings) for status in Status}
    parts = [_count(counts[status], status) for status in (Status.ERROR, Status.WARNING) if counts[status]]
    text = Text(", ".join(parts) or "nothing is wrong", style=_STYLES[worst(findings)])
    mendable = sum(finding.fix is not None for finding in findings)
    if mendable:
        text.append(f"; {mendable} can be mended from here: ldos doctor --fix", style="default")
    return text


def _count(number: int, status: Status) -> str:
    return f"{number} {status.value}{'' if number == 1 else 's'}"


def render_diagnosis_json(findings: Sequence[Finding], *, stack: str) -> str:
    """The same as one JSON object; ``fix`` is what ``--fix`` would do, or null."""
    document = {
        "schema": SCHEMA,
        "stack": stack,
        "status": worst(findings).value,
        "findings": [
            {
                "name": finding.name,
                "status": finding.status.value,
                "text": finding.text,
                "remedy": finding.remedy,
                "fix": finding.fix
                and {
                    "description": finding.fix.description,
                    "reversible": finding.fix.is_reversible,
                },
            }
            for finding in findings
        ],
    }
    return json.dumps(document, indent=2) + "\n"
