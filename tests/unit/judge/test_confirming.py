"""An interleaved comparison that confirms or refutes what a stored baseline found suspicious."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_ldos.judge.baseline.store import Found
from pytest_ldos.judge.gate.case import Policy
from pytest_ldos.judge.gate.reasons import NotConfirmed
from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.judge.judging import Grounds, Screen, judge
from tests.builders.trials import noisy_set, with_metric


def confirm(cv):
    """T1 was suspicious; T1mean, which is judged in its place, is clear."""
    stored = [noisy_set(seed, factors={"T1": factor}) for seed, factor in ((1, 1.3), (2, 1.0))]
    head, base = (
        with_metric(noisy_set(seed, cv={"T1": cv}, session="one"), "T1mean", typical=14.0, cv=0.02, seed=seed)
        for seed in (3, 4)
    )
    screen = Screen(head=stored[0], base=stored[1], suspicious=("T1",))
    return judge(head, Grounds(policy=Policy(), base=Found(base, Path("base.json")), screen=screen)).result


def test_a_suspicious_metric_that_is_as_good_interleaved_passes():
    assert confirm(0.02).verdict is Verdict.PASSED


@pytest.mark.parametrize("cv", [0.8, 3.0])
def test_a_suspicious_metric_that_cannot_be_judged_interleaved_is_inconclusive(cv):
    found = confirm(cv)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert NotConfirmed(("T1",)) in found.reasons
    assert found.more_trials_because
