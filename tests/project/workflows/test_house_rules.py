"""Rules of all workflows: pinned actions, only named permissions, no foreign text in commands."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.builders.workflows import read_workflows

ROOT = Path(__file__).parents[3]
ACTION = ROOT / "action.yml"
FILES = sorted([*(ROOT / ".github" / "workflows").glob("*.yml"), *(ROOT / "examples" / "ci").rglob("*.yml"), ACTION])
WORKFLOWS = read_workflows(ROOT)
PINNED = re.compile(r"[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+(\.\d+)*")
LOCAL = re.compile(r"\./\.github/workflows/[\w-]+\.yml")
OF_TOOLS = "./tools"
"""The action of this repository, as a job has checked it out."""


def jobs() -> Iterator[tuple[str, dict[str, Any]]]:
    for path, workflow in WORKFLOWS.items():
        for name, job in workflow["jobs"].items():
            yield f"{path}, {name}", job


def steps() -> Iterator[tuple[str, dict[str, Any]]]:
    for where, job in jobs():
        yield from ((f"{where}, step {number}", step) for number, step in enumerate(job.get("steps", ()), 1))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_actions_are_pinned_by_commit_and_version(file):
    for line in file.read_text("utf-8").splitlines():
        found = re.match(r"\s*(?:- )?uses: (.+)", line)
        if found:
            used = found.group(1)
            is_ours = LOCAL.fullmatch(used.split(" #")[0]) or (file.name, used.split(" #")[0]) == (
                "measure.yml",
                OF_TOOLS,
            )
            assert PINNED.fullmatch(used) or is_ours, line


WRITING = {
    (".github/workflows/baseline.yml", "propose"): {"contents"},
    (".github/workflows/history.yml", "keep"): {"contents"},
    (".github/workflows/nightly.yml", "lab"): {"actions"},
    (".github/workflows/pages.yml", "deploy"): {"pages", "id-token"},
    (".github/workflows/regression.yml", "notify"): {"issues"},
    (".github/workflows/report.yml", "post"): {"pull-requests", "statuses"},
    (".github/workflows/request.yml", "decide"): {"pull-requests", "statuses"},
    (".github/workflows/sweep.yml", "sweep"): {"statuses"},
    (".github/workflows/verdict.yml", "begin"): {"statuses"},
    (".github/workflows/verdict.yml", "propose"): {"contents"},
    (".github/workflows/wheels.yml", "publish"): {"id-token", "attestations"},
    (".github/workflows/wheels.yml", "tag"): {"contents"},
}
"""Every job of ours that may write, and what; calls hand through what these need."""


def test_no_workflow_has_rights_and_each_job_names_its_own():
    assert {path: each["permissions"] for path, each in WORKFLOWS.items() if each["permissions"] != {}} == {}
    for where, job in jobs():
        assert isinstance(job["permissions"], dict), where


def rights_to_write(job: dict[str, Any]) -> set[str]:
    return {name for name, right in job["permissions"].items() if right == "write"}


def test_write_permission_is_only_in_jobs_without_foreign_code():
    """These jobs install nothing, and read only what a job without rights has made."""
    found = {
        (path, name): job
        for path, workflow in WORKFLOWS.items()
        for name, job in workflow["jobs"].items()
        if "steps" in job and rights_to_write(job)
    }
    assert found.keys() == WRITING.keys()
    for where, job in found.items():
        assert rights_to_write(job) == WRITING[where], where
        assert job["runs-on"] == "ubuntu-24.04"
        if where[1] in {"publish", "deploy"}:
            continue
        used = [step["uses"].partition("@")[0] for step in job["steps"] if "uses" in step]
        assert used in (["actions/checkout", "actions/download-artifact"], ["actions/checkout"]), where
        for run in (step["run"] for step in job["steps"] if "run" in step):
            assert re.match(r"python3 -I \.ci/results [a-z-]+ ", run), where
        checkout = job["steps"][0]["with"]
        assert checkout["sparse-checkout"] == ".ci", where


def test_pages_are_deployed_by_a_separate_job():
    """It takes an artifact by its name: in that run, no other job makes one, and none runs what was measured."""
    workflow = WORKFLOWS[".github/workflows/pages.yml"]
    make, deploy = (workflow["jobs"][name] for name in ("make", "deploy"))
    assert len(workflow["jobs"]) == 2
    (step,) = deploy["steps"]
    assert step["uses"].startswith("actions/deploy-pages@")
    assert "with" not in step
    assert deploy["needs"] == "make"
    assert "if" not in deploy, "it is skipped where nothing is made"
    assert make["if"] == "${{ vars.LDOS_PAGES == 'true' }}", "somebody has asked for pages"
    assert make["permissions"] == {"contents": "read"}
    assert make["runs-on"] == deploy["runs-on"] == "ubuntu-24.04"
    used = [each["uses"].partition("@")[0] for each in make["steps"] if "uses" in each]
    assert used == ["actions/checkout", "actions/checkout", "actions/upload-artifact"]
    for step in make["steps"][:2]:
        assert "github.event.repository.default_branch" in step["with"]["ref"]
        assert "workflow_run" not in str(step["with"])


def test_writing_job_reads_the_uniquely_named_artifact_of_its_predecessor():
    """In runs in which a lab machine could upload one; a publishing run contains no measured code."""
    for path, name in WRITING.keys() - {(".github/workflows/wheels.yml", "publish")}:
        job = WORKFLOWS[path]["jobs"][name]
        for step in job["steps"]:
            if not str(step.get("uses")).startswith("actions/download-artifact@"):
                continue
            (taken,) = re.findall(r"\$\{\{ needs\.(\w+)\.outputs\.(\w+) \}\}", step["with"]["artifact-ids"])
            maker, output = taken
            assert job["needs"] == maker
            assert "name" not in step["with"]
            made = WORKFLOWS[path]["jobs"][maker]
            if "uses" in made:  # a called workflow hands its own job's output on
                called = WORKFLOWS[made["uses"].removeprefix("./")]
                value = called[True]["workflow_call"]["outputs"][output]["value"]
                ((maker, output),) = re.findall(r"\$\{\{ jobs\.(\w+)\.outputs\.(\w+) \}\}", value)
                made = called["jobs"][maker]
            (uploaded,) = re.findall(r"steps\.(\w+)\.outputs\.artifact-id", made["outputs"][output])
            (upload,) = (each for each in made["steps"] if each.get("id") == uploaded)
            assert upload["uses"].startswith("actions/upload-artifact@"), (path, name)


def test_artifacts_have_separate_folders():
    """One at a time, or each in a folder of its own name: one that is alone would have none, so there is always another.

    It is made before any machine begins, by the job that names the machines.
    """
    made = {
        step["with"]["name"].removesuffix("-none")
        for step in WORKFLOWS[".github/workflows/classes.yml"]["jobs"]["check"]["steps"]
        if str(step.get("uses")).startswith("actions/upload-artifact@")
        and (ROOT / step["with"]["path"]).is_file()
        and step["with"]["if-no-files-found"] == "error"
    }
    for where, step in steps():
        if not str(step.get("uses")).startswith("actions/download-artifact@"):
            continue
        given = step["with"]
        assert "merge-multiple" not in given, where
        assert len({"name", "artifact-ids", "pattern"} & given.keys()) == 1, where
        if "pattern" in given:
            kinds = given["pattern"].removesuffix("-*").strip("{}").split(",")
            assert {*kinds} <= made, where


def test_machines_begin_after_the_check_of_classes():
    for where, job in jobs():
        if "self-hosted" in str(job.get("runs-on")) or str(job.get("uses")).endswith("/measure.yml"):
            assert "classes" in job.get("needs", ()) or where == ".github/workflows/measure.yml, measure", where


def test_token_for_other_runs_artifacts_is_not_passed_to_programs():
    for where, step in steps():
        if "github-token" in step.get("with", {}):
            assert step["uses"].startswith("actions/download-artifact@"), where
            assert step["with"]["github-token"] == "${{ inputs.run && github.token || '' }}", where
            assert "run-id" in step["with"], where


def test_artifacts_of_machines_are_named_by_their_labels():
    """Artifacts that the jobs above download by a pattern."""
    left = {
        step["with"]["name"]
        for step in yaml.safe_load(ACTION.read_text("utf-8"))["runs"]["steps"]
        if str(step.get("uses")).startswith("actions/upload-artifact@")
    }
    label = "-${{ inputs.host-class }}"
    assert {f"{kind}{label}" for kind in ("report", "traces", "result", "trials", "baselines")} == left


def test_call_passes_only_needed_permissions():
    for where, job in jobs():
        called = LOCAL.fullmatch(str(job.get("uses", "")))
        if not called:
            continue
        inner = WORKFLOWS[job["uses"].removeprefix("./")]["jobs"].values()
        needed = set().union(*(rights_to_write(each) for each in inner))
        assert rights_to_write(job) == needed, where


def test_jobs_that_read_results_have_no_token():
    """But to read the branch of the history, and what was accepted, before anything else is read."""
    with_token = {
        (where.split(",")[0], step["run"].split()[3])
        for where, step in steps()
        if any("github.token" in str(value) for value in step.get("env", {}).values())
    }
    assert with_token == {
        (".github/workflows/baseline.yml", "propose"),
        (".github/workflows/gate.yml", "find-base"),
        (".github/workflows/gate.yml", "reuse"),
        (".github/workflows/history.yml", "fetch-history"),
        (".github/workflows/history.yml", "keep-history"),
        (".github/workflows/nightly.yml", "start"),
        (".github/workflows/pages.yml", "fetch-history"),
        (".github/workflows/regression.yml", "notify"),
        (".github/workflows/report.yml", "comment"),
        (".github/workflows/report.yml", "conclude"),
        (".github/workflows/report.yml", "fetch-commits"),
        (".github/workflows/report.yml", "keep-accepted"),
        (".github/workflows/report.yml", "read-accepted"),
        (".github/workflows/request.yml", "decide"),
        (".github/workflows/sweep.yml", "sweep"),
        (".github/workflows/verdict.yml", "begin"),
        (".github/workflows/verdict.yml", "propose-accepted"),
        (".github/workflows/wheels.yml", "move-tag"),
    }


def groups() -> Iterator[tuple[str, dict[str, Any]]]:
    for path, workflow in WORKFLOWS.items():
        if "concurrency" in workflow:
            yield path, workflow["concurrency"]
    for where, job in jobs():
        if "concurrency" in job:
            yield where, job["concurrency"]


def test_measuring_and_writing_jobs_are_queued_and_none_is_cancelled():
    """actionlint does not know the key yet: what it can be is looked at here."""
    for where, group in groups():
        if where == NEWEST_ALONE:
            continue
        assert group.keys() <= {"group", "cancel-in-progress", "queue"}, where
        assert ("queue" in group) != group["cancel-in-progress"], where
        assert group.get("queue", "max") == "max", where
    kept = {where.split(",")[0] for where, group in groups() if "queue" in group}
    names = ("baseline", "explore", "gate", "history", "measure", "regression", "request", "verdict")
    assert kept == {f".github/workflows/{name}.yml" for name in names}


NEWEST_ALONE = ".github/workflows/request.yml, measure"


def test_newest_waiting_commit_of_a_pull_request_is_measured():
    """A running measurement continues; a waiting commit is superseded, with a report."""
    group = WORKFLOWS[".github/workflows/request.yml"]["jobs"]["measure"]["concurrency"]
    assert group.keys() == {"group", "cancel-in-progress"}
    assert group["cancel-in-progress"] is False
    assert "needs.decide.outputs.pull-request" in group["group"]
    assert "matrix.host-class" in group["group"]
    report = WORKFLOWS[".github/workflows/request.yml"]["jobs"]["report"]
    assert report["if"] == "${{ always() && needs.decide.outputs.commit }}"
    assert WORKFLOWS[".github/workflows/report.yml"]["jobs"]["post"]["if"] == "${{ always() }}"


def test_a_machine_of_the_lab_has_one_job():
    """Whatever workflow it is of: their groups are called the same."""
    for path, name, label in (("measure", "measure", "inputs.host-class"), ("explore", "explore", "matrix.host-class")):
        job = WORKFLOWS[f".github/workflows/{path}.yml"]["jobs"][name]
        assert job["runs-on"] == ["self-hosted", f"${{{{ {label} }}}}"]
        assert job["concurrency"]["group"] == f"lab-${{{{ {label} }}}}"


def test_regression_issue_is_off_by_default():
    """Its job is skipped, and the gate's base is the commit before."""
    job = WORKFLOWS[".github/workflows/regression.yml"]["jobs"]["notify"]
    assert job["if"] == "${{ vars.LDOS_REGRESSION_ISSUE == 'true' }}"
    assert job["permissions"] == {"contents": "read", "issues": "write", "statuses": "read"}
    gate = WORKFLOWS[".github/workflows/gate.yml"]["jobs"]
    (step,) = (each for each in gate["reuse"]["steps"] if each.get("id") == "base")
    assert step["if"] == "${{ vars.LDOS_REGRESSION_ISSUE == 'true' && github.event_name == 'push' }}"
    base = "${{ needs.reuse.outputs.base || github.event.merge_group.base_sha || github.event.before }}"
    assert gate["measure"]["with"]["base"] == base


