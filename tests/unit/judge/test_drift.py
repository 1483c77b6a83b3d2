"""Drift over a session, and patterns that are not a drift."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from pytest_ldos.judge.summary import FEWEST_BLOCKS, find_drift
from pytest_ldos.show.report.document import Interleaving
from pytest_ldos.show.report.words import describe_interleaving
from tests.builders.trials import failed_trial, noisy_set, trial, trial_set


def drifting(change: float, seed: int = 1, pairs: int = 10, factor: float = 1.0, start_sd: float = 0.0):
    """Trials whose T1 changes by so much from the first pair of blocks to the last; two to a block."""
    rng = np.random.default_rng(seed)
    steps = np.repeat(change * np.arange(pairs) / (pairs - 1) + rng.normal(0, start_sd, pairs), 2)
    values = 10.0 * factor * (1 + steps) * rng.lognormal(0, 0.01, 2 * pairs)
    return trial_set(
        [trial(index, {"T1": float(value), "T3": 0.1}, block=index // 2 * 2) for index, value in enumerate(values)]
    )


def of(metric, drifts):
    return next(drift for drift in drifts if drift.metric == metric)


def test_a_drift_of_both_versions_is_found_and_sized():
    drift = of("T1", find_drift(drifting(0.2, 1), drifting(0.2, 2)))
    assert drift.change == pytest.approx(0.2 / 1.1, abs=0.03)
    assert drift.p_value < 0.001
    assert drift.is_notable


def test_difference_between_versions_is_no_drift():
    drift = of("T1", find_drift(drifting(0.0, 1, factor=3.0), drifting(0.0, 2)))
    assert abs(drift.change) < 0.03
    assert drift.p_value > 0.05


def one_a_block(trials):
    return dataclasses.replace(
        trials, trials=tuple(dataclasses.replace(each, block=2 * each.index) for each in trials.trials)
    )


def test_common_effect_of_seeds_does_not_count_twice():
    """Equal noise in both versions, as equal seeds give: as many drifts are found as of one version."""
    found = []
    for seed in range(300):
        head, base = one_a_block(noisy_set(seed)), one_a_block(noisy_set(seed, factors={"T1": 1.3}))
        found.append(of("T1", find_drift(head, base)).p_value < 0.05)
    assert np.mean(found) < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 300)


def test_differing_starts_are_not_a_drift():
    """The common effect of a start's trials is one random value."""
    found = [
        of("T1", find_drift(drifting(0.0, seed, start_sd=0.05), drifting(0.0, seed + 1000, start_sd=0.05)))
        for seed in range(300)
    ]
    assert np.mean([each.is_notable for each in found]) < 0.01 + 3 * np.sqrt(0.01 * 0.99 / 300)
    assert np.mean([each.p_value < 0.05 for each in found]) < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 300)


def test_failed_and_missing_trials_are_left_out_of_both():
    head = drifting(0.0)
    fewer = dataclasses.replace(head, trials=(failed_trial(0), *head.trials[1:]))
    assert of("T1", find_drift(fewer, head)).change == of("T1", find_drift(head, fewer)).change


def test_too_few_blocks_show_no_drift():
    few, enough = (drifting(0.5, pairs=count) for count in (FEWEST_BLOCKS // 2 - 1, FEWEST_BLOCKS // 2))
    assert find_drift(few, few) == ()
    assert of("T1", find_drift(enough, enough)).is_notable
    (_, text) = describe_interleaving(Interleaving(blocks=10, order=("base", "head") * 5))
    assert text == "drift: 10 blocks are too few to tell, 12 are needed"


def test_drift_is_reported_with_its_p_value():
    found = find_drift(drifting(0.2, 1), drifting(0.2, 2))
    (_, text) = describe_interleaving(Interleaving(blocks=20, order=("base", "head", "head", "base") * 5, drifts=found))
    assert text.startswith("drift over 20 blocks: T1 +")
    assert "T3 +0.0 % (p = 1)" in text
