"""CPUs of the stack alone: the run's line of proof, its own host class, and settings that this machine cannot meet."""

from __future__ import annotations

import pytest

from pytest_ldos.host.cpu import describe_cpus, our_cpus

SETTINGS = """
[tool.pytest.ini_options]
addopts = '-p no:cacheprovider --strict-markers'
[tool.ldos.stack]
cpus = {cpus}
"""
LAST = max(our_cpus())
needs_two_cpus = pytest.mark.skipif(len(our_cpus()) < 2, reason="one CPU leaves none for pytest")


@needs_two_cpus
def test_share_of_the_stack_on_its_cpus_is_reported(project, run):
    project.makepyprojecttoml(SETTINGS.format(cpus=f"[{LAST}]"))
    result = run("--ldos-trials=3", "--ldos-report=report.md")
    assert result.ret == 0
    line = f"stack on CPUs {LAST}, all else on {describe_cpus(our_cpus() - {LAST})}: 100.00 % of the stack's events"
    result.stdout.fnmatch_lines([f"*host class *_cpus-{LAST}", f"*this run: {line} on its CPUs"])
    assert line in (project.path / "report.md").read_text()


@needs_two_cpus
def test_a_baseline_without_these_cpus_is_not_compared(project, run, record):
    record("--ldos-trials=3")
    project.makepyprojecttoml(SETTINGS.format(cpus=f"'{LAST}'"))
    result = run("--ldos-trials=3")
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        ["*baseline: not_comparable; 3 of 3*", f"*baselines of host class *, but none of*_cpus-{LAST}"]
    )


@pytest.mark.parametrize(
    ("cpus", "words"),
    [("[4000]", "CPUs 4000 do not exist or are not allowed here"), ("{ sim = 4000 }", "CPUs 4000 do not exist")],
)
def test_cpus_that_do_not_exist_are_refused_before_the_stack_starts(project, run, cpus, words):
    project.makepyprojecttoml(SETTINGS.format(cpus=cpus))
    result = run("--ldos-trials=3")
    assert result.ret == 1
    result.stdout.fnmatch_lines([f"ldos: test_reach cannot be measured: *{words}*", f"*{words}*"])
    assert "starting the stack" not in result.stdout.str()
