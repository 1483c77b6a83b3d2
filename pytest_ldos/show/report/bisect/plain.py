"""A search over commits for programs: JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final

from pytest_ldos.campaign.commits.result import CommitResult, Visited
from pytest_ldos.show.page.data_text import finite
from pytest_ldos.show.report.bisect.words import answer, explanation_of, remarks

KIND: Final = "pytest-ldos bisect"
SCHEMA: Final = 1


def to_plain(result: CommitResult) -> dict[str, Any]:
    """Everything that was found, as plain values."""
    template = result.template
    return {
        "kind": KIND,
        "schema": SCHEMA,
        "answer": answer(result),
        "finding": result.finding.value,
        "metric": result.metric.name,
        "scenario": None if template is None else template.scenario,
        "stack": None if template is None else template.stack,
        "good": asdict(result.good),
        "bad": asdict(result.bad),
        "commits": [asdict(each) for each in result.suspects],
        "confidence": result.plan.confidence,
        "explanation": explanation_of(result) or None,
        "remarks": list(remarks(result)),
        "measured": [_visited(each) for each in result.visited],
        "skipped": [{"commit": asdict(commit), "reason": reason} for commit, reason in result.skipped],
        "trials": result.trials,
        "starts": result.starts,
    }


def _visited(visited: Visited) -> dict[str, Any]:
    return {**asdict(visited), "low": finite(visited.low), "high": finite(visited.high)}
