"""Cost of the plugin for runs that measure nothing: loaded modules, and triggers for loading the rest."""

from __future__ import annotations

import pytest

from pytest_ldos.plugin import hooks

LOADED = {
    "pytest_ldos",
    "pytest_ldos.instruments",
    "pytest_ldos.plugin",
    "pytest_ldos.plugin.hooks",
    "pytest_ldos.plugin.options",
    "pytest_ldos.plugin.standby",
    "pytest_ldos.scenario",
    "pytest_ldos.scenario.options",
    "pytest_ldos.scenario.words",
}
"""Modules loaded by an unrelated run. Each additional one slows every test run with the plugin installed."""

FIXTURES = [name for name, each in vars(hooks).items() if type(each).__name__ == "FixtureFunctionDefinition"]

TELL = """
import sys

LIBRARIES = {"numpy", "scipy", "polars", "mujoco", "cyclonedds", "rich", "psutil"}

def pytest_unconfigure():
    print("LOADED", *sorted(name for name in sys.modules if name.split(".")[0] == "pytest_ldos" or name in LIBRARIES))
"""

PLAIN = "def test_plain():\n    pass\n"


@pytest.fixture
def unrelated(project) -> pytest.Pytester:
    """A project that has nothing to do with us; its settings are pytest's alone."""
    project.makeconftest(TELL)
    project.path.joinpath("test_scenario.py").unlink()
    project.makepyfile(test_plain=PLAIN)
    return project


def loaded(project: pytest.Pytester, *arguments: str) -> set[str]:
    result = project.runpytest_subprocess("-s", *arguments, timeout=300)
    found = [line.split("LOADED", 1)[1] for line in result.outlines if "LOADED" in line]
    assert len(found) == 1, result.stdout.str()
    assert not (project.path / ".ldos").exists()
    return set(found[0].split())


@pytest.mark.parametrize("arguments", [(), ("--markers",), ("-m", "not baseline"), ("--collect-only",)], ids=" ".join)
def test_unrelated_run_loads_only_these_modules(unrelated, arguments):
    assert loaded(unrelated, *arguments) == LOADED


def test_project_that_only_depends_on_ldos_is_unrelated(unrelated):
    unrelated.makepyprojecttoml('[project]\nname = "other"\ndependencies = ["pytest-ldos>=0.1"]\n')
    assert loaded(unrelated) == LOADED


SESSION = "pytest_ldos.plugin.session"


@pytest.mark.parametrize("arguments", [("--ldos-history=kept",), ("-m", "not cpu_load+msg_load")], ids=" ".join)
def test_command_line_options_create_the_session_and_load_nothing_else(unrelated, arguments):
    """Neither libraries that take long nor native modules are loaded before a test measures."""
    found = loaded(unrelated, *arguments)
    assert SESSION in found
    assert [name for name in found if not name.startswith("pytest_ldos") or name.endswith(("_decoder", "_lttng"))] == []
    assert not (unrelated.path / "kept").exists()


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("ldos.toml", "trials = 3\n"),
        ("pyproject.toml", "[tool.ldos]\ntrials = 3\n"),
        ("pyproject.toml", '[project]\ndependencies = ["pytest-ldos"]\n[tool]\nldos.trials = 3\n'),
    ],
)
def test_settings_file_creates_the_session(unrelated, file, text):
    (unrelated.path / file).write_text(text, "utf-8")
    assert SESSION in loaded(unrelated, f"--rootdir={unrelated.path}")


def test_environment_variable_creates_the_session(unrelated, monkeypatch):
    monkeypatch.setenv("LDOS_TRIALS", "3")
    assert SESSION in loaded(unrelated)


def test_invalid_variable_is_refused_without_measuring_tests(unrelated, monkeypatch):
    monkeypatch.setenv("LDOS_TRAILS", "3")
    result = unrelated.runpytest_subprocess(timeout=300)
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*unknown environment variable 'LDOS_TRAILS'*", "*did you mean 'LDOS_TRIALS'*"])


def test_marks_and_fixtures_are_known_without_a_session(unrelated):
    unrelated.makepyfile(
        test_marked="""
        import pytest

        @pytest.mark.baseline(trials=3)
        @pytest.mark.ldos_latency
        def test_marked():
            pass
        """
    )
    unrelated.runpytest_subprocess("--strict-markers", timeout=300).assert_outcomes(passed=2)
    shown = unrelated.runpytest_subprocess("--fixtures", timeout=300).stdout.str()
    assert [name for name in FIXTURES if f"\n{name} " not in shown] == []


@pytest.mark.acceptance
def test_stack_requested_at_run_time_creates_the_session(run, project):
    """Earlier failures, which are not verdicts, still decide the exit status."""
    project.makepyfile(
        test_scenario="""
        import pytest

        def test_fails_before():
            assert False

        @pytest.mark.baseline
        def test_reach(request):
            stack = request.getfixturevalue("panda_stack")
            trials = request.getfixturevalue("ldos_trials")(stack, n=3)
            request.getfixturevalue("ldos_gate").check(trials)
        """
    )
    result = run("--junitxml=junit.xml")
    result.assert_outcomes(failed=1, passed=1)
    assert result.ret == 1
    assert "no_baseline" in (project.path / "junit.xml").read_text("utf-8")
