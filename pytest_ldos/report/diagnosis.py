"""A diagnosis for a terminal, and for programs."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import Group
from rich.text import Text

from pytest_ldos.doctor.diagnose import worst
from pytest_ldos.doctor.finding import Finding, Status
from pytest_ldos.report.console import print_to_text
from pytest_ldos.text import visible

SCHEMA: Final = 1
_STYLES: Final = {Status.OK: "green", Status.WARNING: "yellow", Status.ERROR: "bold red"}
_NARROWEST: Final = 60
_STATUS_WIDTH: Final = max(len(status.value) for status in Status)
_GAP: Final = 2


def render_diagnosis(findings: Sequence[Finding], *, width: int, color: bool) -> str:
    """A line a finding, below it what to do about it, and a line that counts them.

    Remedies are not broken: they are to be copied.
    """
    width = max(width, _NARROWEST)
    names = max((len(finding.name) for finding in findings), default=0)
    lines = [line for finding in findings for line in _render_finding(finding, names, width)]
    return print_to_text(Group(*lines, _line(""), _summary(findings)), width=width, color=color)


def _render_finding(finding: Finding, names: int, width: int) -> Iterator[Text]:
    indent = _STATUS_WIDTH + _GAP + names + _GAP
    first, *rest = textwrap.wrap(
        visible(finding.text), width - indent, break_on_hyphens=False, break_long_words=False
    ) or [""]
    status = f"{finding.status.value:<{_STATUS_WIDTH + _GAP}}"
    rest_of_line = f"{visible(finding.name):<{names + _GAP}}{first}"
    yield Text.assemble((status, _STYLES[finding.status]), rest_of_line, no_wrap=True, overflow="ignore")
    yield from (_line(" " * indent + each) for each in rest)
    if finding.remedy:
        style = "dim" if finding.status is Status.OK else "cyan"
        yield _line(f"{' ' * indent}→ {visible(finding.remedy)}", style)


def _line(text: str, style: str = "") -> Text:
    return Text(text, style=style, no_wrap=True, overflow="ignore")


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
