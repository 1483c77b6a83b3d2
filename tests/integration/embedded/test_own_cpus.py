"""The stack alone on CPUs of its own, and everything else on the others."""

from __future__ import annotations

import json

import pytest

from pytest_ldos.host.cpu import describe_cpus, our_cpus
from tests.builders.needs import needs_stress_ng
from tests.integration.project import FAST

SEEN = """
import contextlib, json, os
from pathlib import Path
import psutil
from pytest_ldos.host.cpu import read_affinities, with_descendants
from pytest_ldos.measure.trial import rig

opened = rig.open_rig

@contextlib.contextmanager
def noted(*arguments, **settings):
    with opened(*arguments, **settings) as made:
        names, seen = made.stack.processes(), {}
        for pid in with_descendants([os.getpid()]):
            of_threads = read_affinities([pid]).values()
            seen.setdefault(names.get(pid) or psutil.Process(pid).name(), []).extend(map(sorted, of_threads))
        yield made
    Path("seen.json").write_text(json.dumps([seen, sorted(os.sched_getaffinity(0))]))

rig.open_rig = noted
"""

SCENARIO = """
import pytest

@pytest.mark.cpu_load
def test_reach(panda_stack, cpu_load, ldos_trials, ldos_gate):
    with cpu_load(workers=1, percent=20):
        trials = ldos_trials(panda_stack)
    ldos_gate.check(trials)
"""

LAST = max(our_cpus())
STACK = {"simulator", "move_group", "state_publisher"}


@pytest.mark.acceptance
@needs_stress_ng
@pytest.mark.skipif(len(our_cpus()) < 2, reason="one CPU leaves none for anything else")
def test_every_thread_of_the_stack_runs_on_its_cpus_and_all_else_on_others(project, leaves_no_process):
    others = our_cpus() - {LAST}
    project.write("pyproject.toml", f"{FAST}\ncpus = [{LAST}]\n")
    project.write("conftest.py", SEEN)
    project.write("test_scenario.py", SCENARIO)
    code, output = project.run("--ldos-trials=2", "--ldos-warmup=0", "--ldos-success-rate=0")
    assert code == 0, output
    seen, afterwards = json.loads((project.path / "seen.json").read_text())
    assert {*STACK, "goal_client", "lttng-sessiond"} <= seen.keys()
    expected = {name: [[LAST] if name in STACK else sorted(others)] * len(threads) for name, threads in seen.items()}
    assert seen == expected
    assert min(len(seen[name]) for name in STACK) > 1
    assert afterwards == sorted(our_cpus())
    assert f"stack on CPUs {LAST}, all else on {describe_cpus(others)}: " in output
    trials = project.saved("cpu_load")
    assert trials.fingerprint.stack_cpus == str(LAST)
    assert {load["cpus"] for load in trials.loads} == {describe_cpus(others)}
    assert all(trial.placed.on >= 0.99 * trial.placed.whole for trial in trials.motions)


@pytest.mark.acceptance
def test_an_unknown_process_is_refused_with_the_nearest_name_before_a_trial(project, leaves_no_process):
    project.write("pyproject.toml", f"{FAST}\ncpus = {{ move_grup = {LAST}, rest = {LAST} }}\n")
    code, output = project.run("--ldos-trials=1")
    assert code == 1, output
    assert "unknown process in [tool.ldos.stack] cpus: 'move_grup'" in output
    assert "did you mean 'move_group'?" in output
    assert "trial 1 of 1" not in output
