"""Sentences of a gate's result, as reports show them."""

from __future__ import annotations

from pytest_ldos.judge.gate.decide import GateResult
from pytest_ldos.show.report.reasons import describe_reasons


def sentences(result: GateResult) -> tuple[str, ...]:
    return describe_reasons(result.reasons)
