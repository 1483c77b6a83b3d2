"""Names of baselines: unique for each test, and independent of the test's own name."""

from __future__ import annotations

import json
import shutil

import pytest

FEW = ("--ldos-trials=2", "--ldos-warmup=0")

BODY = "\n    ldos_gate.check(ldos_trials(panda_stack))\n"
ARGUMENTS = "panda_stack, ldos_trials, ldos_gate"


@pytest.fixture
def measure(project, run):
    """Runs a file of tests; ``MEASURE`` in it stands for the body of a test that measures and judges."""

    def runner(text: str, *arguments: str) -> pytest.RunResult:
        body = text.replace("ARGUMENTS", ARGUMENTS).replace("MEASURE", BODY)
        project.makepyfile(test_scenario=f"import pytest\n{body}")
        return run(*FEW, *arguments)

    return runner


def baselines(project) -> set[str]:
    return {file.stem for file in project.path.glob(".ldos/baselines/*/*/*.json")}


def assert_refused(result: pytest.RunResult, project, name: str, *tests: str) -> None:
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    one, other = (f"test_scenario.py::{each}" for each in tests)
    assert f"ERROR: {one} and {other} would share the baseline '{name}'" in result.stderr.str()
    assert "→ give one a name of its own" in result.stderr.str()
    assert not (project.path / ".ldos").exists()


TWO = """
@pytest.mark.baseline
def test_left(ARGUMENTS):MEASURE

@pytest.mark.baseline
def test_right(ARGUMENTS):MEASURE
"""


def test_two_tests_with_one_mark_are_refused_before_measuring(measure, project):
    assert_refused(measure(TWO), project, "baseline", "test_left", "test_right")


ALIKE = {
    "a mark that names the scenario": '@pytest.mark.ldos_scenario("baseline")',
    "a mark with other settings": '@pytest.mark.baseline(trials=4, goals="reach")',
    "the same name of its own": '@pytest.mark.cpu_load(name="baseline_2")',
}


@pytest.mark.parametrize("mark", ALIKE.values(), ids=ALIKE)
def test_other_tests_that_share_a_baseline_are_refused(measure, project, mark):
    name = "baseline_2" if "baseline_2" in mark else "baseline"
    first = '@pytest.mark.baseline(name="baseline_2")' if name == "baseline_2" else "@pytest.mark.baseline"
    text = TWO.replace("@pytest.mark.baseline", first, 1)
    before, _, after = text.rpartition("@pytest.mark.baseline")
    assert_refused(measure(before + mark + after), project, name, "test_left", "test_right")


def test_parameters_and_spellings_of_a_combination_are_refused(measure, project):
    text = """
@pytest.mark.parametrize("speed", [1, 2])
@pytest.mark.baseline
def test_reach(speed, ARGUMENTS):MEASURE
"""
    assert_refused(measure(text), project, "baseline", "test_reach[1]", "test_reach[2]")
    text = TWO.replace("mark.baseline", 'mark.ldos_scenario("cpu_load+msg_load")', 1)
    text = text.replace("mark.baseline", 'mark.ldos_scenario("msg_load+cpu_load")', 1)
    assert_refused(measure(text), project, "cpu_load+msg_load", "test_left", "test_right")


def test_two_functions_for_each_scenario_are_refused_and_named_with_it(measure, project):
    each = "\ndef test_left(ldos_scenario):\n    ldos_scenario()\n"
    text = each + each.replace("left", "right")
    refused = measure(text, "-m", "baseline")
    assert_refused(refused, project, "baseline", "test_left[baseline]", "test_right[baseline]")
    named = measure(each + "@pytest.mark.ldos_scenarios(name='right-{scenario}')" + each.replace("left", "right"),
                    "-m", "baseline")  # fmt: skip
    named.assert_outcomes(passed=2, deselected=6)
    assert baselines(project) == {"baseline", "right-baseline"}


@pytest.mark.acceptance
def test_only_equal_cells_of_two_sweeps_are_refused(measure, project):
    text = TWO.replace("@pytest.mark.b", '@pytest.mark.ldos_sweep("stack.control_rate", [250, 400])\n@pytest.mark.b')
    result = measure(text)
    assert_refused(
        result, project, "baseline@stack.control_rate_hz=250", "test_left[control_rate_hz=250]",
        "test_right[control_rate_hz=250]",
    )  # fmt: skip
    different = text.replace("[250, 400]", "[500, 800]", 1)
    measure(different.replace("[250, 400]", "[250]")).assert_outcomes(passed=3)
    named = measure(text.replace("mark.baseline", "mark.baseline(name='left')", 1), "-k", "left")
    named.assert_outcomes(passed=2, deselected=2)
    assert {"left@stack.control_rate_hz=250", "left@stack.control_rate_hz=400"} <= baselines(project)


# --- the way out ----------------------------------------------------------------------------


def test_own_name_is_used_in_baseline_history_and_reports(measure, project):
    text = TWO.replace("mark.baseline", 'mark.cpu_load(name="left")', 1).replace("mark.baseline", "mark.cpu_load", 1)
    outputs = ("--ldos-report=report.json", "--ldos-benchmark-json=bench.json", "--ldos-history=kept")
    result = measure(text, *outputs, "--junitxml=junit.xml")
    result.assert_outcomes(passed=2)
    assert baselines(project) == {"left", "cpu_load"}
    sections = json.loads((project.path / "report.json").read_text())["sections"]
    assert [each["scenario"] for each in sections] == ["left", "cpu_load"]
    names = {each["name"] for each in json.loads((project.path / "bench.json").read_text())["benchmarks"]}
    assert {name.partition("[")[0] for name in names} == {"left", "cpu_load"}
    assert len(list(project.path.glob(".ldos/runs/*/left/trials.json"))) == 1


