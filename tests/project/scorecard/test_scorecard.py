"""The scorecard itself, with so few runs that only its working shows."""

import dataclasses
import json
from collections import Counter

import numpy as np
import pytest
from rich.console import Console

from benchmarks.scorecard.bound import fewest_head_trials, power_of_failures, power_of_shift
from benchmarks.scorecard.data_sets.calibration import learn_noise
from benchmarks.scorecard.data_sets.chosen import DATA_SETS
from benchmarks.scorecard.data_sets.process import Process
from benchmarks.scorecard.environment import peers_environment
from benchmarks.scorecard.interval import clopper_pearson
from benchmarks.scorecard.main import run
from benchmarks.scorecard.plan import SMALL
from benchmarks.scorecard.sample import generator
from benchmarks.scorecard.unjudgeable import RULES, SHIFTS, judge_chunk
from pytest_ldos.judge.gate.verdict import Verdict

TINY = dataclasses.replace(
    SMALL,
    data_sets=tuple(data for data in DATA_SETS if data.name in {"recorded_in_turns", "seed"}),
    ours=2,
    ours_drifting=2,
    others=2,
    chunk=1,
    failures=2,
    shift_names=("+100%",),
)


def scorecard(folder, processes):
    with (folder / "log").open("w") as log:
        run(TINY, folder, console=Console(file=log, width=200), processes=processes, with_peers=False)
    return (folder / "scorecard.json").read_text(), (folder / "log").read_text()


@pytest.mark.acceptance
def test_a_scorecard_is_written_and_the_same_seed_gives_the_same(tmp_path):
    folders = [tmp_path / name for name in ("first", "second")]
    for folder in folders:
        folder.mkdir()
    (text, log), (again, _) = (scorecard(folder, count) for folder, count in zip(folders, (1, 2), strict=True))
    assert text == again
    card = json.loads(text)
    ours = card["rules"]["ours"]
    assert ours["false_alarm"]["runs"] == 4
    assert ours["power"]["+100%"]["by_data"]["seed"]["by_metric"]["baseline T4"]["runs"] == 2
    assert {"rate", "low", "high", "runs"} <= ours["power"]["failures 0→30%"].keys()
    assert card["rules"]["otava"]["missing"].endswith("it was not asked for")
    assert "Targets of ours" in log
    assert (folders[0] / "scorecard.svg").read_text().startswith("<?xml")


LONG = {"recorded_in_turns", "recorded_sequential"}


@pytest.mark.parametrize(
    "data",
    [pytest.param(each, marks=pytest.mark.acceptance) if each.name in LONG else each for each in DATA_SETS],
    ids=lambda data: data.name,
)
def test_data_set_draws_the_stated_numbers(data):
    for scenario in data.scenarios:
        batch = data.draw(scenario, 3, generator(data.name))
        assert set(data.metrics) <= set(batch.base.values)
        assert batch.runs == 3
        trials = 30 if batch.interleaved or data.name == "seed" else 10
        assert (batch.looks[-1].head, batch.looks[-1].base) == (trials, trials)
        assert (batch.head.trials, batch.base.trials) == (trials, trials)
        again = data.draw(scenario, 3, generator(data.name))
        np.testing.assert_array_equal(batch.head.values["T1"], again.head.values["T1"])
        planted = batch.with_shift("T1", 2.0)
        np.testing.assert_allclose(planted.head.values["T1"], 2 * batch.head.values["T1"])
        np.testing.assert_array_equal(planted.head.values["T2"], batch.head.values["T2"])
        if batch.interleaved:
            assert not set(batch.base.blocks) & set(batch.head.blocks)


def test_intervals_are_clopper_and_pearsons():
    rate = clopper_pearson(0, 10)
    assert (rate.low, rate.high) == (0.0, pytest.approx(0.3085, abs=1e-4))
    rate = clopper_pearson(5, 10)
    assert (rate.low, rate.high) == (pytest.approx(0.1871, abs=1e-4), pytest.approx(0.8129, abs=1e-4))
    with pytest.raises(ValueError, match="3 events in 2 runs"):
        clopper_pearson(3, 2)


def test_a_calibration_finds_the_noise_it_was_made_of():
    rng = np.random.default_rng(1)
    process = Process(trial_sd=0.1, start_sd=0.05)
    values = process.trials(process.levels(200, 6, rng), np.full(6, 5), rng).reshape(200, 6, 5)
    noise = learn_noise(values)
    assert noise.trial_sd == pytest.approx(0.1, rel=0.05)
    assert noise.start_sd == pytest.approx(0.05, rel=0.1)
    assert noise.run_sd == pytest.approx(0.05, rel=0.1)


def test_a_wandering_level_keeps_its_spread():
    levels = Process(trial_sd=0.0, start_sd=0.1, correlation=0.9).levels(4000, 10, np.random.default_rng(2))
    np.testing.assert_allclose(levels.std(axis=0), 0.1, rtol=0.05)
    assert np.corrcoef(levels[:, 0], levels[:, 1])[0, 1] == pytest.approx(0.9, abs=0.02)


def test_the_bound_of_a_shift_grows_from_the_budget_to_certainty():
    data = next(data for data in DATA_SETS if data.name == "heavy_tails")
    batch = data.draw("baseline", 200, generator("bound"))
    assert power_of_shift(batch, "T1", 1.0) == pytest.approx(0.01 / 20)
    assert power_of_shift(batch, "T1", 1.15) > 0.99


def test_the_bound_of_failures_is_what_a_binomial_allows():
    assert power_of_failures(base_trials=60, head_trials=30, rate=0.3) == pytest.approx(0.9698, abs=1e-3)


def test_tools_that_cannot_be_installed_are_named_with_the_reason(tmp_path):
    (tmp_path / "peers").write_text("in the way")
    peers = peers_environment(tmp_path)
    assert peers.python is None
    assert "could not be installed" in peers.reason


def test_the_best_test_needs_more_trials_for_smaller_shifts():
    data = next(data for data in DATA_SETS if data.name == "heavy_tails")
    batch = data.draw("baseline", 200, generator("fewest"))
    assert fewest_head_trials(batch, "T1", 2.0) == 10
    assert fewest_head_trials(batch, "T1", 1.02) == 30


@pytest.mark.acceptance
def test_noisy_machine_is_inconclusive_with_required_metrics_and_passes_by_default():
    every, own, _ = (
        Counter(each.verdict for each in judge_chunk(0, runs=4, rule=rule, shift=SHIFTS[0])) for rule in RULES
    )
    assert every == {Verdict.INCONCLUSIVE: 4}
    assert own == {Verdict.PASSED: 4}