OURS_ALONE = (
    "github.event.workflow_run.head_repository.full_name == github.repository && "
    "(github.event.workflow_run.event == 'merge_group' || (github.event.workflow_run.event == 'push' && "
    "github.event.workflow_run.head_branch == github.event.repository.default_branch))"
)
"""Anybody with a fork can have a workflow of the gate's name, and let it leave what they like."""


def test_a_verdict_follows_the_gate_of_the_queue_and_of_the_default_branch_alone():
    jobs = WORKFLOWS[".github/workflows/verdict.yml"]["jobs"]
    assert jobs["begin"]["if"] == f"${{{{ github.event.action == 'requested' && {OURS_ALONE} }}}}"
    assert jobs["classes"]["if"] == f"${{{{ github.event.action == 'completed' && {OURS_ALONE} }}}}"
    for name in jobs.keys() - {"begin", "classes"}:
        assert jobs[name]["needs"] in ("classes", "report"), "it is skipped where that is"
        condition = jobs[name]["if"]
        assert "always()" not in condition
        assert "!cancelled()" not in condition or "needs.classes.result != 'skipped'" in condition


def test_workflow_calls_cannot_deadlock():
    """Expressions of a called workflow have the caller's values: one group in both is a deadlock, which GitHub cancels."""
    for file in FILES:
        workflow = yaml.safe_load(file.read_text("utf-8"))
        own = workflow.get("concurrency", {}).get("group")
        for job in workflow.get("jobs", {}).values():
            called = re.search(r"\.github/workflows/[\w-]+\.yml", str(job.get("uses", "")))
            if called and own:
                assert WORKFLOWS[called.group()].get("concurrency", {}).get("group") != own, file


