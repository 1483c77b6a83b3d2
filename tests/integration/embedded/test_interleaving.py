"""Two interleaved embedded stacks: each version has its own processes, and both are measured alike."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_ldos.host.fingerprint import find_differences
from pytest_ldos.measure.trial.artifacts import read_trials
from tests.integration.project import Project, left_in_memory, make_other_version, make_project, running, shared_memory

ROOT = Path(__file__).parents[3]
MARK = "the other version runs"


SHOWN = 'if __name__ == "__main__":\n'


class Run:
    """Output and files of the run."""

    def __init__(self, project: Project) -> None:
        shown = f'{SHOWN}    sys.stderr.write("{MARK}\\n")\n'
        make_other_version(project.path / "other", "simulator.py", {SHOWN: shown})
        before, memory = running(), shared_memory()
        # Where ours could be taken for the other's: on the path of Python, and in the folder we are in.
        project.environment["PYTHONPATH"] = str(ROOT)
        (project.path / "pytest_ldos").symlink_to(ROOT / "pytest_ldos")
        options = ("--ldos-base=./other", "--ldos-trials=1", "--ldos-block=1", "--ldos-warmup=0")
        self.code, self.output = project.run(*options)
        self.left_running = running() - before
        self.left_in_memory = left_in_memory(memory)
        self.folder = next(project.path.glob(".ldos/runs/*/baseline"), Path("absent"))

    def said_by(self, version: str) -> list[bool]:
        """For each block of a version, true if the other version's simulator ran."""
        return [MARK in log.read_text() for log in sorted(self.folder.glob(f"blocks/*-{version}/logs/simulator.log"))]


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Run:
    return Run(make_project(tmp_path_factory.mktemp("turns")))


def test_both_versions_ran_each_from_its_own_environment(run):
    assert run.said_by("base") == [True], run.output
    assert run.said_by("head") == [False]


def test_both_versions_measured_the_same_plans(run):
    head, base = read_trials(run.folder), read_trials(run.folder / "base")
    assert [trial.block for trial in base.trials] == [0]
    assert [trial.block for trial in head.trials] == [1]
    for one, other in zip(head.trials, base.trials, strict=True):
        assert one.seed == other.seed
        assert one.plan_duration_ns == other.plan_duration_ns, "equal versions plan equal paths"
        assert all(each.measurements["T4"].number for each in (one, other))
    assert [name for name, *_ in find_differences(head.fingerprint, base.fingerprint)] == ["pytest-ldos"]


def test_verdict_compares_both_versions(run):
    assert run.code == 0, run.output
    assert "interleaved with 1 trial of base ./other; 2 stack starts in" in run.output


def test_nothing_is_left_behind(run):
    assert run.left_running == set()
    assert run.left_in_memory == set()
