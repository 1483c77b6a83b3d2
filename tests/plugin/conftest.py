"""Inner test runs with a fake stack: the plugin as a user meets it, in a process of its own."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.builders.repository import Repository
from tests.plugin.forked_pytest import ForkedPytest

ROOT = Path(__file__).parents[2]

CONFTEST = """
from tests.fakes.rig import install, noisy, Motion
install({arguments})
"""

SCENARIO = """
import pytest

@pytest.mark.baseline
def test_reach(panda_stack, ldos_trials, ldos_gate):
    ldos_gate.check(ldos_trials(panda_stack))
"""

AGAIN = SCENARIO.replace("reach", "again").replace("mark.baseline", 'mark.baseline(name="again")')
"""A second test of the same scenario."""

SETUP = "[tool.ldos.base]\nsetup = ['sh', '-c', 'mkdir -p .venv/bin && touch .venv/bin/python']\n"
"""Settings of a project whose environments take no time."""


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch) -> pytest.Pytester:
    """A user's project with one scenario test, whose stack is a fake."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("LDOS_LOCK", f"ldos-test-{secrets.token_hex(8)}")
    monkeypatch.setenv("COLUMNS", "110")
    # Loading Hypothesis takes longer than most of these runs do; flaky leaves pytest-rerunfailures nothing to run.
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p no:hypothesispytest -p no:benchmark -p no:flaky -p no:pytest-retry")
    pytester.makepyprojecttoml("[tool.pytest.ini_options]\naddopts = '-p no:cacheprovider --strict-markers'\n")
    pytester.makepyfile(test_scenario=SCENARIO)
    return pytester


@pytest.fixture
def repository(project: pytest.Pytester) -> Repository:
    """The project as a git repository without commits."""
    repository = Repository(project.path)
    repository.git("init", "--quiet", "--initial-branch=main")
    (project.path / ".gitignore").write_text(".ldos\n__pycache__\nconftest.py\n")
    return repository


@pytest.fixture(scope="session")
def forked() -> Iterator[ForkedPytest]:
    made = ForkedPytest()
    yield made
    made.close()


@pytest.fixture
def run(project: pytest.Pytester, forked: ForkedPytest, monkeypatch) -> Callable[..., pytest.RunResult]:
    """Runs the project's tests; `stack` is what `install` gets. A stored baseline decides alone, without profiles."""
    monkeypatch.setenv("LDOS_CONFIRM", "0")
    monkeypatch.setenv("LDOS_EVIDENCE", "0")

    def runner(*arguments: str, stack: str = "noisy(1)") -> pytest.RunResult:
        project.makeconftest(CONFTEST.format(arguments=stack))
        return forked.run(project.path, *arguments)

    return runner


@pytest.fixture(scope="session")
def recorded_runs(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("recorded")


@pytest.fixture
def record(project: pytest.Pytester, run: Callable[..., pytest.RunResult], recorded_runs: Path) -> Callable[..., None]:
    """Gives the project its first run with these arguments, which records a baseline; each is measured once a session."""

    def recorder(*arguments: str) -> None:
        kept, results = recorded_runs / " ".join(["run", *arguments]), project.path / ".ldos"
        if not kept.exists():
            assert run(*arguments).ret == 0
            shutil.copytree(results, kept)
        else:
            shutil.copytree(kept, results)

    return recorder
