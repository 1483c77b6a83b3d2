"""A diagnosis for a terminal, and for programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from pytest_ldos.base.text import Rendered, counted
from pytest_ldos.doctor.changes import Finding, Status
from pytest_ldos.doctor.diagnose import worst
from pytest_ldos.show.page.formats import Format, render, to_json
from pytest_ldos.show.page.model import Bullets, Cell, Column, Kind, Page, Section, Table, Text, Tone, Words

SCHEMA: Final = 1
_TONES: Final = {Status.OK: Tone.GOOD, Status.WARNING: Tone.DOUBT, Status.ERROR: Tone.BAD}
_COLUMNS: Final = (Column("status", Kind.WORD), Column("check", Kind.WORD), Column("finding", Kind.NAME))


def render_diagnosis(findings: Sequence[Finding], *, width: int, color: bool) -> Rendered:
    """A row per finding, the remedies, and a line with the counts of problems."""
    remedies = (_remedies([each for each in findings if (each.status is Status.OK) is ok]) for ok in (False, True))
    page = Page(
        title="",
        blocks=(
            Table(columns=_COLUMNS, rows=tuple(map(_row, findings))),
            *(Section(title, (each,)) for title, each in zip(("to do", "possible, too"), remedies, strict=True)),
            Section("", tuple(_summary(findings))),
        ),
    )
    return render(page, Format.TERMINAL, width=width, color=color)


def _row(finding: Finding) -> tuple[Cell, ...]:
    return Words(finding.status.value, _TONES[finding.status]), finding.name, finding.text


def _remedies(findings: Iterable[Finding]) -> Bullets:
    """Remedies on unbroken lines, so that they can be copied."""
    return Bullets(tuple(f"{each.name} → {each.remedy}" for each in findings if each.remedy), is_whole=True)


def _summary(findings: Sequence[Finding]) -> Iterator[Text]:
    counts = {status: sum(finding.status is status for finding in findings) for status in Status}
    parts = [counted(counts[each], each.value) for each in (Status.ERROR, Status.WARNING) if counts[each]]
    yield Text(", ".join(parts) or "nothing is wrong", _TONES[worst(findings)])
    if mendable := sum(finding.fix is not None for finding in findings):
        yield Text(f"{mendable} can be fixed: ldos doctor --fix")


def render_diagnosis_json(findings: Sequence[Finding], *, stack: str) -> Rendered:
    """The diagnosis as one JSON object; ``fix`` is what ``--fix`` would do, or null."""
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
