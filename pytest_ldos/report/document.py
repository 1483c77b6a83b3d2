"""What a report says, before anybody decides how it looks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pytest_ldos.gate.verdict import Verdict

NEVER: Final = "–"
"""Stands for a change that no number of this run could have shown."""


@dataclass(frozen=True, kw_only=True)
class MetricRow:
    """One metric of a scenario.

    Attributes:
        measured: median of this run, as text; behind ``≈`` where it is approximate.
        cv: its coefficient of variation.
        adjusted: what is left of that when covariates are taken out; empty where there are none.
        baseline: median of the baseline; empty without one.
        change, interval: of head over base, as signed percentages; empty without a baseline.
        detectable: smallest change that would have been reported.
        verdict: ``None`` without a baseline.
        note: why there is no number.
    """

    name: str
    title: str
    measured: str
    cv: str
    adjusted: str = ""
    baseline: str = ""
    change: str = ""
    interval: str = ""
    floor: str = ""
    detectable: str = ""
    verdict: Verdict | None = None
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Section:
    """One scenario.

    Attributes:
        verdict: ``None`` where nothing was judged.
        success: ``10 of 10 trials succeeded``.
        reasons: why the verdict is what it is.
        sources: where numbers come from that are not from markers and probes, and in what they differ.
        explanations: which part of the causal chain gained the time.
        notes: where things lie, what else is worth knowing.
    """

    scenario: str
    verdict: Verdict | None
    success: str
    rows: tuple[MetricRow, ...]
    reasons: tuple[str, ...]
    notes: tuple[str, ...]
    explanations: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()


@dataclass(frozen=True)
class Document:
    """A report.

    Attributes:
        header: what was measured with what.
    """

    header: tuple[str, ...]
    sections: tuple[Section, ...]
