"""Each option, as a user gives it."""

from __future__ import annotations

import json
import os
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
    result = run("--ldos-trials=3", "--ldos-warmup=0")
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        [
            "ldos: *",
            "starting the stack",
            "*baseline: trial 1 of 3 success  T1 * ms  T4 * ms",
            "*baseline: trial 3 of 3 success*",
            "*results: *.ldos*runs*",
        ]
    )
    result.stdout.no_fnmatch_line("*trials to make*")
    assert len(saved(project).trials) == 3
    assert saved(project).spec.warmup == 0
    assert not list(project.path.glob(".ldos/runs/*/baseline/trace/metadata")), (
        "only those of failed scenarios are kept"
    )


def test_no_trials_are_a_usage_error(run):
    result = run("--ldos-trials=0")
    assert result.ret != 0
    result.stderr.fnmatch_lines(["*--ldos-trials is *0*", "*a whole number, at least 1*"])
    assert "Traceback" not in result.stdout.str()


def test_a_declared_success_rate(run):
    assert (
        run("--ldos-trials=4", "--ldos-success-rate=0.5", stack="lambda i: Motion(error_code=-31 if i else 1)").ret == 0
    )


SETTING = """
import pytest

@pytest.mark.baseline(trials=4, warmup=0)
def test_reach(panda_stack, ldos_trials, ldos_gate):
    ldos_gate.check(ldos_trials(panda_stack))

@pytest.mark.baseline(name="itself", warmup=0)
def test_itself(panda_stack, ldos_trials, ldos_gate):
    ldos_gate.check(ldos_trials(panda_stack, goals="reach", n=3))

@pytest.mark.night
def test_night(panda_stack, ldos_trials, ldos_gate):
    ldos_gate.check(ldos_trials(panda_stack))

@pytest.mark.ldos_scenario("night", name="late_night")
def test_again(panda_stack, ldos_trials, ldos_gate):
    ldos_gate.check(ldos_trials(panda_stack))
"""


def test_command_line_overrides_settings_of_markers_tests_and_scenarios(run, project):
    project.makepyprojecttoml("[tool.ldos.scenarios.night]\ntrials = 3\nwarmup = 0\n")
    project.makepyfile(test_scenario=SETTING)
    assert run("--strict-markers").ret == 0
    names = ("baseline", "itself", "night", "late_night")
    assert [len(saved(project, name).trials) for name in names] == [4, 3, 3, 3]
    project.path.joinpath(".ldos").rename(project.path / "before")
    run("--ldos-trials=2", "-k", "reach")
    assert len(saved(project).trials) == 2


def test_the_settings_of_a_marker_are_listed(run):
    settings = "name=…, " + ", ".join(f"{option.name}=…" for option in OPTIONS.values() if option.per_scenario)
    run("--markers").stdout.fnmatch_lines([f"@pytest.mark.baseline({settings}): *"])


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


def test_an_unknown_argument_of_a_marker_and_a_test_without_a_scenario(run, project):
    project.makepyfile(
        test_scenario="""
        import pytest

        @pytest.mark.baseline(trails=4)
        def test_reach(panda_stack):
            pass

        def test_unmarked(panda_stack):
            pass
        """
    )
    result = run()
    result.stdout.fnmatch_lines(["*argument of marker baseline: 'trails'*", "*did you mean 'trials'*"])
    result.stdout.fnmatch_lines(
        ["*measures a stack but has no scenario*", "*mark it with one of: baseline, cpu_load, msg_load*"]
    )


# --- output, baselines, update, strict --------------------------------------------------


def test_output_and_baselines_elsewhere_and_random_seeds(run, project):
    run(*TWO, "--ldos-output=results", "--ldos-seeds=random")
    (record,) = project.path.glob("results/runs/*/baseline/trials.json")
    assert [trial.seed for trial in read_trials(record).trials] == [None, None]
    assert list(project.path.glob("results/baselines/**/baseline.json"))
    assert not (project.path / ".ldos").exists()


def test_update_replaces_the_baseline(run, record, project):
    record(*TWO)
    (file,) = project.path.glob(".ldos/baselines/**/baseline.json")
    before = file.read_text()
    run(*TWO, stack="noisy(2)")
    assert file.read_text() == before
    result = run(*TWO, "--ldos-update-baseline", stack="noisy(3)")
    result.stdout.fnmatch_lines(["*recorded as the new baseline*"])
    assert file.read_text() != before


def test_ci_is_strict_by_default_and_records_a_baseline_only_on_request(run, project, monkeypatch):
    monkeypatch.setenv("CI", "true")
    assert run(*TWO).ret == 12
    assert not list(project.path.glob(".ldos/baselines/**/*.json"))
    assert run(*TWO, "--ldos-update-baseline").ret == 12
    assert list(project.path.glob(".ldos/baselines/**/*.json"))


