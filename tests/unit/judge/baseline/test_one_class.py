"""Machines of one class share baselines; those of different classes do not."""

from __future__ import annotations

import dataclasses

import pytest

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.judge.baseline.store import (
    BaselineStores,
    Calibrated,
    Found,
    NotComparable,
    Uncalibrated,
    find_baseline,
    find_calibration,
    merge_trials,
    save_calibration,
)
from pytest_ldos.judge.gate.case import Policy
from pytest_ldos.judge.gate.decide import decide
from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.measure.trial.artifacts import ScenarioFolder, read_trials, write_trials
from pytest_ldos.show.report.compose import compose
from pytest_ldos.show.report.markdown import render as render_markdown
from pytest_ldos.show.report.reasons import describe_reason
from pytest_ldos.show.report.terminal import render
from tests.builders.calibrations import calibration_of
from tests.builders.command_line import run_ldos
from tests.builders.reports import section_of
from tests.builders.trials import FINGERPRINT, noisy_set

ONE = dataclasses.replace(FINGERPRINT, hostname="lab-1", kernel="6.1")
TWO = dataclasses.replace(FINGERPRINT, hostname="lab-2", kernel="6.8", versions={"mujoco": "3.3"})
ELSEWHERE = dataclasses.replace(FINGERPRINT, hostname="lab-1", cores=8)


@pytest.fixture
def stores(tmp_path):
    return BaselineStores(tmp_path / "baselines", tmp_path / ".ldos" / "baselines")


def of(fingerprint, seed, **changes):
    trials = noisy_set(seed, fingerprint=fingerprint, **{"n": 20, **changes})
    own = (
        dataclasses.replace(each, block=each.index // 5, goal_id=f"{fingerprint.hostname}-{seed}-{each.index}")
        for each in trials.trials
    )
    return dataclasses.replace(trials, trials=tuple(own))


def test_baseline_of_the_same_host_class_is_found(stores):
    file = stores.save(of(ONE, 1), to_repository=True)
    found = find_baseline(stores, of(TWO, 2))
    assert isinstance(found, Found)
    assert found.file == file
    assert found.trials.fingerprint.hostname == "lab-1"


def test_calibration_of_the_same_host_class_is_found(stores):
    save_calibration(stores, calibration_of({}, fingerprint=ONE), to_repository=True)
    assert isinstance(find_calibration(stores, of(TWO, 2)), Calibrated)
    assert isinstance(find_calibration(stores, of(ELSEWHERE, 2)), Uncalibrated)


@pytest.mark.parametrize(
    "change",
    [
        {"cpu_model": "Other"},
        {"cores": 8},
        {"smt": "on"},
        {"governor": "powersave"},
        {"turbo": "on"},
        {"rmw": "fastdds"},
    ],
)
def test_each_property_of_a_host_class_separates_baselines(stores, change):
    """Also on one machine with other settings."""
    stores.save(of(ONE, 1), to_repository=True)
    found = find_baseline(stores, of(dataclasses.replace(ONE, **change), 2))
    assert isinstance(found, NotComparable)
    assert ONE.host_class in describe_reason(found.reason)


def test_report_names_the_machine_of_the_base(stores):
    document = compose([section_of(of(TWO, 2), of(ONE, 1))])
    for text in (render(document, width=160, color=False), render_markdown(document)):
        changed = "machine lab-1 → lab-2, mujoco 3.2 → 3.3, kernel 6.1 → 6.8"
        assert f"between these runs, the environment changed: {changed}" in text
    assert "machine" not in render(compose([section_of(of(ONE, 2), of(ONE, 1))]), width=160, color=False)


def test_trials_of_two_machines_are_merged_with_separate_starts():
    merged = merge_trials([of(TWO, 2), of(ONE, 1)])
    assert [each.index for each in merged.trials] == list(range(40))
    assert [each.block for each in merged.trials] == [number // 5 for number in range(40)]
    assert merged.spec.trials == 40
    assert merged.fingerprint.hostname == "lab-1 + lab-2"
    assert merged.fingerprint.host_class == ONE.host_class
    assert merged.fingerprint.versions == {"mujoco": "3.2 + 3.3"}
    assert {each.goal_id for each in merged.trials} == {
        each.goal_id for trials in (of(ONE, 1), of(TWO, 2)) for each in trials.trials
    }


def test_proofs_of_loads_stay_with_their_starts():
    proof = {"kind": "dds_flood", "shortfall": "", "summary": "x"}
    loads = ({**proof, "block": 0}, {**proof, "block": 4}, proof)
    merged = merge_trials([dataclasses.replace(each, loads=loads) for each in (of(ONE, 1), of(TWO, 2))])
    assert [each.get("block") for each in merged.loads] == [0, 4, None, 5, 9, None]
    assert [each.block for each in merged.trials] == [*(n // 5 for n in range(20)), *(5 + n // 5 for n in range(20))]


def test_merged_baseline_has_the_variance_between_machines():
    """The second machine is 40 % slower: a change against the first alone, within the noise of both."""
    slower = {"T1": 1.4, "T2": 1.4, "T4": 1.4}
    one, two = of(ONE, 1, cv=0.01), of(TWO, 2, cv=0.01, factors=slower)
    head = of(TWO, 3, cv=0.01, factors=slower)
    assert decide(head, one, Policy()).verdict is Verdict.REGRESSED
    assert decide(head, merge_trials([one, two]), Policy()).verdict is not Verdict.REGRESSED


@pytest.mark.parametrize(
    ("other", "why"),
    [
        (of(ELSEWHERE, 2), "host_class="),
        (of(TWO, 2, commit="fedcba987654"), "measured commits 0123456789ab and fedcba987654"),
        (of(TWO, 2, watched="perf"), "were watched"),
        (of(TWO, 2, metrics=()), "took different metrics"),
        (of(ONE, 1), "the same trials are given twice"),
    ],
)
def test_runs_that_cannot_be_merged_are_refused(other, why):
    with pytest.raises(ConfigurationError, match=why):
        merge_trials([of(ONE, 1), other])


def test_the_command_merges_runs_of_machines(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "250")
    for trials in (of(ONE, 1), of(TWO, 2)):
        write_trials(ScenarioFolder(tmp_path / trials.fingerprint.hostname / "baseline"), trials)
    done = run_ldos("baseline", "merge", "lab-1", "lab-2")
    assert done.returncode == 0
    assert done.stdout.startswith("baseline of 'baseline': 40 trials in 8 starts, from lab-1 + lab-2: ")
    assert len(read_trials(done.stdout.strip().rpartition(": ")[2]).trials) == 40
    assert "lab-1 + lab-2" in run_ldos("baseline", "list").stdout
    alone = run_ldos("baseline", "merge", "lab-1")
    assert alone.returncode == 2
    assert "there is only one run of 'baseline'" in alone.stderr
