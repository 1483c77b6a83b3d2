"""A diagnosis of this machine, for a terminal and for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from pytest_ldos.base.text import Rendered, counted
from pytest_ldos.doctor.changes import Finding, Status
from pytest_ldos.doctor.diagnose import worst
from pytest_ldos.show.page.formats import Format, render, to_json
from pytest_ldos.show.page.model import Bullets, Page, Section, Table, Text, Tone, Words, names, words

SCHEMA: Final = 1
_TONES: Final = {Status.OK: Tone.GOOD, Status.WARNING: Tone.DOUBT, Status.ERROR: Tone.BAD}
_COLUMNS: Final = (*words("status", "check"), *names("finding"))


def render_diagnosis(findings: Sequence[Finding], *, width: int, color: bool) -> Rendered:
    """A row per finding, the remedies, on unbroken lines to be copied, and a line with the counts of problems."""
    rows = tuple((Words(each.status.value, _TONES[each.status]), each.name, each.text) for each in findings)
    remedies: dict[str, list[str]] = {"to do": [], "possible, too": []}
    for each in findings:
        if each.remedy:
            remedies["possible, too" if each.status is Status.OK else "to do"].append(f"{each.name} → {each.remedy}")
    page = Page(
        title="",
        blocks=(
            Table(columns=_COLUMNS, rows=rows),
            *(Section(title, (Bullets(tuple(lines), is_whole=True),)) for title, lines in remedies.items()),
            Section("", tuple(_summary(findings))),
        ),
    )
    return render(page, Format.TERMINAL, width=width, color=color)


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
                and {"description": finding.fix.description, "reversible": finding.fix.is_reversible},
            }
            for finding in findings
        ],
    }
    return to_json(document, indent=2)
