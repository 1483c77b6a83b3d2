"""A diagnosis for a terminal, and for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from pytest_ldos.base.text import Rendered
from pytest_ldos.base.units import counted
from pytest_ldos.doctor.diagnose import worst
from pytest_ldos.doctor.finding import Finding, Status
from pytest_ldos.show.page.data_text import to_json
from pytest_ldos.show.page.lines import Line, line, print_to_text, wrapped
from pytest_ldos.show.page.model import Tone, Words

SCHEMA: Final = 1
_TONES: Final = {Status.OK: Tone.GOOD, Status.WARNING: Tone.DOUBT, Status.ERROR: Tone.BAD}
_NARROWEST: Final = 60
_TEXT: Final = 20
"""Columns that texts get in any case."""

_STATUS_WIDTH: Final = max(len(status.value) for status in Status)
_GAP: Final = 2


def render_diagnosis(findings: Sequence[Finding], *, width: int, color: bool) -> Rendered:
    """A line a finding, below it what to do about it, and a line that counts them.

    Remedies are not broken: they are to be copied.
    """
    width = max(width, _NARROWEST)
    names = max((Words(finding.name).width for finding in findings), default=0)
    lines = [each for finding in findings for each in _render_finding(finding, names, width)]
    return print_to_text([*lines, line(), _summary(findings)], color=color)


def _render_finding(finding: Finding, names: int, width: int) -> Iterator[Line]:
    indent = _STATUS_WIDTH + _GAP + names + _GAP
    first, *rest = wrapped(finding.text, max(width - indent, _TEXT), hang=0) or [line()]
    status = Words(f"{finding.status.value:<{_STATUS_WIDTH + _GAP}}", _TONES[finding.status])
    name = Words(finding.name)
    yield line(status, name, " " * (names - name.width + _GAP), *first.pieces)
    yield from (line(" " * indent, *each.pieces) for each in rest)
    if finding.remedy:
        yield line(f"{' ' * indent}→ {finding.remedy}", tone=Tone.QUIET if finding.status is Status.OK else Tone.STRONG)


def _summary(findings: Sequence[Finding]) -> Line:
    counts = {status: sum(finding.status is status for finding in findings) for status in Status}
    parts = [counted(counts[each], each.value) for each in (Status.ERROR, Status.WARNING) if counts[each]]
    mendable = sum(finding.fix is not None for finding in findings)
    more = [f"; {mendable} can be mended from here: ldos doctor --fix"] if mendable else []
    return line(Words(", ".join(parts) or "nothing is wrong", _TONES[worst(findings)]), *more)


def render_diagnosis_json(findings: Sequence[Finding], *, stack: str) -> Rendered:
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
    return to_json(document, indent=2)
