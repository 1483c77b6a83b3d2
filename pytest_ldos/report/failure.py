"""The message of a failed scenario test: all that is needed to act, as plain text."""

from __future__ import annotations

from pytest_ldos.gate.verdict import Verdict
from pytest_ldos.report.document import NEVER, MetricRow, Section
from pytest_ldos.report.text import visible


def render_failure(section: Section) -> str:
    """Verdict and reasons, each changed metric with its numbers, and where things lie."""
    lines = [f"scenario '{section.scenario}': {section.verdict} ({section.success})"]
    lines += [f"  {reason}" for reason in section.reasons]
    for row in section.rows:
        is_blind = row.verdict is Verdict.INCONCLUSIVE and row.detectable == NEVER
        if row.verdict not in {None, Verdict.PASSED, Verdict.NOT_COMPARABLE} and not is_blind:
            lines += _describe(row)
    lines += [f"  {line}" for line in (*section.sources, *section.explanations, *section.notes)]
    return visible("\n".join(lines))


def _describe(row: MetricRow) -> list[str]:
    return [
        f"  {row.name} {row.title}: {row.verdict}",
        f"    median            {row.measured} (baseline {row.baseline})",
        f"    change            {row.change}, interval {row.interval}",
        f"    reported from     {row.floor} on (floor)",
        f"    could have seen   {row.detectable}",
    ]
