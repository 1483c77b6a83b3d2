"""Pairs of equal versions, drawn from measured starts."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_ldos.campaign.noise import Design, Pool, assemble, plant, starts_of
from pytest_ldos.judge.gate.case import fractions_of
from pytest_ldos.measure.trial.record import Look, all_series
from tests.builders.starts import measured_run
from tests.builders.trials import noisy_set


def pool_of(*runs):
    return Pool(runs[0], starts_of(runs))


def draws(pool, design, trials, count=40, seed=1):
    rng = np.random.default_rng(seed)
    return [pool.draw(rng, design, trials) for _ in range(count)]


def starts_in(pool, trials):
    """Numbers of the starts of a set's trials."""
    origin = {value_of(each): number for number, start in enumerate(pool.starts) for each in start.trials}
    return {origin[value_of(each)] for each in trials.trials}


def value_of(trial):
    return trial.measurements["T1"].number


@pytest.mark.parametrize("design", list(Design))
@pytest.mark.parametrize("trials", [3, 8, 30])
def test_both_versions_have_the_requested_trials(design, trials):
    for pair in draws(pool_of(measured_run(1)), design, trials):
        assert len(pair.head.trials) == len(pair.base.trials) == trials
        assert [each.index for each in pair.head.trials] == list(range(trials))


def test_in_a_sequence_the_base_is_earlier():
    pool = pool_of(measured_run(1))
    for pair in draws(pool, Design.SEQUENTIAL, 8):
        (base,), (head,) = starts_in(pool, pair.base), starts_in(pool, pair.head)
        assert base < head
        assert pair.used == {base, head}
        assert not pair.is_modelled
        assert pair.head.session == pair.base.session == ""


def test_sides_come_from_different_runs():
    pool = pool_of(measured_run(1, starts=3), measured_run(2, starts=3))
    for pair in draws(pool, Design.SEQUENTIAL, 8):
        base, head = (pool.starts[next(iter(starts_in(pool, side)))].run for side in (pair.base, pair.head))
        assert (base, head) == (0, 1)


def test_interleaved_blocks_form_pairs():
    pool = pool_of(measured_run(1, starts=10))
    for pair in draws(pool, Design.INTERLEAVED, 10):
        base, head = ({each.block for each in side.trials} for side in (pair.base, pair.head))
        assert (base, head) == ({0, 3, 5, 6, 9}, {1, 2, 4, 7, 8})
        assert pair.head.session == pair.base.session != ""
        assert not starts_in(pool, pair.base) & starts_in(pool, pair.head)


def test_trials_of_a_start_are_unchanged():
    pool = pool_of(measured_run(1))
    measured = {each.goal_id: each.measurements for start in pool.starts for each in start.trials}
    for pair in draws(pool, Design.INTERLEAVED, 8):
        assert all(each.measurements == measured[each.goal_id] for each in (*pair.head.trials, *pair.base.trials))


@pytest.mark.parametrize(("design", "trials"), [(Design.SEQUENTIAL, 9), (Design.INTERLEAVED, 40)])
def test_additional_trials_are_modelled_and_marked(design, trials):
    assert all(pair.is_modelled for pair in draws(pool_of(measured_run(1)), design, trials))


def test_modelled_starts_keep_the_variance_between_starts():
    """Equals the true variance, without the noise of few trials."""
    pool = pool_of(measured_run(5, starts=30, trials=10, start_sd=0.05))
    differences = [
        np.diff([np.log(all_series(side)["T1"].finite).mean() for side in (pair.base, pair.head)])[0]
        for pair in draws(pool, Design.SEQUENTIAL, 60, count=80)
    ]
    expected = np.sqrt(2 * (0.05**2 + 0.1**2 / 60))
    assert np.std(differences) == pytest.approx(expected, rel=0.35)


def test_modelled_starts_of_equal_starts_are_equal():
    pool = pool_of(measured_run(3, starts=30, trials=10, start_sd=0.0))
    differences = [
        np.diff([np.log(all_series(side)["T1"].finite).mean() for side in (pair.base, pair.head)])[0]
        for pair in draws(pool, Design.SEQUENTIAL, 60, count=80)
    ]
    assert np.std(differences) == pytest.approx(np.sqrt(2 * 0.1**2 / 60), rel=0.35)


def test_failed_trials_stay_failed():
    pool = pool_of(measured_run(1, failures=2))
    for pair in draws(pool, Design.SEQUENTIAL, 20, count=5):
        assert 0 < pair.head.successes < 20


def test_same_seed_draws_the_same_pair():
    pool = pool_of(measured_run(1))
    assert draws(pool, Design.INTERLEAVED, 30, count=3) == draws(pool, Design.INTERLEAVED, 30, count=3)


def test_injected_change_affects_one_metric():
    plain = measured_run(1)
    series, changed = all_series(plain), all_series(plant(plain, "T1", 0.15))
    assert changed["T1"].values == pytest.approx([1.15 * value for value in series["T1"].values])
    assert all(changed[name] == series[name] for name in series if name != "T1")


def test_assembled_set_has_no_looks():
    looked = noisy_set(1, looks=(Look(5, 5), Look(10, 10)), last_look=Look(30, 30))
    made = assemble(looked, [(0, looked.trials[:5]), (3, looked.trials[5:])])
    assert (made.looks, made.last_look) == ((), None)
    assert fractions_of(made, made) == (1.0,), "all that there is to know is there"
