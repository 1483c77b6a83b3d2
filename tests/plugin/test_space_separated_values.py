"""Values of options behind a space: pytest looks above them for its root before it knows that they are ours."""

from __future__ import annotations

import pytest

from pytest_ldos.scenario.options import OPTIONS

FEW = ("--ldos-trials=2", "--ldos-warmup=0")
WITH_VALUE = [option.flag for option in OPTIONS.values() if not option.is_flag]


@pytest.fixture
def elsewhere(tmp_path_factory):
    """A folder outside of the project."""
    return tmp_path_factory.mktemp("elsewhere")


@pytest.mark.parametrize("flag", WITH_VALUE)
def test_path_elsewhere_is_refused_with_the_correct_form(pytester, elsewhere, flag):
    pytester.makepyprojecttoml("[tool.pytest.ini_options]\n")
    with pytest.raises(pytest.UsageError, match=rf"write {flag}={elsewhere}$"):
        pytester.parseconfig(flag, str(elsewhere))


@pytest.mark.acceptance
@pytest.mark.acceptance
def test_a_folder_elsewhere_of_a_real_run(run, project, elsewhere):
    result = run(*FEW, "--ldos-output", str(elsewhere))
    assert result.ret == 4
    result.stderr.fnmatch_lines(
        [f"ERROR: --ldos-output {elsewhere}: pytest takes *", f"*write --ldos-output={elsewhere}"]
    )
    assert result.outlines == []
    assert not list(elsewhere.iterdir())


def test_path_elsewhere_in_the_environment(run, elsewhere, monkeypatch):
    monkeypatch.setenv("PYTEST_ADDOPTS", f"-p no:hypothesispytest --ldos-output {elsewhere}")
    assert run(*FEW).ret == 4


def test_a_file_elsewhere(run, elsewhere):
    (elsewhere / "r.md").touch()
    assert run(*FEW, "--ldos-report", str(elsewhere / "r.md")).ret == 4


def test_above_the_project(pytester):
    project = pytester.mkdir("project")
    (project / "pytest.ini").write_text("[pytest]\n")
    pytester.makepyprojecttoml("[tool.pytest.ini_options]\n")
    pytester.chdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(project)
        with pytest.raises(pytest.UsageError, match=r"write --ldos-output=\.\.$"):
            pytester.parseconfig("--ldos-output", "..")


@pytest.mark.parametrize(
    "others",
    [
        (),
        pytest.param(("test_scenario.py",), marks=pytest.mark.acceptance),
        pytest.param(("test_scenario.py::test_reach",), marks=pytest.mark.acceptance),
    ],
)
def test_path_within_the_project_is_accepted(run, project, others):
    """So the second of two runs with the same arguments is like the first."""
    for _ in range(2):
        result = run(*FEW, "--ldos-output", "kept", "--ldos-report", "kept/r.md", *others)
        assert result.ret == 0
    assert len(list(project.path.glob("kept/runs/*/baseline/trials.json"))) == 2
    assert not (project.path / "kept/kept").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ("-c", "pyproject.toml", "--ldos-output", "{}"),
        ("--ldos-output", "{}", "test_scenario.py"),
        ("--ldos-output={}",),
        ("--ldos-output", "{}/not there yet"),
        ("--ldos-goals", "\0"),
        ("--ldos-goals", "x" * 5000),
    ],
)
def test_root_that_pytest_finds_anyway_is_accepted(pytester, elsewhere, arguments):
    pytester.makepyprojecttoml("[tool.pytest.ini_options]\n")
    pytester.makepyfile(test_scenario="")
    config = pytester.parseconfig(*(each.format(elsewhere) for each in arguments))
    assert config.rootpath == pytester.path


def test_addopts_of_the_settings_are_accepted(run, project, elsewhere):
    project.makepyprojecttoml(f"[tool.pytest.ini_options]\naddopts = '-p no:cacheprovider --ldos-output {elsewhere}'\n")
    assert run(*FEW).ret == 0
    assert list(elsewhere.glob("runs/*/baseline/trials.json"))
