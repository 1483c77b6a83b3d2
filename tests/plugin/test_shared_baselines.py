"""The repository's baselines: shown with the first run of a machine, judged by only if configured."""

from __future__ import annotations

import pytest

from pytest_ldos.judge.gate.reasons import BaselineMissing, BaselineShared
from pytest_ldos.show.report.reasons import describe_reason

FAST = ("--ldos-trials=10", "--ldos-warmup=0")
SLOWER = "noisy(2, planning=3.0)"
SHOWN = f"*{describe_reason(BaselineShared())}*"


@pytest.fixture
def shared(record, project):
    """Folder of the repository's baseline of this host class; the machine has none of its own."""
    record(*FAST)
    project.path.joinpath(".ldos/baselines").rename(project.path / "baselines")
    (file,) = project.path.glob("baselines/embedded/*/*.json")
    return file.parent


def test_regression_from_a_shared_baseline_is_shown_and_green(run, shared):
    first = run(*FAST, stack=SLOWER)
    assert first.ret == 0
    first.stdout.fnmatch_lines(
        [
            "*baseline: no_baseline; 10 of 10*",
            SHOWN,
            "*median*baseline*change*verdict*",
            "*T1 * ms * +* no_baseline*",
            "*baseline: baselines/embedded/*/baseline.json (10 trials, *)*",
            "*recorded as the first baseline of this host class*",
        ]
    )


@pytest.mark.acceptance
def test_machines_own_baseline_is_used_once_it_exists(run, shared):
    run(*FAST, stack=SLOWER)
    second = run(*FAST, stack="noisy(3, planning=3.0)")
    assert second.ret == 0
    second.stdout.fnmatch_lines(["*baseline: passed; 10 of 10*"])
    second.stdout.no_fnmatch_line(SHOWN)
    assert run(*FAST, stack="noisy(4, planning=9.0)").ret == 10


def test_named_shared_baseline_is_used_immediately(run, shared, project):
    assert run(*FAST, "--ldos-baselines=baselines", stack=SLOWER).ret == 10
    assert not list(project.path.glob(".ldos/baselines/**/*.json"))


@pytest.mark.acceptance
def test_shared_baseline_of_the_settings_has_precedence(run, shared, project):
    run(*FAST, stack=SLOWER)
    (project.path / "ldos.toml").write_text('baselines = "baselines"\n')
    assert run(*FAST, stack=SLOWER).ret == 10


def test_shared_baseline_of_another_host_class_is_not_shown(run, shared):
    shared.rename(shared.with_name("another-class"))
    first = run(*FAST, stack=SLOWER)
    assert first.ret == 0
    first.stdout.fnmatch_lines([f"*{describe_reason(BaselineMissing())}*"])
    first.stdout.no_fnmatch_line("*median*change*")


@pytest.mark.acceptance
def test_damaged_shared_baseline_is_named_and_not_used(run, shared):
    (shared / "baseline.json").write_text("{")
    first = run(*FAST)
    assert first.ret == 0
    first.stdout.fnmatch_lines(["*the baseline cannot be read*", "*recorded as the first baseline*"])


@pytest.mark.acceptance
def test_strict_run_needs_a_named_baseline(run, shared, project):
    assert run(*FAST, "--ldos-strict").ret == 12
    assert not list(project.path.glob(".ldos/baselines/**/*.json"))
    assert run(*FAST, "--ldos-strict", "--ldos-baselines=baselines", stack="noisy(2)").ret == 0
