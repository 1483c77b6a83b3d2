"""A measuring test runs once, even if plugins rerun tests: its first verdict decides the exit status."""

from __future__ import annotations

import pytest

from pytest_ldos.campaign.sweep import all_sweeps
from pytest_ldos.judge.baseline.history import HistoryStore

FAST = ("--ldos-trials=4", "--ldos-warmup=0", "--ldos-success-rate=0.9")

FAILS_FIRST = (
    "lambda i, count=__import__('itertools').count():"
    " Motion(error_code=-31, message='no joints reach it') if next(count) < 4 else noisy(1)(i)"
)
"""A stack whose first four trials fail, and no later ones: measured again, it passes."""

RERUNNING_PLUGINS = {
    "rerunfailures-forced": ("pytest_rerunfailures", ["--force-reruns=2"]),
    "flaky": ("flaky", ["-pflaky.flaky_pytest_plugin", "--force-flaky", "--max-runs=3"]),
    "retry": ("pytest_retry", ["-ppytest_retry.retry_plugin", "--retries=2"]),
}
"""Other options of pytest-rerunfailures have tests of their own below."""

PROTOCOL = """
from _pytest.runner import runtestprotocol

def pytest_runtest_protocol(item, nextitem):
    for attempt in range(3):
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
        if attempt == 2 or not any(report.failed for report in reports):
            break
        item._initrequest()
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    return True
"""
"""Runs a failed test again, and reports its last run."""

BODY = """
import pytest

@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    try:
        return (yield)
    except BaseException:
        return item.runtest()
"""
"""Runs the function of a failed test again, with the same fixtures."""

FUNCTION = """
import pytest

@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    for _ in range(3):
        try:
            pyfuncitem.obj(**arguments)
        except BaseException as error:
            failure = error
        else:
            return True
    raise failure
"""
"""Calls the function until it passes, without pytest."""

LOOP = """
def pytest_runtestloop(session):
    for item in session.items * 3:
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
    return True
"""
"""Runs each test three times."""

HIDING = """
import pytest

@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.failed:
        report.outcome = "rerun"
    return report
"""
"""Reports a failure as something else."""

HOME_MADE = {"protocol": PROTOCOL, "body": BODY, "function": FUNCTION, "loop": LOOP}


@pytest.fixture
def rerun(project, forked):
    """Runs the project's test with a stack whose first trials fail, and a plugin of the project's own."""

    def runner(*arguments: str, plugin: str = "", stack: str = FAILS_FIRST) -> pytest.RunResult:
        project.makeconftest(f"from tests.fakes.rig import Motion, install, noisy\ninstall({stack})\n{plugin}")
        return forked.run(project.path, *FAST, *arguments)

    return runner


def measured_sets(project: pytest.Pytester) -> int:
    return len(list(project.path.glob(".ldos/runs/*/*/trials.json")))


def require_first_verdict(result: pytest.RunResult, project: pytest.Pytester) -> None:
    assert result.ret == 10
    assert measured_sets(project) == 1
    assert not list(project.path.glob(".ldos/baselines/**/*.json"))
    result.stdout.fnmatch_lines(["*scenario 'baseline': regressed*", "*not measured again*"])


LONG = pytest.mark.acceptance
"""Another way to run a test again, which is refused in the same place."""


def shortened(names, *short):
    return [name if name in short else pytest.param(name, marks=LONG) for name in names]


@pytest.mark.parametrize("name", shortened(RERUNNING_PLUGINS, "rerunfailures-forced"))
def test_red_test_rerun_by_a_plugin_stays_red(rerun, project, name):
    module, arguments = RERUNNING_PLUGINS[name]
    pytest.importorskip(module)
    require_first_verdict(rerun(*arguments), project)


@pytest.mark.parametrize("name", shortened(HOME_MADE, "protocol", "function"))
def test_red_test_rerun_by_a_conftest_stays_red(rerun, project, name):
    require_first_verdict(rerun(plugin=HOME_MADE[name]), project)


@pytest.mark.parametrize(
    "mark",
    [
        "flaky(reruns=2)",
        pytest.param("flaky(max_runs=3)", marks=LONG),
        pytest.param("flaky(retries=2)", marks=LONG),
    ],
)
def test_a_mark_reruns_no_red_test(rerun, project, mark):
    text = (project.path / "test_scenario.py").read_text()
    project.makepyfile(
        test_scenario=text.replace("@pytest.mark.baseline", f"@pytest.mark.baseline\n@pytest.mark.{mark}")
    )
    module, arguments = {
        "flaky(reruns=2)": RERUNNING_PLUGINS["rerunfailures-forced"],
        "flaky(max_runs=3)": RERUNNING_PLUGINS["flaky"],
        "flaky(retries=2)": RERUNNING_PLUGINS["retry"],
    }[mark]
    pytest.importorskip(module)
    others = [] if module == "pytest_rerunfailures" else ["-pno:rerunfailures"]
    require_first_verdict(rerun(*(each for each in arguments if each.startswith("-p")), *others), project)


def test_history_and_record_hold_the_first_run_alone(rerun, project):
    pytest.importorskip("pytest_rerunfailures")
    require_first_verdict(rerun("-oreruns=5", "--ldos-history=kept"), project)
    assert HistoryStore(project.path / "kept").read().table["run"].n_unique() == 1


def test_failure_reported_as_a_rerun_decides_the_exit_status(rerun, project):
    result = rerun(plugin=PROTOCOL + HIDING)
    assert result.ret == 10
    assert measured_sets(project) == 1
    result.stdout.fnmatch_lines(["baseline: regressed*", "*test_reach: pytest reports no failure of it*"])


