"""A breaking point for programs: JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final

from pytest_ldos.campaign.breaking_result import BreakingResult
from pytest_ldos.show.report.breaking.words import answer, cause_of, remarks

KIND: Final = "pytest-ldos breaking point"
SCHEMA: Final = 1


def to_plain(result: BreakingResult) -> dict[str, Any]:
    """Everything that was found, as plain values."""
    search, template = result.plan.search, result.template
    return {
        "kind": KIND,
        "schema": SCHEMA,
        "answer": answer(result),
        "finding": result.finding.value,
        "finished": result.is_finished,
        "address": result.plan.address,
        "criterion": result.plan.criterion.describe(),
        "limit": result.limit or None,
        "scenario": None if template is None else template.scenario,
        "stack": None if template is None else template.stack,
        "commit": None if template is None else template.commit,
        "range": {"low": search.scale.low, "high": search.scale.high, "spacing": search.scale.spacing.value},
        "confidence": search.confidence,
        "holds": result.holds,
        "breaks": result.breaks,
        "estimate": result.estimate,
        "estimate_by": None if result.estimate_by is None else result.estimate_by.value,
        "reached": result.reached,
        "trials": result.trials,
        "starts": result.starts,
        "remarks": list(remarks(result)),
        "levels": [asdict(each) for each in result.levels],
        "cause": None if result.cause is None else {**asdict(result.cause), "in_words": list(cause_of(result))},
    }
