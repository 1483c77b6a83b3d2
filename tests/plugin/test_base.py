"""``--ldos-base``: two interleaved versions, as a user meets them. Only their stacks are made up."""

from __future__ import annotations

import json

import pytest

from pytest_ldos.measure.trial.artifacts import read_trials
from tests.builders.command_line import run_ldos
from tests.plugin.conftest import SETUP

FEW = ("--ldos-trials=10", "--ldos-base=./old")
"""Enough for a verdict."""


@pytest.fixture
def old(project):
    """A folder with what looks like an environment."""
    python = project.path / "old/.venv/bin/python"
    python.parent.mkdir(parents=True)
    python.touch()
    return python


def records(project):
    (folder,) = project.path.glob(".ldos/runs/*/baseline")
    return read_trials(folder), read_trials(folder / "base")


def test_equal_versions_pass_and_both_records_are_kept(run, project, old):
    result = run(*FEW, "-v", stack="noisy(1), base=noisy(2)")
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        [
            "*block 1: starting the stack of base ./old*",
            "*baseline, base: trial 1 of 10 success*",
            "*block 10: starting the stack of base ./old*",
            "*baseline: passed; 10 of 10*",
            "*interleaved with 10 trials of base ./old; 10 stack starts in * s*",
            "*drift: 10 blocks are too few to tell, 12 are needed*",
        ]
    )
    head, base = records(project)
    assert head.session == base.session != ""
    assert [trial.block for trial in base.trials] == [0, 0, 3, 3, 5, 5, 6, 6, 9, 9]
    assert not list(project.path.glob(".ldos/baselines/**/*.json")), "nothing becomes a baseline unasked"
    assert not list(project.path.glob(".ldos/runs/*/*/blocks/*/trace"))


def test_slower_head_is_red_with_traces_and_the_same_report_later(run, project, old, monkeypatch):
    result = run(*FEW, "--ldos-report=result.json", stack="noisy(1, planning=1.6), base=noisy(2)")
    assert result.ret == 10
    result.stdout.fnmatch_lines(["*T1*regressed: +*", "*traces: */blocks*"])
    assert len(list(project.path.glob(".ldos/runs/*/baseline/blocks/*/trace/metadata"))) == 10
    monkeypatch.chdir(project.path)
    ended = run_ldos("report", "--output", "again.json")
    assert ended.returncode == 0, ended.stderr
    texts = [(project.path / name).read_text("utf-8") for name in ("result.json", "again.json")]
    assert [[each["verdict"] for each in json.loads(text)["sections"]] for text in texts] == [["regressed"]] * 2
    assert "interleaved with 10 trials of base ./old" in texts[1]


def test_head_becomes_the_baseline_only_on_request(run, project, old):
    result = run("--ldos-trials=1", "--ldos-base=./old", "--ldos-update-baseline")
    result.stdout.fnmatch_lines(["*recorded as the new baseline*"])
    result.stdout.no_fnmatch_line("*settings differ*")  # the base's folder has no project
    (file,) = project.path.glob(".ldos/baselines/**/baseline.json")
    assert (
        json.loads(file.read_text())["trials"]
        == json.loads(next(project.path.glob(".ldos/runs/*/baseline/trials.json")).read_text())["trials"]
    )


def test_load_is_applied_in_every_block_and_the_lowest_proof_counts(run, project, old):
    project.makepyfile(
        test_scenario="""
        import pytest
        from tests.fakes.loads import install_flood

        RATES = [2000.0, 3990.0, 3991.0, 3995.0]  # base, head, head, base
        sites = []

        def rate_at(site):
            sites.append(site)
            return RATES[len(sites) - 1]

        @pytest.fixture(autouse=True)
        def made_up(monkeypatch):
            install_flood(monkeypatch, rate_at)

        @pytest.mark.baseline
        def test_reach_survives_a_flood(panda_stack, dds_flood, ldos_trials, ldos_gate):
            with dds_flood(publishers=4, rate_hz=1000, size_bytes=1024) as flood:
                trials = ldos_trials(panda_stack, n=2)
            assert len(sites) == 4
            assert flood.proof.rate_hz == min(RATES)
            ldos_gate.check(trials)
        """
    )
    result = run("--ldos-base=./old", "--ldos-block=1")
    assert result.ret == 11
    result.stdout.fnmatch_lines(
        ["*baseline: invalid*", "*base: the load was not as requested*the flood reached too little*"]
    )


