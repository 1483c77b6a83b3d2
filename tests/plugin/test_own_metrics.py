"""Metrics that a user's conftest.py registers, as the user meets them."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET

import pytest

from pytest_ldos.base import exit_codes
from pytest_ldos.base.series import Better, Invalid
from pytest_ldos.measure.trial.artifacts import read_trials
from tests.plugin.conftest import SCENARIO

OWN = """
import os

def pytest_ldos_metrics():
    from pytest_ldos import api

    def cycles(context, window):
        begun = context.model.cycle_times_ns
        return ((begun >= window[0]) & (begun <= window[1])).sum() * float(os.environ.get("GRIPS", "1"))

    return [api.OwnMetric(name="grips", title="grips in a trial", unit="", better="higher", measure=cycles)]
"""

WRAPPER = """
import dataclasses
import pytest

class Wrapper:
    @pytest.hookimpl(wrapper=True)
    def pytest_ldos_metrics(self):
        groups = yield
        return [[dataclasses.replace(each, title="grips, wrapped") for each in group] for group in groups]

def pytest_configure(config):
    config.pluginmanager.register(Wrapper())
"""

WRONG = """
def pytest_ldos_metrics():
    from pytest_ldos import api

    return [api.OwnMetric(name="T1", title="mine", unit="ms", better="lower", measure=lambda context, window: 1.0)]
"""


@pytest.fixture
def own_folder(project):
    """Registers metrics in a folder below the project, whose scenario test alone they are for."""

    def write(conftest, name="own", *, baseline="baseline"):
        folder = project.mkdir(name)
        (folder / "conftest.py").write_text(conftest)
        (folder / f"test_{name}.py").write_text(SCENARIO.replace("mark.baseline", f'mark.baseline(name="{baseline}")'))

    return write


@pytest.mark.acceptance
def test_own_metric_is_in_every_output(run, project, own_folder, monkeypatch):
    own_folder(OWN)
    arguments = ("own", "--ldos-trials=20", "--ldos-warmup=0")
    run(*arguments, "--junitxml=junit.xml", "--ldos-benchmark-json=out.json").stdout.fnmatch_lines(
        ["*grips in a trial*", "benchmark JSON: *out.json; left out, as it holds only times to be minimised: grips"]
    )
    properties = {each.get("name"): each.get("value") for each in ET.parse(project.path / "junit.xml").iter("property")}
    assert float(properties["ldos.grips.median"]) == 47
    names = {each["name"] for each in json.loads((project.path / "out.json").read_text())["benchmarks"]}
    assert "baseline[T1]" in names
    assert "baseline[grips]" not in names  # the format knows seconds alone
    (file,) = project.path.glob(".ldos/runs/*/baseline/trials.json")
    assert read_trials(file).metrics[-1].better is Better.HIGHER
    monkeypatch.setenv("GRIPS", "0.5")
    worse = run(*arguments, stack="noisy(2)")
    assert worse.ret == exit_codes.REGRESSED
    worse.stdout.fnmatch_lines(["*grips (grips in a trial) regressed: -50.*"])


def test_metric_applies_to_its_folder_and_a_failing_one_affects_no_other(run, project, own_folder):
    own_folder(
        OWN.replace(
            "    def cycles(context, window):", "    def cycles(context, window):\n        assert window is None"
        ),
        baseline="own",
    )
    result = run("--ldos-trials=2", "--ldos-warmup=0")
    found = {file.parent.name: read_trials(file) for file in project.path.glob(".ldos/runs/*/*/trials.json")}
    without, with_own = sorted(found.values(), key=lambda trials: len(trials.metrics))
    assert "grips" not in {metric.name for metric in without.metrics}
    for trial in with_own.trials:
        assert isinstance(trial.measurements["grips"].value, Invalid)
        assert trial.measurements["T1"].number is not None
    result.stdout.fnmatch_lines(
        [
            "*grips cannot be trusted in 2 of 2 trials: grips could not be taken: AssertionError*(conftest.py:8 in cycles)"
        ]
    )
    assert result.ret == exit_codes.INVALID


def test_hook_wrapper_registers_nothing_itself(run, project, own_folder):
    own_folder(OWN + WRAPPER)
    result = run("own", "--ldos-trials=2", "--ldos-warmup=0")
    (file,) = project.path.glob(".ldos/runs/*/*/trials.json")
    assert read_trials(file).metrics[-1].title == "grips, wrapped"
    assert result.ret == 0


def test_invalid_own_metric_is_reported_before_measuring(run, project, own_folder):
    own_folder(WRONG)
    own_folder("def pytest_ldos_metrics(): pass", "nothing", baseline="nothing")
    own_folder("def pytest_ldos_metrics(): return ['age']", "text", baseline="text")
    result = run("own", "nothing", "text", "--ldos-trials=2")
    for line in (
        "*metric 'T1' (conftest.py:5) has the name of another metric: planning latency",
        "*pytest_ldos_metrics() gave None, no list of metrics",
        "*'age' was registered as a metric",
    ):
        result.stdout.fnmatch_lines([line])
    result.stdout.no_fnmatch_line("*starting the stack*")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert not list(project.path.glob(".ldos/runs/*/*/trials.json"))