def test_no_workflow_writes_green_by_itself():
    """The status is written by programs that have read what was decided from raw trials."""
    for file in FILES:
        assert not re.search(r"statuses/|--state|check-runs|state: success", file.read_text("utf-8")), file
    for where, step in steps():
        if "results conclude" in step.get("run", ""):
            assert where == ".github/workflows/report.yml, post, step 3"
            assert step["env"]["RESULT"] == "${{ inputs.result }}"
    results = {
        path: job["with"]["result"]
        for path, workflow in WORKFLOWS.items()
        for job in workflow["jobs"].values()
        if str(job.get("uses")).endswith("/report.yml")
    }
    assert results == {
        ".github/workflows/request.yml": "${{ needs.measure.result }}",
        ".github/workflows/verdict.yml": "${{ github.event.workflow_run.conclusion }}",
    }


def test_judging_code_is_never_from_the_measured_commit():
    """On the machine: settings, scenarios, tests, plugin and gate are the default branch's, or a release's."""
    job = WORKFLOWS[".github/workflows/measure.yml"]["jobs"]["measure"]
    *checkouts, measure = job["steps"]
    assert {step["with"]["path"]: step["with"]["ref"] for step in checkouts} == {
        "project": "refs/heads/${{ github.event.repository.default_branch }}",
        "measured": "${{ inputs.commit }}",
        "tools": "${{ inputs.tools-ref }}",
    }
    assert measure["uses"] == OF_TOOLS
    assert (measure["with"]["project"], measure["with"]["measured"]) == ("project", "measured")