def test_interruption_keeps_measured_trials(run, project, old):
    script = "lambda i: Motion() if i < 3 else (_ for _ in ()).throw(KeyboardInterrupt)"
    result = run("--ldos-trials=4", "--ldos-base=./old", "--ldos-block=2", stack=f"{script}, base=noisy(2)")
    assert result.ret == 2
    result.stdout.fnmatch_lines(["*baseline: not finished; what was measured: ldos report *baseline, *baseline/base*"])
    head, base = records(project)
    assert [len(each.trials) for each in (head, base)] == [3, 2]


def test_a_folder_without_an_environment(run, project):
    (project.path / "empty").mkdir()
    result = run("--ldos-base=./empty")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*./empty: the folder has no environment (.venv/bin/python or bin/python)*"])
    assert "Traceback" not in result.stdout.str()


def test_revision_is_prepared_once_and_equal_versions_are_noted(run, project, repository):
    project.makepyprojecttoml("[tool.pytest.ini_options]\naddopts = '-p no:cacheprovider'\n" + SETUP)
    commit = repository.commit()
    arguments = ("--ldos-base=HEAD", "--ldos-trials=1")
    first, second = run(*arguments), run(*arguments)
    first.stdout.fnmatch_lines([f"*preparing base {commit}*", "*A/A: head and base are the same version*"])
    second.stdout.no_fnmatch_line("*preparing base*")
    second.stdout.no_fnmatch_line("*settings differ*")
    files = project.path.glob(".ldos/runs/*/baseline/base/trials.json")
    assert [read_trials(file).commit for file in files] == [commit, commit]


BROKEN = """
[build-system]
requires = []
build-backend = "absent"

[project]
name = "arm"
version = "1"
"""


@pytest.mark.acceptance
def test_unbuildable_base_is_infra_with_exit_status_11(run, project, repository):
    """By default pip installs the revision: this one's pyproject.toml names a build backend that is none."""
    good = (project.path / "pyproject.toml").read_text()
    project.path.joinpath("pyproject.toml").write_text(BROKEN)
    broken = repository.commit()
    project.path.joinpath("pyproject.toml").write_text(good)
    result = run(f"--ldos-base={broken}", "--ldos-trials=2")
    assert result.ret == 11
    result.stdout.fnmatch_lines(
        [
            "*scenario 'baseline': infra*",
            f"*base {broken} cannot be built: *pip install .* ended with exit code *",
            "*BackendUnavailable*",
            "*see *setup.log; say how its environment is made*",
            "*baseline: infra; nothing measured*",
        ]
    )


def test_base_without_the_projects_folder_is_reported(run, project, repository):
    repository.commit(README_md="")
    old = repository.git("rev-parse", "HEAD")
    nested = project.path / "robots/arm"
    nested.mkdir(parents=True)
    for name in ("pyproject.toml", "test_scenario.py"):
        (project.path / name).rename(nested / name)
    (nested / "pyproject.toml").write_text((nested / "pyproject.toml").read_text() + "\n" + SETUP)
    repository.commit()
    place = (f"--rootdir={nested}", f"--config-file={nested}/pyproject.toml", f"--confcutdir={project.path}")
    result = run(*place, str(nested), f"--ldos-base={old}")
    assert result.ret == 11
    result.stdout.fnmatch_lines(["*cannot be built: it has no folder robots/arm, in which the project lies here"])
    result.stdout.no_fnmatch_line("*exit code*")


def test_base_folder_after_a_space_is_refused(run, project, old):
    (project.path / "old/pytest.ini").write_text("[pytest]\n")
    result = run("--ldos-base", "./old")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*--ldos-base ./old: pytest takes *its settings*", "*write --ldos-base=./old*"])


def test_invalid_table_is_a_usage_error(run, project):
    project.makepyprojecttoml("[tool.ldos.base]\nsetup = 'make setup'\n")
    result = run()
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*tool.ldos.base* setup is 'make setup'*", "*list of its words*"])


OLD_SETTINGS = """
[tool.ldos.stack]
kind = "embedded"
launch_file = "arm.launch.py"
velocity_scaling = 0.9
[tool.ldos.scenarios.baseline]
seeds = 'random'
warmup = 2
"""
NEW_SETTINGS = """
[tool.ldos.stack]
kind = "embedded"
launch_file = "arm.launch.py"
velocity_scaling = 0.5
[tool.ldos.stack.faults]
planning_delay_ms = 6
"""


