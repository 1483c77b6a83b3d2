"""Each option, as a user gives it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET

import pytest

from pytest_ldos.host.lock import measuring_lock
from pytest_ldos.measure.metrics.catalogue import METRICS
from pytest_ldos.measure.trial.artifacts import read_trials
from pytest_ldos.scenario.options import OPTIONS
from pytest_ldos.scenario.settings import Sources, TomlSettings
from tests.plugin.conftest import CONFTEST

TWO = ("--ldos-trials=2", "--ldos-warmup=1")


def saved(project, scenario="baseline"):
    (file,) = project.path.glob(f".ldos/runs/*/{scenario}/trials.json")
    return read_trials(file)


# --- trials, warmup, seeds, success rate ------------------------------------------------


def test_trials_and_warmup(run, project):
    assert run("--ldos-trials=3", "--ldos-warmup=0").ret == 0
    assert len(saved(project).trials) == 3
    assert saved(project).spec.warmup == 0


def test_no_trials_are_a_usage_error(run):
    result = run("--ldos-trials=0")
    assert result.ret != 0
    result.stderr.fnmatch_lines(["*--ldos-trials is *0*", "*a whole number, at least 1*"])
    assert "Traceback" not in result.stdout.str()


def test_random_seeds(run, project):
    run(*TWO, "--ldos-seeds=random")
    assert [trial.seed for trial in saved(project).trials] == [None, None]


def test_a_declared_success_rate(run):
    assert (
        run("--ldos-trials=4", "--ldos-success-rate=0.5", stack="lambda i: Motion(error_code=-31 if i else 1)").ret == 0
    )


def test_markers_give_settings_and_the_command_line_wins(run, project):
    project.makepyfile(
        test_scenario="""
        import pytest

        @pytest.mark.baseline(trials=4, warmup=0)
        def test_reach(panda_stack, ldos_trials, ldos_gate):
            ldos_gate.check(ldos_trials(panda_stack))
        """
    )
    run()
    assert len(saved(project).trials) == 4
    project.path.joinpath(".ldos").rename(project.path / "before")
    run("--ldos-trials=2")
    assert len(saved(project).trials) == 2


def test_the_settings_of_a_marker_are_listed(run):
    settings = "name=…, " + ", ".join(f"{option.name}=…" for option in OPTIONS.values() if option.per_scenario)
    run("--markers").stdout.fnmatch_lines([f"@pytest.mark.baseline({settings}): *"])


def test_n_in_the_test_and_goals_by_name(run, project):
    project.makepyfile(
        test_scenario="""
        import pytest

        @pytest.mark.baseline
        def test_reach(panda_stack, ldos_trials, ldos_gate):
            ldos_gate.check(ldos_trials(panda_stack, goals="reach", n=3))
        """
    )
    run("--ldos-warmup=0")
    assert len(saved(project).trials) == 3


def test_an_unknown_goal_set(run, project):
    project.makepyfile(
        test_scenario="""
        import pytest

        @pytest.mark.baseline
        def test_reach(panda_stack, ldos_trials):
            ldos_trials(panda_stack, goals="dance")
        """
    )
    result = run()
    result.stdout.fnmatch_lines(["*there is no goal set 'dance'*", "*known are: reach*"])
    assert "Traceback" not in result.stdout.str()


# --- names that do not exist ------------------------------------------------------------


@pytest.mark.parametrize(
    ("argument", "suggestion"),
    [
        ("--ldos-trails=3", "--ldos-trials"),
        ("--ldos-update-basline", "--ldos-update-baseline"),
        ("--ldos-qqqqqqqqqqqqqqqqqqqqqqqqqqq", "known are:"),
    ],
)
def test_an_unknown_option_names_the_nearest(run, argument, suggestion):
    result = run(argument)
    assert result.ret == 4
    result.stderr.fnmatch_lines([f"*unknown option {argument.partition('=')[0]}*", f"*{suggestion}*"])


def test_an_unknown_key_names_the_nearest(run, project):
    project.makepyprojecttoml("[tool.ldos.scenarios.baseline]\nwarm-up = 3\n")
    result = run()
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*unknown key *tool.ldos.scenarios.baseline*'warm-up'*", "*did you mean 'warmup'*"])


def test_an_unknown_variable_names_the_nearest(run, monkeypatch):
    monkeypatch.setenv("LDOS_TRAILS", "3")
    result = run()
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*unknown environment variable 'LDOS_TRAILS'*", "*LDOS_TRIALS*"])


@pytest.mark.parametrize("argument", ["--ldos-trials=many", "--ldos-stack=gazebo", "--ldos-traces=some"])
def test_a_wrong_value_is_a_usage_error(run, argument):
    result = run(argument)
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*it must be*"])


def test_an_unknown_argument_of_a_marker(run, project):
    project.makepyfile(
        test_scenario="""
        import pytest

        @pytest.mark.baseline(trails=4)
        def test_reach(panda_stack):
            pass
        """
    )
    result = run()
    result.stdout.fnmatch_lines(["*argument of marker baseline: 'trails'*", "*did you mean 'trials'*"])


def test_a_test_without_a_scenario(run, project):
    project.makepyfile(test_scenario="def test_reach(panda_stack):\n    pass\n")
    result = run()
    result.stdout.fnmatch_lines(
        ["*measures a stack but has no scenario*", "*mark it with one of: baseline, cpu_load, msg_load*"]
    )


def test_own_scenarios_are_markers_with_settings(run, project):
    project.makepyprojecttoml("[tool.ldos.scenarios.night]\ntrials = 3\nwarmup = 0\n")
    project.makepyfile(
        test_scenario="""
        import pytest

        @pytest.mark.night
        def test_reach(panda_stack, ldos_trials, ldos_gate):
            ldos_gate.check(ldos_trials(panda_stack))

        @pytest.mark.ldos_scenario("night", name="late_night")
        def test_again(panda_stack, ldos_trials, ldos_gate):
            ldos_gate.check(ldos_trials(panda_stack))
        """
    )
    assert run("--strict-markers").ret == 0
    assert len(saved(project, "night").trials) == len(saved(project, "late_night").trials) == 3


# --- output, baselines, update, strict --------------------------------------------------


def test_output_and_baselines_elsewhere(run, project):
    run(*TWO, "--ldos-output=results")
    assert list(project.path.glob("results/runs/*/baseline/trials.json"))
    assert list(project.path.glob("results/baselines/**/baseline.json"))
    assert not (project.path / ".ldos").exists()


def test_update_replaces_the_baseline(run, project):
    run(*TWO)
    (file,) = project.path.glob(".ldos/baselines/**/baseline.json")
    before = file.read_text()
    run(*TWO, stack="noisy(2)")
    assert file.read_text() == before
    result = run(*TWO, "--ldos-update-baseline", stack="noisy(3)")
    result.stdout.fnmatch_lines(["*recorded as the new baseline*"])
    assert file.read_text() != before


def test_strict_without_a_baseline_fails_and_records_none(run, project):
    result = run(*TWO, "--ldos-strict")
    assert result.ret == 12
    assert not list(project.path.glob(".ldos/baselines/**/*.json"))
    assert run(*TWO, "--ldos-strict", "--ldos-update-baseline").ret == 12
    assert list(project.path.glob(".ldos/baselines/**/*.json"))


def test_ci_is_strict_by_default(run, monkeypatch):
    monkeypatch.setenv("CI", "true")
    assert run(*TWO).ret == 12
    monkeypatch.setenv("LDOS_STRICT", "no")
    assert run(*TWO).ret == 0


# --- traces -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("which", "stack", "kept"),
    [
        ("failed", "noisy(1)", False),
        ("failed", "lambda i: Motion(error_code=-31 if i else 1)", True),
        ("all", "noisy(1)", True),
        ("none", "lambda i: Motion(error_code=-31 if i else 1)", False),
    ],
)
def test_kept_traces(run, project, which, stack, kept):
    result = run(*TWO, f"--ldos-traces={which}", stack=stack)
    traces = list(project.path.glob(".ldos/runs/*/baseline/trace/metadata"))
    assert bool(traces) is kept
    if kept:
        result.stdout.fnmatch_lines([f"*trace: {traces[0].parent}*"])


def test_a_regressed_trace_stays(run, project):
    run("--ldos-trials=10", "--ldos-warmup=0")
    run("--ldos-trials=10", "--ldos-warmup=0", stack="noisy(2, planning=3.0)")
    assert len(list(project.path.glob(".ldos/runs/*/baseline/trace/metadata"))) == 1


def test_old_traces_make_room(run, project):
    for _ in range(2):
        result = run(*TWO, "--ldos-traces=all", "--ldos-traces-limit-mb=0")
    assert len(list(project.path.glob(".ldos/runs/*/baseline/trace"))) == 1
    result.stdout.fnmatch_lines(["*deleted to stay within 0 MB*"])


# --- what others read -------------------------------------------------------------------


def test_benchmark_json(run, project):
    run(*TWO, "--ldos-benchmark-json=out.json")
    names = {each["name"] for each in json.loads((project.path / "out.json").read_text())["benchmarks"]}
    assert names == {f"baseline[{metric}]" for metric in METRICS}


def test_junit_properties(run, project):
    run(*TWO, "--junitxml=junit.xml")
    properties = {each.get("name"): each.get("value") for each in ET.parse(project.path / "junit.xml").iter("property")}
    assert properties["ldos.verdict"] == "no_baseline"
    assert properties["ldos.successes"] == "2/2"
    for metric in METRICS:
        assert float(properties[f"ldos.{metric}.median_ms"]) > 0
        assert len(properties[f"ldos.{metric}.values_ms"].split()) == 2


def properties_in(file):
    return [(each.get("name"), each.get("value")) for each in ET.parse(file).iter("property")]


def test_a_second_set_of_trials_in_one_test_is_refused(run, project):
    project.makepyfile(
        test_scenario="""
        import pytest

        @pytest.mark.baseline
        def test_reach(panda_stack, ldos_trials, ldos_gate, record_property):
            record_property("mine", "stays")
            ldos_gate.check(ldos_trials(panda_stack))
            ldos_gate.check(ldos_trials(panda_stack))
        """
    )
    result = run(*TWO, "--junitxml=junit.xml")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*scenario 'baseline' was judged already in this test*a test of its own*"])
    properties = properties_in(project.path / "junit.xml")
    assert {("mine", "stays"), ("ldos.successes", "2/2")} <= set(properties)


def test_header_and_progress(run):
    result = run("--ldos-trials=3", "--ldos-warmup=0")
    result.stdout.fnmatch_lines(
        [
            "ldos: *",
            "*baseline: trial 1 of 3 success  T1 * ms  T4 * ms",
            "*baseline: trial 3 of 3 success*",
            "*results: *.ldos*runs*",
        ]
    )


# --- what would spoil a measurement -------------------------------------------------------


@pytest.mark.acceptance
def test_parallel_workers_are_refused_with_the_reason(run):
    pytest.importorskip("xdist", reason="pytest-xdist is not installed")
    result = run(*TWO, "-n2")
    assert result.ret != 0
    result.stdout.fnmatch_lines(["*cannot run in pytest-xdist workers*", "*-n 0*"])


def test_second_run_is_refused_with_the_name_of_the_first(run, monkeypatch):
    with measuring_lock_of_inner_runs():
        result = run(*TWO)
    assert result.ret == 11
    result.stdout.fnmatch_lines(["*another measuring session holds this machine: pid *"])


def test_run_waits_for_the_other_up_to_its_limit(run):
    with measuring_lock_of_inner_runs():
        result = run(*TWO, "--ldos-wait=1")
    assert result.ret == 11
    result.stdout.fnmatch_lines(["*another measuring session holds this machine, after 1 s of waiting: pid *"])


def test_ci_waits_by_default():
    def waits(environment, **values):
        return Sources(command_line=values, environment={}, toml=TomlSettings()).wait_s(environment)

    assert (waits({}), waits({"CI": "true"}), waits({"CI": "true"}, wait=5)) == (0, 1800, 5)


def measuring_lock_of_inner_runs():
    """Ours, under the name that the inner run looks for."""
    return measuring_lock()


# --- costs nothing until used -------------------------------------------------------------


def test_collecting_imports_nothing_heavy(project):
    """Neither NumPy nor a native module is imported before a test measures."""
    project.makepyfile(
        conftest="""
        import sys

        def pytest_unconfigure():
            heavy = {"numpy", "scipy", "polars", "mujoco", "cyclonedds", "rich", "psutil"} & set(sys.modules)
            native = {name for name in sys.modules if name.startswith("pytest_ldos") and name.endswith(("_decoder", "_lttng"))}
            print("HEAVY", sorted(heavy | native))
        """
    )
    project.makepyfile(test_plain="def test_plain():\n    pass\n")
    result = project.runpytest_subprocess("-s", "test_plain.py", timeout=300)
    result.stdout.fnmatch_lines(["*HEAVY []*"])
    result = project.runpytest_subprocess("-s", "--collect-only", "test_plain.py", timeout=300)
    result.stdout.fnmatch_lines(["*HEAVY []*"])
    result = project.runpytest_subprocess("-s", "--ldos-history=kept", "test_plain.py", timeout=300)
    result.stdout.fnmatch_lines(["*HEAVY []*"])
    assert not (project.path / "kept").exists()


def test_an_unrelated_project_sees_nothing_of_it(project):
    project.makepyfile(test_plain="def test_plain():\n    pass\n")
    result = project.runpytest_subprocess("test_plain.py", timeout=300)
    assert "ldos:" not in result.stdout.str()
    assert not (project.path / ".ldos").exists()


def test_the_plugin_is_registered():
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--trace-config", "--version"], capture_output=True, text=True, check=False
    )
    assert "pytest_ldos" in done.stdout + done.stderr or done.returncode == 0


# --- reports ------------------------------------------------------------------------------


def test_reports_in_every_format(run, project):
    names = ("out/ldos.html", "ldos.md", "ldos.json")
    result = run(*TWO, *(f"--ldos-report={name}" for name in names))
    for name in names:
        assert "no baseline" in (project.path / name).read_text("utf-8").replace("no_baseline", "no baseline")
        result.stdout.fnmatch_lines([f"report: *{name}"])
    plain = json.loads((project.path / "ldos.json").read_text("utf-8"))
    values = [point["value"] for point in plain["sections"][0]["metrics"][0]["head"]["points"]]
    assert values == [trial.measurements["T1"].value for trial in saved(project).trials]


def test_reports_from_the_environment_and_of_a_stack_that_does_not_start(project, monkeypatch):
    monkeypatch.setenv("LDOS_REPORT", "a.md,b.json")
    project.makeconftest(
        """
        from contextlib import contextmanager
        from pytest_ldos.base.errors import BringUpFailed
        from pytest_ldos.measure.trial import rig

        @contextmanager
        def fail(spec, folder, *, on_waiting, **settings):
            raise BringUpFailed("the simulator | ended", remedy="look at its log")
            yield

        rig.open_rig = fail
        """
    )
    assert project.runpytest_subprocess("--junitxml=junit.xml", timeout=300).ret == 11
    assert properties_in(project.path / "junit.xml") == [("ldos.scenario", "baseline"), ("ldos.verdict", "infra")]
    assert "- the simulator \\| ended\n" in (project.path / "a.md").read_text("utf-8")
    plain = json.loads((project.path / "b.json").read_text("utf-8"))
    assert plain["verdict"] == "infra"
    assert plain["sections"][0]["head"] is None


def test_a_report_of_no_known_format_is_a_usage_error(run, project):
    result = run("--ldos-report=x.pdf")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*--ldos-report is *x.pdf*", "*files that end with .html, .md, .json*"])
    assert not list(project.path.glob(".ldos"))


def test_a_page_without_its_library_is_refused_before_anything_is_measured(project, monkeypatch):
    project.makeconftest(CONFTEST.format(arguments=""))
    (project.path / "absent").mkdir()
    (project.path / "absent/sitecustomize.py").write_text("import sys\nsys.modules['htpy'] = None\n")
    monkeypatch.setenv("PYTHONPATH", f"{project.path / 'absent'}:{os.environ['PYTHONPATH']}")
    result = project.runpytest_subprocess("--ldos-report=x.html", timeout=300)
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*HTML reports need the package htpy*", "*pip install 'pytest-ldos[[]report]'*"])
    assert not list(project.path.glob(".ldos"))


@pytest.mark.parametrize(
    "option", ["--ldos-report=file/x.md", "--ldos-report=folder.md", "--ldos-benchmark-json=file/x"]
)
def test_unwritable_output_is_reported_before_measuring(run, project, option):
    (project.path / "file").touch()
    (project.path / "folder.md").mkdir()
    result = run(*TWO, option)
    assert result.ret == 4
    result.stderr.fnmatch_lines([f"*{option.split('=')[1]} cannot be written: *", "  → name a*"])
    assert not list(project.path.glob(".ldos"))


def test_failed_output_does_not_affect_other_outputs(run, project):
    project.makepyfile(
        test_scenario="""
        import shutil
        import pytest

        @pytest.mark.baseline
        def test_reach(panda_stack, ldos_trials, ldos_gate, pytestconfig):
            ldos_gate.check(ldos_trials(panda_stack))
            shutil.rmtree(pytestconfig.rootpath / "out")
            (pytestconfig.rootpath / "out").write_text("")
        """
    )
    result = run(
        *TWO, "--ldos-benchmark-json=out/b.json", "--ldos-report=out/x.md", "--ldos-report=y.md", "--ldos-history=kept"
    )
    assert result.ret == 11
    result.stdout.fnmatch_lines(
        [
            "the report could not be written: *out/x.md: *",
            "report: *y.md",
            "the benchmark JSON could not be written: *out/b.json: *",
            "history: 1 set of trials added*",
        ]
    )
    assert (project.path / "y.md").exists()
    assert "INTERNALERROR" not in result.stdout.str()


def test_the_job_summary_is_appended_to_when_asked(run, project, monkeypatch):
    summary = project.path / "summary.md"
    summary.write_text("before\n", "utf-8")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    run(*TWO)
    assert summary.read_text("utf-8") == "before\n"
    run(*TWO, "--ldos-summary").stdout.fnmatch_lines([f"job summary: {summary}"])
    assert summary.read_text("utf-8").startswith("before\n<!-- pytest-ldos report -->\n")


def test_a_job_summary_where_there_is_no_job(run, monkeypatch):
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    run(*TWO, "--ldos-summary").stdout.fnmatch_lines(["no job summary: GITHUB_STEP_SUMMARY is not set*"])


def test_the_report_says_where_the_test_is_written(run, project):
    """An annotation of a workflow goes there."""
    folder = project.mkdir("cell")
    (project.path / "test_scenario.py").rename(folder / "test_arm.py")
    run(*TWO, "--ldos-report=r.json")
    (section,) = json.loads((project.path / "r.json").read_text("utf-8"))["sections"]
    line = (folder / "test_arm.py").read_text("utf-8").splitlines().index("@pytest.mark.baseline") + 1
    assert section["test"] == {"file": "cell/test_arm.py", "line": line}
