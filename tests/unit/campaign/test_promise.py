"""The gate's error rates for equal and changed versions."""

from __future__ import annotations

import math

import pytest

from pytest_ldos.campaign.calibrate import Prover, Share, suggest
from pytest_ldos.campaign.noise import Design, Pool, starts_of
from pytest_ldos.judge.gate.case import Policy
from tests.builders.starts import measured_run


def prover(*runs, draws=40):
    return Prover(Pool(runs[0], starts_of(runs)), Policy(), draws=draws)


@pytest.mark.parametrize("design", list(Design))
def test_equal_versions_are_rarely_regressed(design):
    promise = prover(measured_run(1, start_sd=0.05)).promise(design, 8)
    assert promise.alarms.count <= 1
    assert promise.alarms.draws == 40


def test_without_noise_starts_would_be_regressions():
    """Control of the test above: judged without noise, starts that differ by 30 % are regressions."""
    from pytest_ldos.campaign.noise import to_calibration
    from pytest_ldos.judge.gate.decide import decide
    from pytest_ldos.judge.gate.verdict import Verdict

    run = measured_run(1, start_sd=0.3, trials=12)
    whole = prover(run)
    pairs = list(whole._pairs(Design.SEQUENTIAL, 12, 40))
    naive = sum(decide(each.head, each.base, Policy()).verdict is Verdict.REGRESSED for each in pairs)
    known = Policy(calibrations={"baseline": to_calibration(run, whole.pool.starts)})
    assert naive > 8
    assert sum(decide(each.head, each.base, known).verdict is Verdict.REGRESSED for each in pairs) <= 1


def test_more_trials_detect_smaller_changes():
    whole = prover(measured_run(1), draws=10)
    mde = [whole.promise(Design.INTERLEAVED, trials).mde["T1"] for trials in (8, 60)]
    assert mde[-1] < 0.5 * mde[0]


def test_noise_is_held_out_with_enough_starts():
    whole = prover(measured_run(1), draws=4)
    assert whole.promise(Design.SEQUENTIAL, 8).held_out == 1
    enough = whole.promise(Design.SEQUENTIAL, 9)
    assert (enough.held_out, enough.modelled) == (0, 1)
    assert prover(measured_run(1, starts=4), draws=4).promise(Design.INTERLEAVED, 8).held_out == 0


@pytest.mark.acceptance
def test_injected_change_is_found_as_often_as_stated():
    whole = prover(measured_run(1))
    effect = whole.promise(Design.INTERLEAVED, 30).mde["T1"]
    found = whole.plant(Design.INTERLEAVED, "T1", trials=30, effect=effect, draws=40).found
    assert found.value >= 0.6
    assert whole.plant(Design.INTERLEAVED, "T1", trials=30, effect=2 * effect, draws=20).found.value == 1
    assert whole.plant(Design.INTERLEAVED, "T1", trials=30, effect=0.0, draws=20).found.value == 0


def test_drifting_runs_increase_the_mde_of_sequences():
    drifting = prover(measured_run(1, drift=0.5), draws=10)
    sequential, interleaved = (
        drifting.promise(design, 30).mde["T1"] for design in (Design.SEQUENTIAL, Design.INTERLEAVED)
    )
    assert sequential > 1.5 * interleaved


@pytest.mark.acceptance
def test_the_fewest_trials_for_a_change():
    whole = prover(measured_run(1), draws=20)
    promises = list(whole.promises(Design.INTERLEAVED, (8, 30, 60)))
    fewest = suggest(promises, Design.INTERLEAVED, effect=0.15).by_metric
    assert fewest["T2"] == 8
    assert fewest["T1"] in {30, 60}
    assert suggest(promises, Design.INTERLEAVED, effect=1e-6).by_metric["T1"] is None
    assert not suggest(promises, Design.SEQUENTIAL, effect=1.0).by_metric


def test_share_without_draws():
    assert (Share(0, 0).value, Share(0, 0).high) == (0.0, 1.0)
    assert math.isclose(Share(0, 200).high, 0.0183, abs_tol=1e-4)