@pytest.fixture
def measured_against(run, project, repository):
    """Measures head against a revision with other settings; returns the output."""

    def measure(old, new, *arguments):
        project.path.joinpath("arm.launch.py").write_text("")
        project.makepyprojecttoml(SETUP + old)
        commit = repository.commit()
        project.makepyprojecttoml(SETUP + new)
        repository.commit()
        result = run(f"--ldos-base={commit}", "--ldos-trials=1", *arguments)
        assert "interleaved with 1 trial of base" in result.stdout.str()
        return " ".join(result.stdout.str().split())

    return measure


def test_changed_settings_are_reported_as_not_measured(measured_against):
    """Those of the stack and of the scenario, but no file that both have in their project."""
    printed = measured_against(OLD_SETTINGS, NEW_SETTINGS)
    assert "settings differ between base and head" in printed
    assert "stack.velocity_scaling 0.9 → 0.5" in printed
    assert "stack.faults.planning_delay_ms 0.0 → 6.0" in printed
    assert "warmup 2 → 1" in printed
    assert "seeds random → fixed" in printed
    assert "launch_file" not in printed
    assert "both were measured with head's" in printed
    assert "compare with a stored baseline" in printed


UNREADABLE = "[tool.ldos]\nobsolete = 1\n", "[tool.ldos.stack]\nvelocity_scaling = 'slow'\n"


@pytest.mark.parametrize("old", [UNREADABLE[0], pytest.param(UNREADABLE[1], marks=pytest.mark.acceptance)])
def test_unreadable_old_settings_are_reported_as_not_compared(measured_against, old):
    printed = measured_against(old, NEW_SETTINGS)
    assert "could not be compared with head's" in printed
    assert "Traceback" not in printed


def test_a_named_settings_file_is_read_in_both(run, project, repository):
    recipe = SETUP.replace("tool.ldos.", "")
    file = project.path / "arm.toml"
    file.write_text(f"{recipe}[stack]\nvelocity_scaling = 0.9\n")
    commit = repository.commit()
    file.write_text(f"{recipe}[stack]\nvelocity_scaling = 0.4\n")
    printed = run(f"--ldos-base={commit}", "--ldos-trials=1", "--ldos-config=arm.toml").stdout.str()
    assert "stack.velocity_scaling 0.9 → 0.4" in " ".join(printed.split())


def test_folder_has_settings_if_it_has_a_project(run, project, old):
    project.path.joinpath("old/ldos.toml").write_text("[stack]\nvelocity_scaling = 0.9\n")
    printed = run("--ldos-base=./old", "--ldos-trials=1").stdout.str()
    assert "stack.velocity_scaling 0.9 → 0.5" in " ".join(printed.split())


# --- more trials ------------------------------------------------------------------------


NOISY = "spread=0.4"
"""Too noisy for a verdict."""


@pytest.mark.acceptance
def test_trials_are_added_while_inconclusive_up_to_the_limit(run, project, old):
    arguments = ("--ldos-base=./old", "--ldos-trials=4", "--ldos-max-trials=8", "--ldos-block=2")
    run(*arguments, stack=f"noisy(1, {NOISY}), base=noisy(2, {NOISY})")
    head, base = records(project)
    assert [len(each.trials) for each in (head, base)] == [8, 8]
    assert [look.head for look in head.looks] == [4, 6, 8]


@pytest.mark.acceptance
def test_no_trials_are_added_if_the_stored_base_has_too_few(run, project):
    run("--ldos-trials=3", "--ldos-warmup=0")
    project.path.joinpath(".ldos/runs").rename(project.path / "before")
    result = run("--ldos-trials=4", "--ldos-warmup=0", "--ldos-max-trials=12", stack="noisy(2)")
    (folder,) = project.path.glob(".ldos/runs/*/baseline")
    assert len(read_trials(folder).trials) == 4
    result.stdout.fnmatch_lines(["*record the baseline again with 8 or more*", "*--ldos-update-baseline*"])


@pytest.mark.acceptance
def test_without_a_base_trials_are_added_in_more_starts(run, project):
    run("--ldos-trials=5", "--ldos-warmup=0", stack=f"noisy(1, {NOISY})")
    project.path.joinpath(".ldos/runs").rename(project.path / "before")
    run("--ldos-trials=5", "--ldos-warmup=0", "--ldos-max-trials=9", "--ldos-block=3", stack=f"noisy(2, {NOISY})")
    (folder,) = project.path.glob(".ldos/runs/*/baseline")
    trials = read_trials(folder)
    assert len(trials.trials) == 9
    assert [(look.head, look.base) for look in trials.looks] == [(5, 5), (8, 5), (9, 5)]
