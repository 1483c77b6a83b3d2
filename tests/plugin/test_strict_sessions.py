"""A strict session that selects measuring tests, but judges none, ends with 12."""

from __future__ import annotations

import pytest

from tests.plugin.conftest import CONFTEST, SCENARIO

FAST = ("--ldos-trials=2", "--ldos-warmup=0")
MARK = "@pytest.mark.baseline"

UNIT = "def test_unit():\n    pass\n"

DESELECTS = """
import pytest

{how}
def pytest_collection_modifyitems(config, items):
    scenarios = [item for item in items if "panda_stack" in item.fixturenames]
    items[:] = [item for item in items if item not in scenarios]
    config.hook.pytest_deselected(items=scenarios)
"""

REMOVES = """
def pytest_collection_modifyitems(items):
    items[:] = items[1:]
"""

ABSENT = """
from pytest_ldos.host.availability import Availability
from pytest_ldos.measure.load import protocol as choose

choose.load_available = lambda *given: Availability(False, "stress-ng is not here", "install it")
"""

ENDS = """
import pytest

def pytest_runtestloop(session):
    pytest.exit("enough", returncode=0)
"""

HEAD, _, TEST = SCENARIO.partition(MARK)


def marked(mark: str) -> str:
    return f"{HEAD}@pytest.mark.{mark}\n{MARK}{TEST}"


def with_body(body: str) -> str:
    return SCENARIO.replace("ldos_gate.check(ldos_trials(panda_stack))", body)


DESELECTED = "deselected by a plugin or a conftest.py"

ONE_BY_ONE = {
    "skipped": (marked("skip(reason='no arm here')"), "skipped: no arm here"),
    "skipped_today": (marked("skipif('True', reason='no arm today')"), "skipped: no arm today"),
    "skipped_in_the_body": (with_body("pytest.skip('no arm yet')"), "skipped: no arm yet"),
    "expected_failure": (marked("xfail(reason='known', run=False)"), "expected to fail: *known*"),
    "no_load": (
        SCENARIO.replace("baseline", "cpu_load(unavailable='skip')"),
        "skipped: cpu_load: stress-ng is not here*",
    ),
    "no_gate": (with_body("ldos_trials(panda_stack)"), "trials were made but never judged"),
    "no_trials": (with_body("pass"), "passed without a verdict"),
}
"""Tests without a verdict, each with its reason."""

LONG = pytest.mark.acceptance
"""Another way to a reason that one of the others has."""

UNJUDGED = {
    "benchmark-only": (SCENARIO, "", ["-ppytest_benchmark.plugin", "--benchmark-only"], "skipped: *benchmark*"),
    "conftest": (SCENARIO, DESELECTS.format(how=""), [], DESELECTED),
    "conftest-first": (SCENARIO, DESELECTS.format(how="@pytest.hookimpl(tryfirst=True)"), [], DESELECTED),
    "shard": (SCENARIO, DESELECTS.format(how="@pytest.hookimpl(trylast=True)"), [], DESELECTED),
    "removed": (SCENARIO, REMOVES, ["test_scenario.py", "test_unit.py"], DESELECTED),
    "removed-alone": (SCENARIO, REMOVES, ["test_scenario.py"], DESELECTED),
    "setup-only": (SCENARIO, "", ["--setup-only"], "not run"),
    "ended": (SCENARIO, ENDS, [], "not run"),
    "selected": (marked("skip(reason='no arm here')"), "", ["-m", "baseline"], "skipped: no arm here"),
    "module": ("import pytest\npytest.importorskip('ros_of_mine')\n" + SCENARIO, "", [], ""),
    "node": (marked("skip(reason='no arm here')"), "", ["test_scenario.py::test_reach"], "skipped: no arm here"),
}
REPEATED = {"conftest-first", "removed", "setup-only", "selected"}


@pytest.fixture
def run(project, forked, monkeypatch):
    """Runs a scenario test and a unit test where CI is set."""
    monkeypatch.setenv("CI", "true")
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)  # pytest-benchmark leaves out what it does in workers
    project.makepyfile(test_unit=UNIT)

    def runner(*arguments: str, test: str = SCENARIO, plugin: str = "") -> pytest.RunResult:
        project.makepyfile(test_scenario=test)
        project.makeconftest(f"{CONFTEST.format(arguments='noisy(1)')}\n{plugin}")
        return forked.run(project.path, *FAST, *arguments)

    return runner


