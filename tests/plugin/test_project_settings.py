"""Settings of the tests' project, independent of pytest's root and settings."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pytest_ldos.measure.trial.artifacts import read_trials
from tests.plugin.conftest import CONFTEST

SETTINGS = "[tool.ldos]\ntrials = 3\nwarmup = 0\n[tool.ldos.scenarios.busy]\nmax_trials = 4\n"

TEST = """
import pytest

@pytest.mark.{mark}
def test_{mark}(panda_stack, ldos_trials, ldos_gate):
    ldos_gate.check(ldos_trials(panda_stack))
"""

STRICT = ("--strict-markers", "-p", "no:cacheprovider")


def write_project(folder: Path, settings: str = SETTINGS, *, file: str = "pyproject.toml", mark: str = "busy") -> Path:
    """A project with one test of a scenario of its own."""
    tests = folder / "tests"
    tests.mkdir(parents=True)
    (folder / file).write_text(settings)
    (tests / "conftest.py").write_text(CONFTEST.format(arguments="noisy(1)"))
    (tests / f"test_{mark}.py").write_text(TEST.format(mark=mark))
    return folder


@pytest.fixture
def cell(project) -> Path:
    """The project of these tests, in a folder without any other settings."""
    for file in ("pyproject.toml", "test_scenario.py"):
        (project.path / file).unlink()
    return write_project(project.path / "cell")


def kept(folder: Path, scenario: str = "busy") -> int:
    """The trials of the only run whose records and baselines are in a folder."""
    (record,) = folder.glob(f".ldos/runs/*/{scenario}/trials.json")
    assert len(list(folder.glob(f".ldos/baselines/*/*/{scenario}.json"))) == 1
    return len(read_trials(record).trials)


def everything(folder: Path) -> list[Path]:
    return sorted(each.parent for each in folder.rglob(".ldos"))


LONG = pytest.mark.acceptance
"""For pytest another way to the same root, for us to the same settings: two ways have all that differs."""


@pytest.mark.parametrize(
    ("ini", "text"),
    [
        pytest.param("pytest.ini", "[pytest]\n", marks=LONG),
        ("tests/pytest.ini", "[pytest]\n"),
        pytest.param("tests/.pytest.ini", "[pytest]\n", marks=LONG),
        pytest.param("tests/tox.ini", "[pytest]\n", marks=LONG),
        pytest.param("tests/setup.cfg", "[tool:pytest]\n", marks=LONG),
        ("tests/pyproject.toml", "[tool.pytest.ini_options]\n"),
    ],
)
def test_settings_above_the_tests_are_read_despite_another_ini_file(cell, forked, ini, text):
    (cell / ini).write_text(text)
    result = forked.run(cell, *STRICT, "tests")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["ldos: settings pyproject.toml"])
    assert kept(cell) == 3
    assert everything(cell) == [cell]


@pytest.mark.parametrize(
    ("place", "arguments"),
    [
        ("cell", ("-c", "ci/pytest.ini", "tests")),
        pytest.param("cell", ("--rootdir=ci", "tests"), marks=LONG),
        pytest.param("cell", ("--rootdir=tests", "tests/test_busy.py::test_busy"), marks=LONG),
        ("cell/tests", ()),
        pytest.param("cell/tests", ("test_busy.py",), marks=LONG),
        pytest.param(".", ("cell/tests",), marks=LONG),
        (".", ("cell",)),
        pytest.param("elsewhere", ("../cell/tests",), marks=LONG),
        ("elsewhere", ("-c", "../cell/ci/pytest.ini", "--rootdir=.", "../cell/tests")),
    ],
)
def test_settings_are_found_from_any_folder_and_with_any_root(cell, forked, place, arguments):
    (cell / "ci").mkdir()
    (cell / "ci/pytest.ini").write_text("[pytest]\n")
    (cell.parent / "elsewhere").mkdir()
    result = forked.run(cell.parent / place, *STRICT, *arguments)
    result.assert_outcomes(passed=1)
    assert kept(cell) == 3
    assert everything(cell.parent) == [cell]


def test_testpaths_of_an_ini_above_lead_to_the_settings(cell, forked):
    (cell.parent / "pytest.ini").write_text("[pytest]\ntestpaths = cell/tests\n")
    result = forked.run(cell.parent, *STRICT)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["ldos: settings cell/pyproject.toml"])
    assert kept(cell) == 3


def test_tests_of_a_package_lead_to_the_settings_above_it(cell, forked, monkeypatch):
    (cell / "tests/__init__.py").touch()
    monkeypatch.setenv("PYTHONPATH", f"{os.environ['PYTHONPATH']}:{cell}")
    (cell / "tests").rename(cell / "arm_tests")
    result = forked.run(cell.parent, *STRICT, "--pyargs", "arm_tests.test_busy")
    result.assert_outcomes(passed=1)
    assert kept(cell) == 3


def test_tests_of_an_installed_package_use_the_settings_of_the_working_directory(cell, forked, monkeypatch):
    (cell / "tests/__init__.py").touch()
    (cell.parent / "installed").mkdir()
    (cell / "tests").rename(cell.parent / "installed/arm_tests")
    monkeypatch.setenv("PYTHONPATH", f"{os.environ['PYTHONPATH']}:{cell.parent / 'installed'}")
    (cell / "ci").mkdir()
    (cell / "ci/pytest.ini").write_text("[pytest]\n")
    result = forked.run(cell, *STRICT, "-c", "ci/pytest.ini", "--pyargs", "arm_tests")
    result.assert_outcomes(passed=1)
    assert kept(cell) == 3


def test_links_to_a_checkout_and_within_it_lead_to_its_settings(cell, forked):
    (cell.parent / "link").symlink_to(cell)
    (cell / "tests").rename(cell.parent / "shared")
    (cell / "tests").symlink_to(cell.parent / "shared")
    (cell / "tests/test_baseline.py").write_text(TEST.format(mark="baseline"))
    result = forked.run(cell.parent, *STRICT, "link/tests/test_busy.py", "cell/tests/test_baseline.py")
    result.assert_outcomes(passed=2)
    assert everything(cell.parent) == [cell]


def test_a_link_to_tests_leads_to_the_settings_above_the_tests(cell, forked):
    (cell.parent / "elsewhere").mkdir()
    (cell.parent / "elsewhere/linked").symlink_to(cell / "tests")
    forked.run(cell.parent / "elsewhere", *STRICT, "linked").assert_outcomes(passed=1)
    assert kept(cell) == 3


def test_nearest_table_is_used_and_files_without_one_are_skipped(cell, forked):
    (cell.parent / "ldos.toml").write_text("trials = 9\n")
    (cell / "tests/pyproject.toml").write_text('[project]\nname = "tests"\ndependencies = ["pytest-ldos"]\n')
    forked.run(cell.parent, *STRICT, "cell").assert_outcomes(passed=1)
    assert kept(cell) == 3


def test_repository_baselines_are_next_to_the_settings(cell, forked):
    (cell / "tests/pytest.ini").write_text("[pytest]\n")
    (cell / "pyproject.toml").write_text(SETTINGS.replace("trials = 3", 'trials = 3\nbaselines = "kept"'))
    forked.run(cell, *STRICT, "tests").assert_outcomes(passed=1)
    (recorded,) = cell.glob(".ldos/baselines/*/*/busy.json")
    moved = cell / "kept" / recorded.relative_to(cell / ".ldos/baselines")
    moved.parent.mkdir(parents=True)
    recorded.rename(moved)
    result = forked.run(cell / "tests", *STRICT, "--ldos-strict")
    result.stdout.no_fnmatch_line("*no_baseline*")
    assert not list(cell.glob(".ldos/baselines/*/*/busy.json"))


def test_missing_settings_are_noted_with_the_place_of_results(cell, forked):
    (cell / "pyproject.toml").unlink()
    (cell / "tests/test_busy.py").write_text(TEST.format(mark="baseline"))
    (cell / "tests/pytest.ini").write_text("[pytest]\n")
    result = forked.run(cell, *STRICT, "tests", "--ldos-trials=2")
    result.stdout.fnmatch_lines([f"ldos: no settings file above the tests; results are in {cell}/tests/.ldos"])
    assert kept(cell / "tests", "baseline") == 2


# --- files that are named -----------------------------------------------------------------


def test_named_file_is_read_and_results_stay_with_the_project(cell, forked, monkeypatch):
    (cell / "ci").mkdir()
    (cell / "ci/ldos.toml").write_text("trials = 2\nwarmup = 0\n[scenarios.busy]\n")
    (cell / "tests/pytest.ini").write_text("[pytest]\n")
    result = forked.run(cell / "tests", *STRICT, "--ldos-config=../ci/ldos.toml")
    result.stdout.fnmatch_lines([f"ldos: settings *ci/ldos.toml; results are in {cell}/.ldos"])
    assert kept(cell) == 2
    (cell / ".ldos").rename(cell / "before")
    monkeypatch.setenv("LDOS_CONFIG", "ci/ldos.toml")
    assert forked.run(cell / "tests", *STRICT).ret == 0
    assert kept(cell) == 2


# --- several projects ---------------------------------------------------------------------


@pytest.fixture
def two(cell) -> Path:
    """A folder with two projects, each with a scenario of its own."""
    write_project(
        cell.parent / "gripper", "trials = 2\nwarmup = 0\n[scenarios.grasp]\n", file="ldos.toml", mark="grasp"
    )
    (cell.parent / "pytest.ini").write_text("[pytest]\naddopts = --import-mode=importlib\n")
    return cell.parent


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        pytest.param(("cell", "gripper"), marks=LONG),
        pytest.param(("gripper/tests/test_grasp.py", "cell/tests"), marks=LONG),
    ],
)
def test_tests_of_two_projects_are_refused_with_both_files(two, forked, arguments):
    result = forked.run(two, *STRICT, *arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    error = result.stderr.str()
    assert f"cell/tests/test_busy.py::test_busy to {two}/cell/pyproject.toml" in error
    assert f"gripper/tests/test_grasp.py::test_grasp to {two}/gripper/ldos.toml" in error
    assert "→ run the tests of each project by themselves, or name one file for all: --ldos-config=FILE" in error
    assert everything(two) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ("-m", "grasp"),
        ("gripper",),
        pytest.param(("-k", "grasp"), marks=LONG),
        pytest.param(("--deselect=cell/tests",), marks=LONG),
    ],
)
def test_one_project_of_two_is_measured_with_its_own_settings(two, forked, arguments):
    result = forked.run(two, *STRICT, *arguments)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["ldos: settings gripper/ldos.toml"])
    assert kept(two / "gripper", "grasp") == 2
    assert everything(two) == [two / "gripper"]


def test_project_with_only_deselected_tests_is_ignored(two, forked):
    (two / "conftest.py").write_text(
        "import pytest\n\n@pytest.hookimpl(trylast=True)\n"
        "def pytest_collection_modifyitems(items):\n    items[:] = [each for each in items if 'grasp' in each.nodeid]\n"
    )
    assert forked.run(two, *STRICT).ret == 0
    assert everything(two) == [two / "gripper"]


def test_projects_with_and_without_settings_in_one_run_are_refused(two, forked):
    (two / "gripper/ldos.toml").unlink()
    (two / "gripper/tests/test_grasp.py").write_text(TEST.format(mark="baseline"))
    result = forked.run(two, *STRICT)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*gripper/tests/test_grasp.py::test_baseline to no settings file*"])


def test_named_file_applies_to_all_projects(two, forked):
    (two / "both.toml").write_text("trials = 1\nwarmup = 0\n[scenarios.busy]\n[scenarios.grasp]\n")
    result = forked.run(two, *STRICT, "--ldos-config=both.toml")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["ldos: settings both.toml"])
    assert kept(two) == kept(two, "grasp") == 1


def test_tests_of_several_projects_can_be_listed(two, forked):
    result = forked.run(two, *STRICT, "--collect-only")
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        ["ldos: a run of these tests would be refused: *", "*Function test_busy*", "*Function test_grasp*"]
    )


def test_scenarios_are_those_of_the_tests_project(two, forked):
    for name in ("cell", "gripper"):
        (file,) = (two / name / "tests").glob("test_*.py")
        file.write_text("def test_each(ldos_scenario):\n    ldos_scenario()\n")
    listed = forked.run(two, *STRICT, "--collect-only", "-q").stdout.str()
    assert "cell/tests/test_busy.py::test_each[busy]" in listed
    assert "gripper/tests/test_grasp.py::test_each[grasp]" in listed
    assert "gripper/tests/test_grasp.py::test_each[busy]" not in listed
    assert forked.run(two, *STRICT, "-m", "grasp").ret == 0
    assert kept(two / "gripper", "grasp") == 2


DYNAMIC = """
import pytest