# --- traces -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("which", "stack", "kept"),
    [
        ("failed", "lambda i: Motion(error_code=-31 if i else 1)", True),
        ("none", "lambda i: Motion(error_code=-31 if i else 1)", False),
    ],
)
def test_kept_traces(run, project, which, stack, kept):
    result = run(*TWO, f"--ldos-traces={which}", stack=stack)
    traces = list(project.path.glob(".ldos/runs/*/baseline/trace/metadata"))
    assert bool(traces) is kept
    if kept:
        result.stdout.fnmatch_lines([f"*trace: {traces[0].parent}*"])


def test_oldest_traces_are_deleted_to_make_room(run, project):
    for _ in range(2):
        result = run(*TWO, "--ldos-traces=all", "--ldos-traces-limit-mb=0")
    (kept,) = project.path.glob(".ldos/runs/*/baseline/trace")
    result.stdout.fnmatch_lines([f"*trace: {kept}*", "*deleted to stay within 0 MB*"])


# --- what others read -------------------------------------------------------------------


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


# --- what would spoil a measurement -------------------------------------------------------


@pytest.mark.acceptance
def test_parallel_workers_are_refused_with_the_reason(run):
    pytest.importorskip("xdist", reason="pytest-xdist is not installed")
    result = run(*TWO, "-n2")
    assert result.ret != 0
    result.stdout.fnmatch_lines(["*cannot run in pytest-xdist workers*", "*-n 0*"])


def test_run_waits_for_another_up_to_its_limit(run):
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


# --- reports ------------------------------------------------------------------------------


def test_every_format_for_other_tools(run, project):
    """Reports say where the test is written, because an annotation of a workflow goes there."""
    folder = project.mkdir("cell")
    (project.path / "test_scenario.py").rename(folder / "test_arm.py")
    names = ("out/ldos.html", "ldos.md", "ldos.json")
    reports = (f"--ldos-report={name}" for name in names)
    result = run(*TWO, *reports, "--ldos-benchmark-json=out.json", "--junitxml=junit.xml")
    for name in names:
        assert "no baseline" in (project.path / name).read_text("utf-8").replace("no_baseline", "no baseline")
        result.stdout.fnmatch_lines([f"report: *{name}"])
    (section,) = json.loads((project.path / "ldos.json").read_text("utf-8"))["sections"]
    values = [point["value"] for point in section["metrics"][0]["head"]["points"]]
    assert values == [trial.measurements["T1"].value for trial in saved(project).trials]
    line = (folder / "test_arm.py").read_text("utf-8").splitlines().index("@pytest.mark.baseline") + 1
    assert section["test"] == {"file": "cell/test_arm.py", "line": line}
    benchmarks = {each["name"] for each in json.loads((project.path / "out.json").read_text())["benchmarks"]}
    assert benchmarks == {f"baseline[{metric}]" for metric in METRICS}
    properties = dict(properties_in(project.path / "junit.xml"))
    assert (properties["ldos.verdict"], properties["ldos.successes"]) == ("no_baseline", "2/2")
    for metric in METRICS:
        assert float(properties[f"ldos.{metric}.median_ms"]) > 0
        assert len(properties[f"ldos.{metric}.values_ms"].split()) == 2


def test_unknown_report_format_is_a_usage_error(run, project):
    result = run("--ldos-report=x.pdf")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*--ldos-report is *x.pdf*", "*files that end with .html, .md, .json*"])
    assert not list(project.path.glob(".ldos"))


def test_page_without_its_library_is_refused_before_measuring(project, monkeypatch):
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


def test_failed_output_affects_no_other_and_loses_no_record(run, project):
    project.makepyfile(
        test_scenario="""
        import shutil
        import pytest

        @pytest.mark.baseline
        def test_reach(panda_stack, ldos_trials, ldos_gate, pytestconfig):
            ldos_gate.check(ldos_trials(panda_stack))
            for name in ("out", "kept"):
                shutil.rmtree(pytestconfig.rootpath / name)
                (pytestconfig.rootpath / name).write_text("")
        """
    )
    outputs = (
        "--ldos-benchmark-json=out/b.json",
        "--ldos-report=out/x.md",
        "--ldos-report=y.md",
        "--ldos-history=kept",
    )
    result = run(*TWO, *outputs)
    assert result.ret == 11
    for line in (
        "the report could not be written: *out/x.md: *",
        "report: *y.md",
        "the benchmark JSON could not be written: *out/b.json: *",
        "*history: not written: *",
        "*ldos history import *",
    ):
        result.stdout.fnmatch_lines([line])
    assert (project.path / "y.md").exists()
    assert list(project.path.glob(".ldos/runs/*/baseline/trials.json"))
    assert "INTERNALERROR" not in result.stdout.str()


def test_job_summary_is_appended_on_request(run, project, monkeypatch):
    summary = project.path / "summary.md"
    summary.write_text("before\n", "utf-8")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    run(*TWO)
    assert summary.read_text("utf-8") == "before\n"
    run(*TWO, "--ldos-summary").stdout.fnmatch_lines([f"job summary: {summary}"])
    assert summary.read_text("utf-8").startswith("before\n<!-- pytest-ldos report -->\n")


def test_job_summary_outside_of_a_job(run, monkeypatch):
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    run(*TWO, "--ldos-summary").stdout.fnmatch_lines(["no job summary: GITHUB_STEP_SUMMARY is not set*"])
