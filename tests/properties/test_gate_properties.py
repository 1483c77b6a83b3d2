"""Properties of every verdict, for any numbers."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_ldos.base.series import Better
from pytest_ldos.judge.baseline.key import MetricNoise
from pytest_ldos.judge.gate.case import Policy
from pytest_ldos.judge.gate.decide import decide
from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.measure.metrics.catalogue import METRICS
from pytest_ldos.measure.metrics.model import Measurement, Metric
from pytest_ldos.measure.trial.record import Look
from tests.builders.calibrations import calibration_of
from tests.builders.trials import TYPICAL, noisy_set, trial_set

SEEDS = st.integers(0, 2**20)
FACTORS = st.floats(0.4, 3.0)


def noise(start_sd: float) -> MetricNoise:
    return MetricNoise(trial_sd=0.05, start_sd=start_sd, start_df=9, run_sd=start_sd, run_df=9, floor=0.05)


def calibrated(start_sd: float) -> Policy:
    calibration = calibration_of(dict.fromkeys(METRICS, noise(start_sd)))
    return Policy(calibrations={"baseline": calibration})


POLICIES = st.sampled_from([Policy(), Policy(scenarios=4), calibrated(0.0), calibrated(0.02)])


def interleave(head, base, *, size=5):
    """Both versions as one session of ABBA blocks."""
    blocks = {"base": [], "head": []}
    for number in range(2 * -(-len(head.trials) // size)):
        blocks["base" if number % 4 in {0, 3} else "head"] += [number] * size

    def placed(trials, role):
        numbered = zip(trials.trials, blocks[role], strict=False)
        moved = tuple(dataclasses.replace(each, block=block) for each, block in numbered)
        return dataclasses.replace(trials, trials=moved, session="s")

    return placed(head, "head"), placed(base, "base")


@st.composite
def comparisons(draw):
    """Two sets with noise, an effect on one metric, failures on either side; sequential or interleaved."""
    seed, n = draw(SEEDS), draw(st.sampled_from([5, 10, 20]))
    metric, factor = draw(st.sampled_from(sorted(TYPICAL))), draw(FACTORS)
    failures = draw(st.tuples(st.integers(0, 3), st.integers(0, 3)))
    head = noisy_set(seed, n=n, factors={metric: factor}, failures=failures[0])
    base = noisy_set(seed + 1, n=n, failures=failures[1])
    if draw(st.booleans()):
        head, base = interleave(head, base)
    if draw(st.booleans()):
        last = Look(2 * n, 2 * n)
        head = dataclasses.replace(head, looks=(Look(n, n),), last_look=last)
    return head, base


def essence(result):
    """Invariants: the verdicts, and numbers up to rounding."""
    return result.verdict, {each.metric: each.verdict for each in result.comparisons}


def same_numbers(one, other):
    for mine in one.comparisons:
        yours = other.comparison(mine.metric)
        assert (mine.ratio, mine.low, mine.high, mine.p_value) == pytest.approx(
            (yours.ratio, yours.low, yours.high, yours.p_value), rel=1e-6
        )


@settings(max_examples=20, deadline=None)
@given(pair=comparisons(), policy=POLICIES, order=st.randoms(use_true_random=False))
def test_the_order_of_trials_within_blocks_does_not_matter(pair, policy, order):
    head, base = pair
    shuffled = []
    for _, block in itertools.groupby(head.trials, key=lambda trial: trial.block):
        trials = list(block)
        order.shuffle(trials)
        shuffled += trials
    one, other = decide(head, base, policy), decide(dataclasses.replace(head, trials=tuple(shuffled)), base, policy)
    assert essence(one) == essence(other)
    same_numbers(one, other)


@settings(max_examples=20, deadline=None)
@given(pair=comparisons(), policy=POLICIES, scale=st.sampled_from([1e-6, 0.001, 1000.0, 3600.0]))
def test_units_do_not_matter(pair, policy, scale):
    """The same in nanoseconds or in hours."""

    def scaled(trials):
        changed = [
            dataclasses.replace(
                each,
                measurements={
                    name: found if found.number is None else dataclasses.replace(found, value=found.number * scale)
                    for name, found in each.measurements.items()
                },
            )
            for each in trials.trials
        ]
        return dataclasses.replace(trials, trials=tuple(changed))

    one, other = decide(*pair, policy), decide(scaled(pair[0]), scaled(pair[1]), policy)
    assert essence(one) == essence(other)
    same_numbers(one, other)


@settings(max_examples=20, deadline=None)
@given(pair=comparisons(), policy=POLICIES, seed=SEEDS)
def test_an_unrelated_metric_changes_nothing_for_the_others(pair, policy, seed):
    rng = np.random.default_rng(seed)
    own = Metric(name="grip", title="grip force", unit="ms", better=Better.LOWER, error_share=0.02)

    def gripped(trials):
        changed = [
            dataclasses.replace(each, measurements={**each.measurements, "grip": Measurement(rng.lognormal(0, 0.05))})
            for each in trials.trials
        ]
        return dataclasses.replace(trials, trials=tuple(changed), metrics=(*trials.metrics, own))

    without, with_it = decide(*pair, policy), decide(gripped(pair[0]), gripped(pair[1]), policy)
    if with_it.comparison("grip").verdict is not Verdict.REGRESSED:
        without_it = tuple(each for each in with_it.comparisons if each.metric != "grip")
        assert without_it == without.comparisons
        if with_it.comparison("grip").verdict is Verdict.PASSED:
            assert with_it.verdict is without.verdict


@settings(max_examples=20, deadline=None)
@given(
    seed=SEEDS,
    metric=st.sampled_from(sorted(TYPICAL)),
    factors=st.lists(FACTORS, min_size=2, max_size=4),
    interleaved=st.booleans(),
    policy=POLICIES,
)
def test_larger_deterioration_never_looks_better(seed, metric, factors, interleaved, policy):
    """Once it is called a regression, everything worse is one."""
    base = noisy_set(seed + 1, n=10)
    found = []
    for factor in sorted(factors):
        pair = noisy_set(seed, n=10, factors={metric: factor}), base
        found.append(decide(*(interleave(*pair) if interleaved else pair), policy).comparison(metric))
    for smaller, larger in itertools.pairwise(found):
        assert larger.ratio >= smaller.ratio * (1 - 1e-9)
        assert larger.p_value <= smaller.p_value + 1e-12
        assert not (smaller.verdict is Verdict.REGRESSED and larger.verdict is not Verdict.REGRESSED)


@settings(max_examples=15, deadline=None)
@given(trials=st.sampled_from([(0, 10), (10, 0), (0, 0), (1, 1), (1, 10), (10, 1)]), seed=SEEDS, policy=POLICIES)
def test_unmeasured_is_never_a_pass(trials, seed, policy):
    """No trials on one side, or one."""

    def of(n, seed):
        return noisy_set(seed, n=n) if n else trial_set([])

    result = decide(of(trials[0], seed), of(trials[1], seed + 1), policy)
    assert result.verdict in {Verdict.INVALID, Verdict.INCONCLUSIVE}
    assert result.reasons


@settings(max_examples=20, deadline=None)
@given(pair=comparisons(), policy=POLICIES, failing=st.integers(1, 10))
def test_failures_are_never_an_improvement(pair, policy, failing):
    """The same trials, some of which failed: no verdict becomes better, and nothing improved."""
    head, base = pair
    base = dataclasses.replace(base, trials=tuple(each for each in base.trials if each.succeeded))
    failed = noisy_set(7, n=len(head.trials), failures=len(head.trials)).trials[:failing]
    broken = [
        dataclasses.replace(bad, index=good.index, block=good.block)
        for good, bad in zip(head.trials, failed, strict=False)
    ]
    worse = dataclasses.replace(head, trials=(*broken, *head.trials[len(broken) :]))
    before, after = decide(head, base, policy), decide(worse, base, policy)
    assert after.verdict not in {Verdict.PASSED, Verdict.IMPROVED} or before.verdict in {
        Verdict.PASSED,
        Verdict.IMPROVED,
    }
    assert all(each.verdict is not Verdict.IMPROVED for each in after.comparisons)
