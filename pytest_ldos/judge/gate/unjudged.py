"""The verdict that the history stores for trials that were compared with nothing."""

from __future__ import annotations

from typing import Final

from pytest_ldos.judge.gate.decide import judge_alone
from pytest_ldos.judge.gate.policy import Policy
from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.measure.trial.record import TrialSet

UNJUDGED: Final = "unjudged"
"""Stored instead of a verdict for trials that were not compared with a baseline."""


def verdict_alone(trials: TrialSet, policy: Policy) -> str:
    """`UNJUDGED` if the trials themselves are valid; otherwise their verdict, which excludes them as an anchor."""
    verdict = judge_alone(trials, policy).verdict
    return UNJUDGED if verdict is Verdict.PASSED else verdict.value
