"""Time taken by other processes is subtracted only from the latencies that contain it."""

from __future__ import annotations

import dataclasses
import random

import pytest

from pytest_ldos.judge.gate.case import Case, Policy
from pytest_ldos.judge.gate.decide import decide
from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.measure.metrics.model import PLANS_WAITED_FOR_OTHERS, WAITED_FOR_OTHERS
from tests.builders.trials import noisy_set

POLICY = Policy(floors={"T1": 0.05})


def delayed(trials, *, most_ms, seed, known_share=1.0, unknown=()):
    """Trials in which other processes delayed the planner by some milliseconds; a share of that is known, except for some trials."""
    rng, changed = random.Random(seed), []
    for each in trials.trials:
        taken, planning = rng.uniform(0, most_ms), each.measurements["T1"]
        details = {} if each.index in unknown else {WAITED_FOR_OTHERS: known_share * taken}
        longer = dataclasses.replace(planning, value=planning.number + taken, details=details)
        changed.append(dataclasses.replace(each, measurements={**each.measurements, "T1": longer}))
    return dataclasses.replace(trials, trials=tuple(changed))


def t1(head, base):
    return decide(head, base, POLICY).comparison("T1")


def test_version_delayed_by_other_processes_is_not_slower():
    head, base = (noisy_set(seed, n=30, session="one") for seed in (1, 2))
    busy, quiet = delayed(head, most_ms=12, seed=3), delayed(base, most_ms=0, seed=4)
    assert t1(busy, quiet).verdict is Verdict.PASSED
    assert t1(busy, quiet).ratio == pytest.approx(t1(head, base).ratio)
    assert t1(delayed(head, most_ms=12, seed=3, unknown=range(30)), quiet).verdict is Verdict.REGRESSED


def test_slower_version_is_found_with_other_processes():
    head = noisy_set(1, n=30, factors={"T1": 1.2}, session="one")
    base = noisy_set(2, n=30, session="one")
    sides = delayed(head, most_ms=12, seed=3), delayed(base, most_ms=12, seed=4)
    assert t1(*sides).verdict is Verdict.REGRESSED
    assert t1(*sides).ratio == pytest.approx(1.2, rel=0.1)


@pytest.mark.parametrize("side", [0, 1])
def test_nothing_is_subtracted_if_one_trial_is_unknown(side):
    unknown = [(), ()]
    unknown[side] = (7,)
    sets = [delayed(noisy_set(seed), most_ms=5, seed=seed, unknown=unknown[seed]) for seed in (0, 1)]
    case = Case.of(*sets)
    assert case.series("T1") == (case.head_series["T1"], case.base_series["T1"])


def test_no_more_than_the_latency_is_subtracted():
    sets = [delayed(noisy_set(seed), most_ms=50, seed=seed, known_share=10.0) for seed in (0, 1)]
    case = Case.of(*sets)
    assert case.series("T1") == (case.head_series["T1"], case.base_series["T1"])


def test_only_metrics_that_contain_planning_change():
    head, base = (delayed(noisy_set(seed), most_ms=5, seed=seed) for seed in (0, 1))
    case = Case.of(head, base)
    assert case.series("T2") == (case.head_series["T2"], case.base_series["T2"])
    for name in ("T1", "T4"):
        ours, _ = case.series(name)
        taken = case.head_series[name].covariates[WAITED_FOR_OTHERS]
        assert ours.values == tuple(map(float.__sub__, case.head_series[name].values, taken))


def test_planning_mean_is_corrected():
    def taken(trials, ms):
        changed = []
        for each in trials.trials:
            details = {PLANS_WAITED_FOR_OTHERS: ms}
            plans = dataclasses.replace(each.measurements["T1"], value=12.0 + ms, details=details)
            changed.append(dataclasses.replace(each, measurements={**each.measurements, "T1mean": plans}))
        return dataclasses.replace(trials, trials=tuple(changed))

    case = Case.of(taken(noisy_set(0), 3.0), taken(noisy_set(1), 0.0))
    ours, theirs = case.series("T1mean")
    assert set(ours.values) == set(theirs.values) == {12.0}
