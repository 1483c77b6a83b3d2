"""Decides an interleaved session: the head is judged, but only if the measurement of the base is valid."""

from __future__ import annotations

from dataclasses import replace

from pytest_ldos.judge.gate.decide import GateResult, decide, judge_alone
from pytest_ldos.judge.gate.policy import Policy
from pytest_ldos.judge.gate.reasons import NotFinished, OfBase
from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.measure.trial.record import TrialSet


def decide_interleaved(head: TrialSet, base: TrialSet, policy: Policy) -> GateResult:
    """Compares two versions of one session.

    A stored baseline was judged when it was recorded; this base was not. If its measurement failed
    (a load was not reached, events were lost, trials are missing), the comparison is invalid, too.
    If it missed its success rate, the comparison stands, because only the head is judged.
    """
    return beside_measured_base(decide(head, base, policy), head, base, policy)


def beside_measured_base(result: GateResult, head: TrialSet, base: TrialSet, policy: Policy) -> GateResult:
    """The verdict, made `invalid` if the measurement of the base failed, unless head regressed by itself."""
    faults = _faults(base, policy)
    if not faults or result.verdict is Verdict.INVALID:
        return result
    if judge_alone(head, policy).verdict is Verdict.REGRESSED:  # it missed its own expectation, which needs no base
        return replace(result, reasons=(*result.reasons, *faults), more_trials_because=())
    return replace(result, verdict=Verdict.INVALID, reasons=(*faults, *result.reasons), more_trials_because=())


def _faults(base: TrialSet, policy: Policy) -> list[OfBase]:
    alone = judge_alone(base, policy)
    if alone.verdict is Verdict.INVALID:
        return [*map(OfBase, alone.reasons)]
    return [OfBase(NotFinished(base.incomplete))] if base.incomplete else []
