"""Known runs: those pooled into the baseline, and the variation between all of them."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from pytest_ldos.host.interference import Interference
from pytest_ldos.judge.unchanged import (
    MOST_OF_BASELINE,
    MOST_RUNS,
    is_whole,
    keep_run,
    stack_of,
    with_known_runs,
)
from tests.builders.trials import FINGERPRINT, noisy_set, trial, trial_set


def run_of(number, *, level=0.0, sd=0.01, **changes):
    """A plain run of ten seeds, each with a level of its own, and the run with one."""
    rng = np.random.default_rng(number)
    seeds = np.random.default_rng(0).normal(0, 0.3, 10)
    values = 10 * np.exp(seeds + level + rng.normal(0, sd, 10))
    trials = [trial(at, {"T1": float(value)}, goal_id=f"{number:016x}{at:016x}") for at, value in enumerate(values)]
    return trial_set(trials, started_at=f"2026-01-{1 + number // 3:02}T{number % 24:02}:00:00+00:00", **changes)


def fingerprint(**versions):
    return dataclasses.replace(FINGERPRINT, versions=versions)


def test_runs_of_the_baselines_stack_are_the_baseline_together(tmp_path):
    baseline, head = run_of(0), run_of(9)
    for each in (baseline, run_of(1), run_of(2), run_of(3, fingerprint=fingerprint(mujoco="9")), head):
        keep_run(tmp_path / "baselines", each)
    together, known = with_known_runs(tmp_path / "baselines", baseline, head)
    assert len(together.trials) == 30
    assert [each.index for each in together.trials] == [*range(30)]
    assert len({each.block for each in together.trials}) == 3
    assert known.of_baseline == known.observed == 3
    assert together.started_at == baseline.started_at


def test_run_variation_is_estimated_from_all_repeated_stacks(tmp_path):
    levels = np.random.default_rng(1).normal(0, 0.05, 24)
    runs = [run_of(at, level=level, fingerprint=fingerprint(mujoco=str(at % 3))) for at, level in enumerate(levels)]
    for each in runs:
        keep_run(tmp_path / "baselines", each)
    _, known = with_known_runs(tmp_path / "baselines", runs[0], run_of(80))
    assert known.observed == 24
    assert known.days == 8
    found = known.between["T1"].runs
    assert found.degrees == 21
    of_stacks = [float(np.var(levels[at::3], ddof=1)) for at in range(3)]
    assert found.value == pytest.approx(np.mean(of_stacks), rel=0.15)


def test_without_other_runs_nothing_is_known(tmp_path):
    baseline = run_of(0)
    keep_run(tmp_path / "baselines", baseline)
    together, known = with_known_runs(tmp_path / "baselines", baseline, run_of(1))
    assert together == dataclasses.replace(baseline, trials=together.trials)
    assert (known.of_baseline, known.observed, dict(known.between)) == (1, 0, {})


def test_baseline_has_the_newest_runs_and_old_files_are_deleted(tmp_path):
    for number in range(MOST_RUNS + 5):
        keep_run(tmp_path / "baselines", run_of(number))
    assert len([*tmp_path.rglob("known/**/*.json")]) == MOST_RUNS
    together, known = with_known_runs(tmp_path / "baselines", run_of(1), run_of(2))
    assert known.of_baseline == MOST_OF_BASELINE
    assert len(together.trials) == 10 * MOST_OF_BASELINE


@pytest.mark.parametrize(
    "changes",
    [{"session": "one"}, {"watched": "perf"}, {"incomplete": "the stack died"}, {"stack_kind": "ros2", "commit": ""}],
)
def test_unsuitable_runs_are_not_kept(tmp_path, changes):
    keep_run(tmp_path / "baselines", run_of(1, **changes))
    assert not [*tmp_path.rglob("*.json")]


def test_changes_to_the_stack_are_recognised():
    plain = run_of(1)
    assert stack_of(plain) == stack_of(run_of(2)) == stack_of(dataclasses.replace(plain, commit="another"))
    slower = dataclasses.replace(
        plain.spec.stack, faults=dataclasses.replace(plain.spec.stack.faults, planning_delay_ms=5)
    )
    others = [
        run_of(1, fingerprint=fingerprint(mujoco="3.3")),
        run_of(1, fingerprint=dataclasses.replace(FINGERPRINT, kernel="6.2")),
        run_of(1, spec=dataclasses.replace(plain.spec, stack=slower)),
        run_of(1, influences={"PYTHONDEVMODE": "1"}),
    ]
    assert len({stack_of(each) for each in (plain, *others)}) == 5


def test_only_a_clean_commit_identifies_other_stacks():
    one, other, changed, unknown = (
        run_of(1, stack_kind="ros2", commit=commit) for commit in ("aaa", "bbb", "aaa+", "")
    )
    assert stack_of(one) != stack_of(other)
    assert stack_of(one)
    assert stack_of(changed) == stack_of(unknown) == ""


def test_commit_identifies_files_named_in_settings():
    spec = run_of(1).spec
    goals = dataclasses.replace(spec, stack=dataclasses.replace(spec.stack, goals="goals.yaml"))
    one, other, changed = (run_of(1, spec=goals, commit=commit) for commit in ("aaa", "bbb", "aaa+"))
    assert len({stack_of(one), stack_of(other), stack_of(changed)}) == 3
    assert stack_of(changed) == ""
    assert [is_whole(each) for each in (run_of(1), one)] == [True, False]


def under(others_s, run):
    """A run during which other programs used so many seconds of each ten of both CPUs."""
    found = Interference(seconds=10.0, cpus=2, others_s=others_s)
    return dataclasses.replace(run, trials=tuple(dataclasses.replace(each, interference=found) for each in run.trials))


@pytest.mark.parametrize(("others_s", "of_baseline", "observed"), [(0.1, 3, 3), (12.0, 2, 2)])
def test_only_runs_with_similar_disturbance_are_known(tmp_path, others_s, of_baseline, observed):
    """Runs under a foreign load vary by more: with them, a regression in a calm run would pass."""
    baseline = under(0.1, run_of(0))
    calm = [under(0.1, run_of(each)) for each in (1, 2)]
    disturbed = [under(12.0, run_of(each, level=0.5 * each)) for each in (3, 4)]
    for each in (baseline, *calm, *disturbed):
        keep_run(tmp_path / "baselines", each)
    together, known = with_known_runs(tmp_path / "baselines", baseline, under(others_s, run_of(9)))
    assert (known.of_baseline, known.observed) == (of_baseline, observed)
    assert len(together.trials) == 10 * of_baseline
    assert together.is_disturbed == (others_s > 1)
    assert (known.between["T1"].runs.value ** 0.5 < 0.05) == (others_s < 1)


def test_unreadable_file_is_not_a_known_run(tmp_path):
    baseline = run_of(0)
    for each in (baseline, run_of(1)):
        keep_run(tmp_path / "baselines", each)
    (file, *_) = sorted(tmp_path.rglob("known/**/*.json"), reverse=True)
    file.write_text("{")
    assert with_known_runs(tmp_path / "baselines", baseline, run_of(9))[1].of_baseline == 1


def test_repeated_question_counts_once(tmp_path):
    keep_run(tmp_path / "baselines", noisy_set(1))
    assert with_known_runs(tmp_path / "baselines", noisy_set(2), noisy_set(3))[1].observed in {0, 2}
