"""The comparisons of one run, which share its probability of a false alarm."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field

from pytest_ldos.judge.baseline.calibration import Calibration
from pytest_ldos.judge.gate.decide import GateResult, Pair, decide_run, judge_alone
from pytest_ldos.judge.gate.policy import Policy
from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.measure.trial.record import TrialSet


@dataclass
class Family:
    """Collects the comparisons of one run, scenario by scenario."""

    _pairs: list[Pair] = field(default_factory=list)
    _calibrations: dict[str, Calibration] = field(default_factory=dict)

    def decide(self, head: TrialSet, base: TrialSet, policy: Policy) -> GateResult:
        """Returns the verdict on one more scenario. Error probability freed by earlier regressions is available to it.

        If the base's measurement is invalid, the comparison is not kept for later scenarios.
        """
        calibrations = {**self._calibrations, **policy.calibrations}
        pairs = [*self._pairs, (head, base)]
        result = decide_run(pairs, dataclasses.replace(policy, calibrations=calibrations))[-1]
        if judge_alone(base, policy).verdict is not Verdict.INVALID:
            self._pairs, self._calibrations = pairs, calibrations
        return result
