"""A stored baseline screens: suspicious runs are measured again, interleaved with the baseline's commit."""

from __future__ import annotations

import pytest

from tests.builders.command_line import run_ldos
from tests.plugin.conftest import SETUP

CALM = "noisy(1), base=noisy(9)"
MINUTES = "--ldos-confirm=10"


@pytest.fixture
def measured(project, repository, run):
    """A project whose first commit has a baseline; runs the next commit."""
    (project.path / "pyproject.toml").write_text(
        f"{(project.path / 'pyproject.toml').read_text()}\n{SETUP}\n[tool.ldos]\ntraces = 'none'\n"
    )
    first = repository.commit()
    assert run(stack=CALM).ret == 0

    def measure(*arguments, stack):
        repository.commit()
        return first, run(MINUTES, *arguments, stack=stack)

    return measure


def folders(project):
    return sorted(folder.name for folder in project.path.glob(".ldos/runs/*/*/") if (folder / "trials.json").is_file())


def test_regression_of_the_commit_is_announced_even_quietly_and_confirmed(measured, project):
    first, result = measured("-q", stack="noisy(2, planning=1.6), base=noisy(3)")
    assert result.ret == 10
    result.stdout.fnmatch_lines(
        [
            f"*suspicious against the stored baseline: T1 ×1.*; measuring it interleaved with {first}*10 min*",
            "*T1 (planning latency) regressed: +*",
            f"*interleaved with * trials of base {first}*",
            f"*suspicious against the stored baseline: T1 ×1.*; measured again, interleaved with {first}",
        ]
    )


def test_similar_run_ends_with_the_screen(measured, project):
    _, result = measured(stack="noisy(2, planning=1.0001), base=noisy(3)")
    assert result.ret == 0
    result.stdout.no_fnmatch_line("*suspicious*")
    result.stdout.no_fnmatch_line("*interleaved with*trials of base*")


@pytest.mark.acceptance
@pytest.mark.acceptance
def test_regression_from_an_updated_package_names_the_package(measured, project, monkeypatch):
    """Both commits are equally slow now, because a package was upgraded since the baseline was recorded."""
    _, result = measured(stack="noisy(2, planning=3), base=noisy(3, planning=3)")
    assert result.ret == 10
    blamed = "the commit is not to blame: interleaved, it is as fast as the baseline's"
    result.stdout.fnmatch_lines([f"*{blamed}; what differs: fake 1.0-* → 3-*"])
    monkeypatch.chdir(project.path)
    assert blamed in " ".join(run_ldos("report", "latest").stdout.split())


@pytest.mark.acceptance
@pytest.mark.acceptance
def test_baseline_of_uncommitted_changes_decides_without_confirmation(project, repository, run):
    (project.path / "pyproject.toml").write_text((project.path / "pyproject.toml").read_text() + "\n" + SETUP)
    repository.commit()
    (project.path / "test_scenario.py").write_text((project.path / "test_scenario.py").read_text() + "\n# changed\n")
    assert run(stack=CALM).ret == 0
    result = run(MINUTES, stack="noisy(2, planning=3), base=noisy(3)")
    assert result.ret == 10
    result.stdout.fnmatch_lines(["*not measured again: the baseline was recorded with uncommitted changes*"])


def test_unchanged_stack_is_not_blamed(project, repository, run):
    """The same versions of all packages, and times three: another program, or the machine."""
    (project.path / "labels.py").write_text(
        "def labelled(script):\n    script.version = 'one'\n    return script\n", "utf-8"
    )
    with_label = "__import__('labels').labelled({})".format
    assert run(stack=with_label("noisy(1)")).ret == 0
    result = run(MINUTES, stack=with_label("noisy(2, planning=3)"))
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*baseline: passed*", "*T1*changed with the machine, not the code*"])


@pytest.mark.acceptance
@pytest.mark.acceptance
def test_known_runs_of_the_baselines_stack_are_its_baseline(run, record, project):
    record()
    for seed in range(2, 5):
        result = run(stack=f"noisy({seed})")
        assert result.ret == 0
    result.stdout.fnmatch_lines(
        [
            "*run to run, T1mean varies by * % here: 3 runs in 1 day; each run of an unchanged stack improves this estimate*"
        ]
    )
    assert len([*project.path.glob(".ldos/known/*/*/baseline/*.json")]) == 4


def test_verdict_is_given_if_the_run_cannot_be_stored(run, project):
    (project.path / ".ldos").mkdir()
    (project.path / ".ldos/known").write_text("")
    result = run()
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*baseline: no_baseline*", "*this run is not added to the known runs: *"])


@pytest.mark.acceptance
@pytest.mark.acceptance
def test_without_the_baselines_commit_the_mde_is_that_of_a_verdict(measured, project, repository):
    """Nothing is measured again, so that the suspicion remains."""
    _, alone = measured("--ldos-confirm=0", stack="noisy(2, planning=1.2), base=noisy(3)")
    alone.stdout.fnmatch_lines(
        ["*suspicious against the stored baseline: T1 ×*; not measured again: --ldos-confirm is 0"]
    )
    for arguments in (
        ["checkout", "--quiet", "--orphan", "other"],
        ["commit", "--quiet", "--message", "No history"],
        ["branch", "--delete", "--force", "main"],
        ["reflog", "expire", "--expire=now", "--all"],
        ["gc", "--quiet", "--prune=now"],
    ):
        repository.git(*arguments)
    _, result = measured(stack="noisy(2, planning=1.2), base=noisy(3)")
    result.stdout.fnmatch_lines(["*suspicious against the stored baseline: T1 ×*; not measured again: *"])
    rows = [[line.split()[:-1] for line in each.outlines if line.startswith("  T1 ")] for each in (alone, result)]
    assert rows[0] == rows[1] != []