UNIT = """
COUNT = []

def test_unit():
    COUNT.append(1)
    assert len(COUNT) > 1
"""


def test_other_tests_of_the_session_are_rerun(rerun, project):
    """Their first failure, which a rerun cured, does not hide the regression from the exit status."""
    pytest.importorskip("pytest_rerunfailures")
    project.makepyfile(test_unit=UNIT)
    result = rerun("--reruns=2")
    result.assert_outcomes(passed=1, errors=1)
    require_first_verdict(result, project)


GREEN = "noisy(1)"


def test_a_green_test_is_not_measured_again(rerun, project):
    result = rerun(plugin=LOOP, stack=GREEN)
    assert result.ret == 1
    assert measured_sets(project) == 1
    result.assert_outcomes(passed=1, errors=2)
    result.stdout.fnmatch_lines(["*scenario 'baseline': no_baseline*", "*not measured again*"])


FAILS_ONCE = """
import pytest
COUNT = []

@pytest.mark.baseline
def test_reach({fixtures}):
    {before}
    ldos_gate.check(ldos_trials(panda_stack))
    {after}
"""

ASSERTED = "COUNT.append(1); assert len(COUNT) > 1, 'too few'"


@pytest.mark.parametrize("place", ["before", "after"])
def test_failure_without_a_verdict_is_not_rerun(rerun, project, place):
    pytest.importorskip("pytest_rerunfailures")
    lines = {"before": "pass", "after": "pass"} | {place: ASSERTED}
    project.makepyfile(test_scenario=FAILS_ONCE.format(fixtures="panda_stack, ldos_trials, ldos_gate", **lines))
    result = rerun("--reruns=2", stack=GREEN)
    assert result.ret == 1
    assert measured_sets(project) == (place == "after")
    result.stdout.fnmatch_lines(["AssertionError: too few", "(not measured again*"])


def test_stack_requested_at_run_time_is_measured_once(rerun, project):
    pytest.importorskip("pytest_rerunfailures")
    lines = "panda_stack, ldos_trials, ldos_gate = map(request.getfixturevalue, ('panda_stack', 'ldos_trials', 'ldos_gate'))"
    project.makepyfile(test_scenario=FAILS_ONCE.format(fixtures="request", before=lines, after="pass"))
    require_first_verdict(rerun("--reruns=2"), project)


DEAD = """
from pytest_ldos.base.errors import BringUpFailed

COUNT = []
working = rig.open_rig

def open_rig(*given, **more):
    COUNT.append(1)
    if len(COUNT) == 1:
        raise BringUpFailed("no controller answers", remedy="look at the logs")
    return working(*given, **more)

rig.open_rig = open_rig
"""


def test_a_stack_that_did_not_start_is_not_started_again(rerun, project):
    pytest.importorskip("pytest_rerunfailures")
    result = rerun("--reruns=2", plugin="from pytest_ldos.measure.trial import rig\n" + DEAD, stack=GREEN)
    assert result.ret == 11
    assert measured_sets(project) == 0
    result.stdout.fnmatch_lines(["scenario 'baseline': infra", "no controller answers*", "(not measured again*"])


def test_missing_verdict_of_a_strict_run_is_not_rerun(rerun, project):
    pytest.importorskip("pytest_rerunfailures")
    result = rerun("--reruns=2", "--ldos-strict", stack=GREEN)
    assert result.ret == 12
    assert measured_sets(project) == 1


def test_an_expected_regression_stays_green(rerun, project):
    """pytest's own word for it, with and without reruns."""
    pytest.importorskip("pytest_rerunfailures")
    text = (project.path / "test_scenario.py").read_text()
    project.makepyfile(test_scenario=text.replace("@pytest.mark.baseline", "@pytest.mark.baseline\n@pytest.mark.xfail"))
    result = rerun("--reruns=2")
    result.assert_outcomes(xfailed=1)
    assert result.ret == 0


SWALLOWED = """
import pytest

@pytest.mark.baseline
def test_reach(panda_stack, ldos_trials, ldos_gate):
    for _ in range(3):
        try:
            ldos_gate.check(ldos_trials(panda_stack))
            break
        except BaseException:
            pass
"""


def test_test_that_retries_until_it_passes_is_red(rerun, project):
    project.makepyfile(test_scenario=SWALLOWED)
    result = rerun()
    assert result.ret == 10
    assert measured_sets(project) == 1
    result.stdout.fnmatch_lines(["*test_reach: pytest reports no failure of it*"])


CELLS = """
import pytest

@pytest.mark.ldos_sweep("stack.control_rate", [250, 400])
@pytest.mark.baseline
def test_reach(panda_stack, ldos_trials, ldos_gate):
    ldos_gate.check(ldos_trials(panda_stack))
"""


@pytest.mark.acceptance
def test_a_cell_of_a_sweep_is_measured_once_and_kept(rerun, project):
    pytest.importorskip("pytest_rerunfailures")
    project.makepyfile(test_scenario=CELLS)
    result = rerun("--reruns=2")
    assert result.ret == 10
    assert measured_sets(project) == 2
    (sweep,) = all_sweeps(project.path / ".ldos")
    verdicts = {record.verdict: record.message for record in sweep.records().values()}
    assert set(verdicts) == {"regressed", "no_baseline"}
    assert "0 of 4 trials succeeded" in verdicts["regressed"]
    assert "not measured again" not in verdicts["regressed"]