@pytest.mark.{mark}
def test_{mark}(request):
    trials = request.getfixturevalue("ldos_trials")(request.getfixturevalue("panda_stack"))
    request.getfixturevalue("ldos_gate").check(trials)
"""


def test_stack_requested_at_run_time_has_its_tests_settings(two, forked):
    (two / "cell/tests/test_busy.py").write_text(DYNAMIC.format(mark="busy"))
    (two / "gripper/tests/test_grasp.py").write_text(DYNAMIC.format(mark="grasp"))
    result = forked.run(two, *STRICT)
    result.assert_outcomes(passed=1, failed=1)
    assert kept(two / "cell") == 3
    result.stdout.fnmatch_lines([f"*gripper/tests/test_grasp.py::test_grasp to {two}/gripper/ldos.toml*"])
    assert everything(two) == [two / "cell"]


def test_combination_of_scenarios_of_a_nested_project(two, forked):
    (two / "cell/tests/test_busy.py").write_text("def test_each(ldos_scenario):\n    ldos_scenario()\n")
    result = forked.run(two, *STRICT, "-m", "baseline+busy", "cell", "--collect-only", "-q")
    result.stdout.fnmatch_lines(["*test_each[[]baseline+busy]"])
    for arguments in ((), ("cell",)):
        wrong = forked.run(two, *STRICT, "-m", "baseline+bussy", *arguments)
        assert wrong.ret == pytest.ExitCode.USAGE_ERROR
        wrong.stderr.fnmatch_lines(["*unknown scenario in -m: 'bussy'*"])


# --- wrong settings -----------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [("tests",), ("-c", "ci/pytest.ini", "tests/test_busy.py")])
def test_invalid_settings_are_refused_before_collection(cell, forked, arguments):
    (cell / "ci").mkdir()
    (cell / "ci/pytest.ini").write_text("[pytest]\n")
    (cell / "pyproject.toml").write_text("[tool.ldos]\ntrails = 3\n")
    result = forked.run(cell, *STRICT, *arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*pyproject.toml: unknown key *'trails'*", "*did you mean 'trials'*"])
    assert "collected" not in result.stdout.str()


def test_invalid_settings_of_a_nested_project_are_an_error_of_its_tests(two, forked):
    (two / "gripper/ldos.toml").write_text("trails = 3\n")
    result = forked.run(two, *STRICT)
    assert result.ret != 0
    result.stdout.fnmatch_lines(["*gripper/ldos.toml: unknown key *'trails'*"])
    result.stdout.no_fnmatch_line("*Traceback*")


def test_unparsable_file_is_refused_if_it_mentions_ldos(cell, forked):
    (cell / "tests/pytest.ini").write_text("[pytest]\n")
    (cell / "pyproject.toml").write_text("[tool.ldos\n")
    result = forked.run(cell, *STRICT, "tests")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*{cell}/pyproject.toml is not TOML*"])
