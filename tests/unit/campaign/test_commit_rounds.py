"""Rounds: order, measurement and comparison."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from pytest_ldos.base.errors import BringUpFailed, LoadFailed
from pytest_ldos.base.series import Better, Missing
from pytest_ldos.campaign import commit_rounds as rounds
from pytest_ldos.campaign.bisection import Exclusion
from pytest_ldos.campaign.commit_rounds import (
    CommitFailed,
    Side,
    compare_round,
    measure_round,
    order_of,
    rounds_in,
)
from pytest_ldos.campaign.order import Role
from pytest_ldos.campaign.starts import Site
from pytest_ldos.campaign.versions.version import Version
from pytest_ldos.measure.metrics.catalogue import METRICS
from pytest_ldos.measure.trial import rig
from pytest_ldos.robot.stack.protocol import Installation
from pytest_ldos.scenario.model import ScenarioSpec
from tests.builders.trials import failed_trial, trial, trial_set
from tests.fakes.bench import Watching
from tests.fakes.rig import Motion, noisy, open_fake_rig

T1 = METRICS["T1"].description
SPEC = ScenarioSpec(name="baseline", trials=2)
VERSIONS = {
    side: Version(role=Role.BASE, name=side, commit=side, installation=Installation(f"/{side}/bin/python"))
    for side in Side
}


def side(*values):
    """Trials with these values of T1; ``None`` for a failed one."""
    return trial_set(
        [failed_trial(index) if each is None else trial(index, {"T1": each}) for index, each in enumerate(values)]
    )


def counts(good, commit, bad):
    records = {Side.GOOD: good, Side.COMMIT: commit, Side.BAD: bad}
    batch = compare_round(3, records, T1, range(len(good.trials)))
    return batch.trials, batch.broken, batch.sound


def test_orders_are_balanced_and_alternate_with_their_reverse():
    orders = [order_of(number) for number in range(6)]
    assert Counter((place, each) for order in orders for place, each in enumerate(order)) == {
        (place, each): 2 for place in range(3) for each in Side
    }
    assert all([*orders[number]] == [*orders[number + 1]][::-1] for number in (0, 2, 4))
    assert order_of(6) == order_of(0)


def test_pairs_with_good_and_bad_are_counted():
    assert counts(side(1, 1, 1), side(2, 0.5, 2), side(3, 3, 1.5)) == (3, 2, 2)


def test_failed_trial_is_the_worst_and_ties_do_not_count():
    assert counts(side(1, None, 2), side(None, None, 2), side(3, None, 2)) == (3, 1, 0)


def test_bad_is_compared_only_with_good():
    batch = compare_round(8, {Side.GOOD: side(1, 1), Side.COMMIT: side(2, 0.5)}, T1, range(2))
    assert (batch.trials, batch.broken, batch.sound) == (2, 1, 1)
    batch = compare_round(8, {Side.GOOD: side(1, None, 1), Side.COMMIT: side(1, None, None)}, T1, range(3))
    assert (batch.trials, batch.broken, batch.sound) == (3, 1, 1)


def test_direction_of_the_metric_is_respected():
    records = {Side.GOOD: side(2, 2), Side.COMMIT: side(1, 3)}
    batch = compare_round(8, records, replace(T1, better=Better.HIGHER, censored_by_failure=False), range(2))
    assert batch.broken == 1


def test_trials_without_a_value_do_not_count():
    absent = trial_set([trial(0, {"T1": Missing("no trace")}), trial(1, {"T1": 2.0})])
    assert counts(side(1, 1), absent, side(3, 3)) == (1, 1, 1)
    lost = trial_set([trial(0, {"T1": Missing("no trace")})])
    batch = compare_round(3, {Side.GOOD: side(1), Side.COMMIT: lost, Side.BAD: side(3)}, T1, range(1))
    assert batch.exclusion is Exclusion.UNMEASURED
    assert batch.reason == "no trial has a value of T1 on every side"
    assert (batch.succeeded, batch.unvalued) == (1, 1)


@pytest.fixture
def measure(monkeypatch, tmp_path):
    """Measures a round on fake stacks with a script per side."""

    def run(records=None, number=0, versions=VERSIONS, **scripts):
        def open_rig(spec, folder, *, installation, **rest):
            script = scripts.get(installation.python.split("/")[1], noisy(1))
            if isinstance(script, Exception):
                raise script
            return open_fake_rig(spec, folder, script=script)

        monkeypatch.setattr(rig, "open_rig", open_rig)
        site = Site(output=tmp_path, paths=(), observer=Watching())
        return measure_round(SPEC, site, versions, records or {}, number)

    return run


def test_rounds_add_equal_numbers_of_trials(measure, tmp_path):
    first = measure()
    both = measure(first, 1)
    assert {each: len(found.trials) for each, found in both.items()} == dict.fromkeys(Side, 4)
    assert rounds_in(first, 2) == 1
    assert rounds_in(both, 2) == 2
    assert len({trial.block for found in both.values() for trial in found.trials}) == 6
    assert len({tuple(trial.seed for trial in found.trials) for found in both.values()}) == 1
    assert {each: found.commit for each, found in both.items()} == {each: each.value for each in Side}
    assert not list((tmp_path / "runs").glob("*/*"))


def test_failed_stack_is_attributed_to_its_version(measure):
    with pytest.raises(CommitFailed, match=r"commit, block .: no controller"):
        measure(commit=BringUpFailed("no controller"))
    with pytest.raises(BringUpFailed, match=r"good, block .: no controller"):
        measure(good=BringUpFailed("no controller"))
    with pytest.raises(CommitFailed, match="commit: "):
        measure(commit=lambda index: Motion(error_code=None, message="the stack is gone"))


def test_unreached_load_is_an_error(measure, monkeypatch):
    monkeypatch.setattr(rounds, "shortfall_of", lambda trials: "2000 of 4000 Hz")
    with pytest.raises(LoadFailed, match="2000 of 4000 Hz"):
        measure()