def test_forks_commit_is_checked_out_only_with_permission():
    """The action itself refuses it for an event of a pull request, unless that is allowed: nothing here allows it."""
    for file in FILES:
        assert "allow-unsafe-pr-checkout" not in file.read_text("utf-8"), file


def test_machine_labels_are_validated_before_use():
    """The variable is read in one place."""
    for file in FILES:
        known = {
            "classes.yml": {"LDOS_HOST_CLASSES"},
            "gate.yml": {"LDOS_REGRESSION_ISSUE"},
            "pages.yml": {"LDOS_PAGES"},
            "regression.yml": {"LDOS_REGRESSION_ISSUE"},
            "report.yml": {"LDOS_MAINTAINERS"},
            "request.yml": {"LDOS_MAINTAINERS"},
        }
        own = known.get(file.name, set()) if file.is_relative_to(ROOT / ".github") else set()
        assert {*re.findall(r"vars\.(\w+)", file.read_text("utf-8"))} == own, file
    for where, job in jobs():
        matrix = job.get("strategy", {}).get("matrix", {})
        if "host-class" in matrix:
            assert matrix["host-class"] == "${{ fromJSON(needs.classes.outputs.labels) }}", where
            assert "classes" in job["needs"], where
            assert job["strategy"]["fail-fast"] is False


def test_checked_out_code_gets_no_credentials():
    for where, step in steps():
        if str(step.get("uses", "")).startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False, where


def test_a_step_is_one_command_without_expressions():
    """Expressions reach a command through its environment."""
    for where, step in steps():
        run = step.get("run", "")
        assert "${{" not in run, where
        assert len(run.strip().splitlines()) <= 1, where
        assert not re.search(r"&&|\|\||;|`|\$\(", run), where


def test_every_job_ends():
    for where, job in jobs():
        assert "uses" in job or job["timeout-minutes"] <= 180, where


def test_no_secret_is_used():
    for file in FILES:
        assert "secrets." not in file.read_text("utf-8")
        assert "secrets: inherit" not in file.read_text("utf-8")


def test_scripts_that_are_named_exist():
    for where, step in steps():
        for script in re.findall(r"\.ci/[\w./-]+", step.get("run", "")):
            assert (ROOT / script).is_file() or (ROOT / script / "__main__.py").is_file(), (where, script)


def test_linters_report_nothing():
    """actionlint only where it is on the path: it is no Python package."""
    done = subprocess.run(["sh", ".ci/lint-workflows"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