def test_settings_come_from_the_scenario_in_the_mark(measure, project):
    with (project.path / "pyproject.toml").open("a") as file:
        file.write("\n[tool.ldos.scenarios.night]\nmax_trials = 5\nsuccess_rate = 0.75\n")
    measure(TWO.replace("mark.baseline", 'mark.night(name="left")', 1), "-k", "left").assert_outcomes(
        passed=1, deselected=1
    )
    (record,) = project.path.glob(".ldos/runs/*/left/trials.json")
    spec = json.loads(record.read_text())["spec"]
    assert (spec["name"], spec["max_trials"], spec["success_rate"]) == ("left", 5, 0.75)


def test_parameter_set_has_its_own_name_and_the_functions_settings(measure, project):
    text = """
@pytest.mark.parametrize("speed", [1, pytest.param(2, marks=pytest.mark.baseline(name="fast"))])
@pytest.mark.baseline(success_rate=0.5)
def test_reach(speed, ARGUMENTS):MEASURE
"""
    measure(text).assert_outcomes(passed=2)
    assert baselines(project) == {"baseline", "fast"}
    (record,) = project.path.glob(".ldos/runs/*/fast/trials.json")
    assert json.loads(record.read_text())["spec"]["success_rate"] == 0.5


def test_a_renamed_and_moved_test_keeps_its_baseline(measure, project):
    text = TWO.replace("mark.baseline", 'mark.baseline(name="left")', 1)
    measure(text).stdout.fnmatch_lines(["*recorded as the first baseline*"])
    recorded = {file: file.read_bytes() for file in project.path.glob(".ldos/baselines/*/*/*.json")}
    (project.path / "deeper").mkdir()
    moved = text.replace("test_left", "test_port").replace("test_right", "test_starboard")
    body = moved.replace("ARGUMENTS", ARGUMENTS).replace("MEASURE", BODY)
    (project.path / "deeper/test_moved.py").write_text(f"import pytest\n\nclass TestArm:\n    pass\n{body}")
    again = measure("", "deeper")
    again.assert_outcomes(passed=2)
    again.stdout.no_fnmatch_line("*recorded as the first baseline*")
    assert recorded == {file: file.read_bytes() for file in project.path.glob(".ldos/baselines/*/*/*.json")}


WRONG = {
    "../left": "cannot be that of a baseline",
    "": "cannot be that of a baseline",
    "left+right": "cannot be that of a baseline",
    "left.pinned": "cannot be that of a baseline",
    "left@rate=5": "cannot be that of a baseline",
    "cpu_load": "is that of another scenario, whose baseline it would share",
}


def test_invalid_baseline_names_are_refused(measure, project):
    tests = (
        f"@pytest.mark.baseline(name={name!r})\ndef test_{place}(ARGUMENTS):MEASURE\n"
        for place, name in enumerate(WRONG)
    )
    result = measure("\n".join(tests))
    result.assert_outcomes(errors=len(WRONG))
    for name, reason in WRONG.items():
        result.stdout.fnmatch_lines([f"*the name '{name}' for scenario 'baseline' {reason}*"])
    assert baselines(project) == set()


# --- tests that do not count ----------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments", [("-k", "left"), pytest.param(("test_scenario.py::test_right",), marks=pytest.mark.acceptance)]
)
def test_deselected_tests_do_not_count(measure, project, arguments):
    assert measure(TWO, *arguments).ret == 0
    assert baselines(project) == {"baseline"}


def test_tests_passed_in_the_last_run_do_not_count(measure, project):
    failing = TWO.replace("MEASURE", "MEASURE    assert False\n", 1)
    cached = ("-p", "cacheprovider", "-o", "addopts=--strict-markers")
    measure(failing, *cached, "-k", "left").assert_outcomes(failed=1, deselected=1)
    shutil.rmtree(project.path / ".ldos")
    measure(TWO, *cached, "--lf").assert_outcomes(passed=1)


def test_skipped_tests_do_not_count(measure, project):
    marks = "skip(reason='not yet')", "skipif(True, reason='not here')"
    skipped = (
        f"@pytest.mark.{mark}\n@pytest.mark.baseline\ndef test_{place}(ARGUMENTS):MEASURE\n"
        for place, mark in enumerate(marks)
    )
    measure("\n".join(skipped) + TWO.replace("@pytest", "@pytest.mark.skip\n@pytest", 1)).assert_outcomes(
        passed=1, skipped=3
    )
    assert baselines(project) == {"baseline"}


def test_tests_are_listed_with_the_reason_for_a_refusal(measure):
    result = measure(TWO, "--collect-only")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["ldos: a run of these tests would be refused: *would share the baseline 'baseline'*"])


def test_mark_added_at_run_time_is_refused(measure, project):
    text = """
@pytest.fixture(autouse=True)
def marked(request):
    request.node.add_marker(pytest.mark.baseline)

def test_left(ARGUMENTS):MEASURE

def test_right(ARGUMENTS):MEASURE
"""
    result = measure(text)
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(
        ["*test_scenario.py::test_left and test_scenario.py::test_right would share the baseline 'baseline'*"]
    )