def test_each_test_without_a_verdict_has_its_reason(run):
    tests = (
        text.removeprefix(HEAD)
        .replace("test_reach", f"test_{name}")
        .replace("mark.baseline", f"mark.baseline(name='{name}')")
        for name, (text, _) in ONE_BY_ONE.items()
    )
    result = run(test=HEAD + "\n".join(tests), plugin=ABSENT)
    assert result.ret == 12
    for name, (_, reason) in ONE_BY_ONE.items():
        result.stdout.fnmatch_lines([f"*test_scenario.py::test_{name}: {reason}*"])


@pytest.mark.parametrize("way", [pytest.param(each, marks=LONG) if each in REPEATED else each for each in UNJUDGED])
def test_a_strict_session_without_a_verdict_ends_with_12(run, way):
    test, plugin, arguments, reason = UNJUDGED[way]
    result = run(*arguments, test=test, plugin=plugin)
    assert result.ret == 12
    shown = f"test_scenario.py::test_reach: {reason}" if reason else "test_scenario.py: skipped: could not import *"
    result.stdout.fnmatch_lines(["*no test was judged, and this run requires a verdict*", f"*{shown}*", "*→ *-m*"])


def test_without_strict_the_exit_status_is_unchanged(run, monkeypatch):
    monkeypatch.setenv("LDOS_STRICT", "no")
    result = run(test=marked("skip"))
    assert result.ret == 0
    result.stdout.no_fnmatch_line("*requires a verdict*")


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(("-m", "not baseline"), id="-m"),
        pytest.param(("-k", "unit"), id="-k", marks=LONG),
        pytest.param(("--deselect=test_scenario.py::test_reach",), id="--deselect", marks=LONG),
        pytest.param(("--ignore=test_scenario.py",), id="--ignore", marks=LONG),
        pytest.param(("test_unit.py",), id="file"),
        pytest.param(("--collect-only",), id="--collect-only"),
        pytest.param(("--markers",), id="--markers"),
        pytest.param(("--fixtures",), id="--fixtures", marks=LONG),
    ],
)
def test_deselected_tests_need_no_verdict(run, arguments):
    result = run(*arguments)
    assert result.ret == 0
    assert "requires a verdict" not in result.stdout.str()


@pytest.mark.parametrize("option", ["--lf", "--sw"])
def test_last_failed_of_other_tests_is_accepted(run, monkeypatch, option):
    arguments = ("-oaddopts=", option, "test_scenario.py")
    monkeypatch.setenv("LDOS_STRICT", "no")
    assert run(*arguments, test=f"{SCENARIO}\ndef test_other():\n    assert False\n").ret != 0
    monkeypatch.setenv("LDOS_STRICT", "yes")
    result = run(*arguments, test=f"{SCENARIO}\ndef test_other():\n    pass\n")
    assert result.parseoutcomes()["passed"] == 1
    assert result.ret == 0


@pytest.mark.acceptance
def test_one_verdict_is_enough(run, monkeypatch):
    other = SCENARIO.replace("test_reach", "test_other").replace("import pytest", "")
    monkeypatch.setenv("LDOS_STRICT", "no")
    run("--ldos-trials=10")
    monkeypatch.setenv("LDOS_STRICT", "yes")
    result = run("--ldos-trials=10", test=marked("skip") + other)
    result.assert_outcomes(passed=2, skipped=1)
    assert result.ret == 0


def test_a_failed_test_is_worse_than_no_verdict(run, project):
    project.makepyfile(test_unit="def test_unit():\n    assert False\n")
    assert run(test=marked("skip")).ret == 1


@pytest.mark.acceptance
def test_tests_of_workers_are_required_too(run):
    pytest.importorskip("xdist")
    result = run("-n2", test=marked("skip(reason='no arm here')"))
    assert result.ret == 12
    result.stdout.fnmatch_lines(["*test_scenario.py::test_reach: skipped: no arm here"])


def test_unrequested_combinations_need_no_verdict(run):
    test = "import pytest\n@pytest.mark.ldos_scenarios('+')\ndef test_reach(ldos_scenario):\n    ldos_scenario()\n"
    assert run(test=test).ret == 0


SWEEP = """
import pytest

@pytest.mark.ldos_sweep("stack.control_rate", [250, 400])
@pytest.mark.baseline
def test_reach(panda_stack, ldos_trials):
    ldos_trials(panda_stack)
"""


@pytest.mark.acceptance
def test_sweep_needs_results_but_no_verdict(run):
    assert run(test=SWEEP).ret == 0
    resumed = run("--ldos-resume", test=SWEEP)
    resumed.assert_outcomes(passed=1, skipped=2)
    assert resumed.ret == 0
    assert run(test=SWEEP.replace("@pytest.mark.baseline", "@pytest.mark.skip\n@pytest.mark.baseline")).ret == 12
