"""No job that may write runs what was measured, however it is called; and this test would see one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders.workflows import parse, read_workflows
from tests.builders.writers import DEFAULT_BRANCH, find_tool_faults

ROOT = Path(__file__).parents[3]
OR_REF = "format('refs/heads/{0}', github.event.repository.default_branch || github.ref_name)"
FORMATTED = "format('refs/heads/{0}', github.event.repository.default_branch)"
PINNED = "{repository: a/b, ref: 1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f}"


def workflow(on: str, checkout: str, permissions: str = "{contents: write}") -> str:
    return (
        f"name: x\non: {on}\njobs:\n  a:\n    runs-on: ubuntu-24.04\n    permissions: {permissions}\n    steps:\n"
        f"      - {{uses: actions/checkout@v7, with: {checkout}}}\n"
    )


def calling(on: str, given: str) -> str:
    return f"name: x\non: {on}\njobs:\n  a:\n    uses: ./.github/workflows/b.yml\n    with: {given}\n"


def called(default: str) -> str:
    inputs = f"{{where: {{type: string, default: '${{{{ github.repository }}}}'}}, tools: {{type: string, default: '{default}'}}}}"
    checkout = "{repository: '${{ inputs.where }}', ref: '${{ inputs.tools }}'}"
    return workflow(f"{{workflow_call: {{inputs: {inputs}}}}}", checkout)


def faults(**texts: str) -> list[str]:
    return find_tool_faults({f".github/workflows/{name}.yml": parse(text) for name, text in texts.items()})


def test_own_writing_jobs_run_no_measured_code():
    assert find_tool_faults(read_workflows(ROOT)) == []


@pytest.mark.parametrize("path", ["baseline", "history", "nightly", "regression", "request", "sweep", "verdict"])
def test_unsafe_edit_is_detected(path):
    """In each workflow with a job that writes, the line that says where its tools come from."""
    workflows = read_workflows(ROOT)
    name = f".github/workflows/{path}.yml"
    text = (ROOT / name).read_text("utf-8")
    for mark in DEFAULT_BRANCH:
        text = text.replace(mark, "${{ github.sha }}").replace(FORMATTED, "github.sha").replace(OR_REF, "github.sha")
    found = find_tool_faults({**workflows, name: parse(text)})
    assert found
    assert all("may write, and checks out" in each for each in found)


@pytest.mark.parametrize("given", ["${{ github.sha }}", "${{ inputs.sha || github.sha }}", "main", ""])
def test_caller_that_passes_measured_code_is_detected(given):
    workflows = read_workflows(ROOT)
    verdict = workflows[".github/workflows/verdict.yml"]
    verdict["jobs"]["report"]["with"]["tools-ref"] = given
    found = find_tool_faults(workflows)
    assert {each.partition(",")[0] for each in found} == {
        ".github/workflows/verdict.yml → .github/workflows/report.yml"
    }


def test_workflows_to_copy_name_a_commit():
    """Their own workflows call ours in another repository, whose tools they pin."""
    for file in (ROOT / "examples" / "ci").rglob("gate.yml"):
        for job in parse(file.read_text("utf-8"))["jobs"].values():
            if "write" in job["permissions"].values():
                given = job["with"]
                assert job["uses"].startswith(f"{given['tools-repository']}/")
                assert job["uses"].endswith(f"@{given['tools-ref']}")


@pytest.mark.parametrize("event", ["push", "merge_group", "workflow_dispatch", "pull_request_target"])
@pytest.mark.parametrize(
    "checkout",
    [
        "{}",
        "{ref: main}",
        "{ref: '${{ github.sha }}'}",
        "{ref: '${{ github.event.merge_group.head_sha }}'}",
        "{ref: '${{ inputs.sha }}'}",
        "{repository: a/b}",
        "{repository: a/b, ref: main}",
        "{repository: '${{ github.repository }}', ref: 1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f}",
        "{repository: '${{ github.event.pull_request.head.repo.full_name }}', ref: 1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f}",
    ],
)
def test_possibly_measured_code_is_recognised(event, checkout):
    (fault,) = faults(a=workflow(event, checkout))
    assert fault.startswith(".github/workflows/a.yml, job a: may write, and checks out ")


@pytest.mark.parametrize("checkout", [PINNED, *(f"{{ref: '{each}'}}" for each in DEFAULT_BRANCH)])
def test_other_code_is_recognised(checkout):
    assert faults(a=workflow("push", checkout)) == []


@pytest.mark.parametrize("permissions", ["{contents: read}", "{}", "read-all"])
def test_job_without_write_permission_may_run_anything(permissions):
    assert faults(a=workflow("push", "{}", permissions)) == []


@pytest.mark.parametrize(
    "permissions", ["{pull-requests: write}", "{contents: read, statuses: write}", "write-all", "null"]
)
def test_every_kind_of_write_permission_counts(permissions):
    assert faults(a=workflow("push", "{}", permissions))


@pytest.mark.parametrize("form", ["./.ci/action", "$/.ci/action"])
def test_an_action_of_the_checkout_is_code_too(form):
    text = workflow("push", PINNED).replace("actions/checkout@v7", form)
    assert faults(a=text) == [f".github/workflows/a.yml, job a: may write, and checks out an action of its own, {form}"]


@pytest.mark.parametrize(
    ("given", "is_fault"),
    [
        ("{}", False),
        ("{tools: '${{ github.sha }}'}", True),
        ("{tools: main}", True),
        ("{tools: ''}", True),
        ("{where: a/b, tools: 1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f}", False),
        ("{where: a/b, tools: '${{ github.sha }}'}", True),
    ],
)
def test_inputs_from_a_caller(given, is_fault):
    assert bool(faults(a=calling("push", given), b=called(DEFAULT_BRANCH[0]))) is is_fault


def test_input_that_defaults_to_the_measured_commit():
    assert faults(a=calling("push", "{}"), b=called("${{ github.sha }}")) == [
        ".github/workflows/a.yml → .github/workflows/b.yml, job a: may write, and checks out ${{ github.sha }}"
    ]
