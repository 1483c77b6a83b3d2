"""No untrusted event reaches the lab's machine through any chain of workflow calls; and this test would find one."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from tests.builders.workflows import dispatchers, events_of, find_faults, lab_jobs, parse, read_workflows

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "examples" / "ci"
FORBIDDEN = ("pull_request", "pull_request_target", "workflow_run", "issue_comment")
"""The second and the last of these reach it after a job has decided about them."""


def test_own_jobs_reach_the_lab_only_with_permission():
    workflows = read_workflows(ROOT)
    assert len(workflows) >= 9
    assert find_faults(workflows) == []


@pytest.mark.parametrize(
    ("folder", "jobs"),
    [("github", ["ldos", "measure"]), ("workspace/.github/workflows", ["ldos"])],
)
def test_workflows_to_copy_reach_the_lab_only_with_permission(folder, jobs):
    workflows = {file.name: parse(file.read_text("utf-8")) for file in (EXAMPLES / folder).glob("*.yml")}
    assert {name for _, name in lab_jobs(workflows)} == {*jobs}
    assert not any("verdict.yml" in path for path, _ in lab_jobs(read_workflows(ROOT)))
    assert find_faults(workflows) == []


def test_jobs_that_reach_the_lab_are_these():
    """So that the test above is about something."""
    assert lab_jobs(read_workflows(ROOT)) == {
        (".github/workflows/gate.yml", "measure"),
        (".github/workflows/request.yml", "measure"),
        (".github/workflows/baseline.yml", "measure"),
        (".github/workflows/explore.yml", "explore"),
    }


def test_example_allow_list_allows_exactly_these_jobs():
    """For each event the workflows that it starts."""
    allowed = tomllib.loads((ROOT / "lab" / "runner" / "runner.toml").read_text("utf-8"))["allow"]
    workflows = read_workflows(ROOT)
    for path in workflows:
        events = (
            {*events_of(workflows[path])} - {"workflow_call"}
            if path in {first for first, _ in lab_jobs(workflows)}
            else set()
        )
        assert {rule["event"] for rule in allowed if path in rule["workflows"]} == events, path


def test_scheduled_start_equals_a_manual_one():
    """The nightly workflow reaches the lab's machines by one way: a start with a commit, of what is on the main branch."""
    workflows = read_workflows(ROOT)
    assert dispatchers(workflows) == {(".github/workflows/nightly.yml", "lab")}
    assert {*events_of(workflows[".github/workflows/nightly.yml"])} == {"schedule", "workflow_dispatch"}
    (step,) = (each for each in workflows[".github/workflows/nightly.yml"]["jobs"]["lab"]["steps"] if "run" in each)
    assert '--commit "$GITHUB_SHA" --ref "$GITHUB_REF_NAME"' in step["run"]


LAB = "runs-on: [self-hosted, ldos-lab]"


def workflow(on: str, job: str = LAB) -> str:
    return f"name: x\non: {on}\njobs:\n  a:\n    {job}\n    steps: []\n"


CALLED = "{workflow_call: {inputs: {where: {type: string, default: ubuntu-24.04}}}}"
CALLS_B = "uses: ./.github/workflows/b.yml"
GOOD_PUSH = "{push: {branches: [main]}}"


def faults(**texts: str) -> list[str]:
    return find_faults({f".github/workflows/{name}.yml": parse(text) for name, text in texts.items()})


@pytest.mark.parametrize(
    "texts",
    [
        {"a": workflow(GOOD_PUSH)},
        {"a": workflow("{merge_group: {branches: [main]}}")},
        {"a": workflow("{workflow_dispatch: {inputs: {sha: {required: true}}}}")},
        {"a": workflow("pull_request", "runs-on: ubuntu-24.04")},
        {"a": workflow("pull_request", "runs-on: {labels: [ubuntu-24.04]}")},
        {"a": workflow("pull_request", "runs-on: ${{ matrix.x }}\n    strategy: {matrix: {x: [ubuntu-24.04]}}")},
        {"a": workflow(GOOD_PUSH, CALLS_B), "b": workflow(CALLED)},
        {"a": workflow("pull_request", CALLS_B), "b": workflow(CALLED, "runs-on: ${{ inputs.where }}")},
        {"b": workflow(CALLED)},
    ],
    ids=range(9),
)
def test_permitted_workflows(texts):
    assert faults(**texts) == []


@pytest.mark.parametrize("event", FORBIDDEN)
@pytest.mark.parametrize("form", ["{}", "[push, {}]", "{{{}: }}", "{{push: {{branches: [main]}}, {}: {{types: [x]}}}}"])
def test_untrusted_events_in_every_form(event, form):
    found = faults(a=workflow(form.format(event)))
    assert any(each.endswith(f"and can be started by {event}") for each in found)


@pytest.mark.parametrize("key", ["on", '"on"', "'on'", "true", "On"])
def test_the_key_that_yaml_reads_as_true(key):
    text = workflow("pull_request").replace("on:", f"{key}:", 1)
    assert events_of(parse(text)) == {"pull_request": None} or key == "On"
    assert faults(a=text)


@pytest.mark.parametrize(
    "job",
    [
        "runs-on: self-hosted",
        "runs-on: ldos-lab",
        "runs-on: [ubuntu-24.04, self-hosted]",
        "runs-on: {group: lab}",
        "runs-on: {group: lab, labels: ubuntu-24.04}",
        "runs-on: {labels: [ldos-lab]}",
        "runs-on: ${{ vars.RUNNER }}",
        "runs-on: ${{ github.event.pull_request.title }}",
        "runs-on: ${{ fromJSON('[\"self-hosted\"]') }}",
        "runs-on: ${{ github.event_name == 'push' && 'ldos-lab' || 'ubuntu-24.04' }}",
        "runs-on: ${{ matrix.x }}\n    strategy: {matrix: {x: [ubuntu-24.04, ldos-lab]}}",
        "runs-on: ${{ matrix.x }}\n    strategy: {matrix: {include: [{x: ldos-lab}]}}",
        "runs-on: ['${{ matrix.x }}']\n    strategy: {matrix: {x: [self-hosted]}}",
        "runs-on: ${{ matrix.x }}\n    strategy: {matrix: '${{ fromJSON(needs.b.outputs.m) }}'}",
        "runs-on: ${{ matrix.x }}\n    strategy: {matrix: {x: '${{ fromJSON(inputs.m) }}'}}",
        "runs-on: ${{ matrix.x }}\n    strategy: {matrix: {x: [ubuntu-24.04], include: '${{ fromJSON(vars.m) }}'}}",
        "runs-on: ldos-${{ matrix.x }}\n    strategy: {matrix: {x: [lab]}}",
        "runs-on: [self-hosted, '${{ matrix.x }}']\n    strategy: {matrix: {x: '${{ fromJSON(needs.c.outputs.l) }}'}}",
        "runs-on: ['${{ matrix.x }}']\n    strategy: {matrix: {x: '${{ fromJSON(needs.c.outputs.l) }}'}}",
        "runs-on: ['${{ matrix.x }}', '${{ matrix.y }}']\n    strategy: {matrix: {x: [ubuntu-24.04], y: '${{ x }}'}}",
        "runs-on: {labels: ['${{ matrix.x }}']}\n    strategy: {matrix: {include: '${{ fromJSON(vars.m) }}'}}",
        "if: github.event_name == 'push'\n    runs-on: ldos-lab",
        "if: false\n    runs-on: ldos-lab",
        "uses: stranger/repo/.github/workflows/x.yml@main",
    ],
)
def test_lab_machine_label_in_every_form(job):
    assert faults(a=workflow("pull_request", job))


@pytest.mark.parametrize(
    ("on", "reason"),
    [
        ("push", "a push to a branch that is not protected"),
        ("{push: {branches: ['*']}}", "a push to a branch that is not protected"),
        ("{push: {branches: [main, topic]}}", "a push to a branch that is not protected"),
        ("{push: {branches-ignore: [topic]}}", "a push to a branch that is not protected"),
        ("{push: {branches: [main], tags: ['v*']}}", "a tag"),
        ("merge_group", "the queue of a branch that is not protected"),
        ("workflow_dispatch", "by hand without naming a commit"),
        ("{workflow_dispatch: {inputs: {sha: {required: false}}}}", "by hand without naming a commit"),
        ("{schedule: [{cron: '1 1 * * *'}]}", "schedule"),
        ("repository_dispatch", "repository_dispatch"),
        ("issues", "issues"),
        ("pull_request_review", "pull_request_review"),
        ("fork", "fork"),
    ],
)
def test_other_forbidden_starts(on, reason):
    (fault,) = faults(a=workflow(on))
    assert reason in fault


@pytest.mark.parametrize("event", FORBIDDEN)
def test_through_a_call(event):
    assert faults(a=workflow(event, CALLS_B), b=workflow(CALLED)) == [
        ".github/workflows/a.yml → .github/workflows/b.yml, job a: "
        f"may run on ldos-lab, self-hosted and can be started by {event}"
    ]


def test_through_two_calls_and_in_the_new_form():
    found = faults(
        a=workflow("pull_request", "uses: $/.github/workflows/b.yml"),
        b=workflow("workflow_call", "uses: ./.github/workflows/c.yml"),
        c=workflow("workflow_call", "runs-on: ldos-lab"),
    )
    assert found == [
        ".github/workflows/a.yml → .github/workflows/b.yml → .github/workflows/c.yml, job a: "
        "may run on ldos-lab and can be started by pull_request"
    ]


@pytest.mark.parametrize(
    "given",
    ["ldos-lab", "${{ github.head_ref }}", "${{ matrix.x }}", "${{ inputs.where }}", "${{ needs.c.outputs.labels }}"],
)
def test_a_label_that_a_caller_gives(given):
    caller = workflow("pull_request", f"{CALLS_B}\n    with: {{where: '{given}'}}")
    assert faults(a=caller, b=workflow(CALLED, "runs-on: ${{ inputs.where }}"))


def test_a_label_that_is_handed_through():
    middle = workflow(
        "{workflow_call: {inputs: {w: {type: string}}}}",
        "uses: ./.github/workflows/c.yml\n    with: {where: '${{ inputs.w }}'}",
    )
    last = workflow(CALLED, "runs-on: ${{ inputs.where }}")
    for given, is_fault in (("ldos-lab", True), ("ubuntu-24.04", False)):
        first = workflow("pull_request", f"{CALLS_B}\n    with: {{w: {given}}}")
        assert bool(faults(a=first, b=middle, c=last)) is is_fault


@pytest.mark.parametrize("event", FORBIDDEN)
def test_a_label_of_a_matrix_that_is_handed_to_a_called_workflow(event):
    caller = workflow(
        event, f"{CALLS_B}\n    strategy: {{matrix: {{x: [ubuntu-24.04]}}}}\n    with: {{where: '${{{{ matrix.x }}}}'}}"
    )
    assert faults(a=caller, b=workflow(CALLED, "runs-on: ${{ inputs.where }}"))


STARTS = "runs-on: ubuntu-24.04\n    permissions: {permissions}"


@pytest.mark.parametrize("rights", ["{actions: write}", "write-all", "{contents: read, actions: write}"])
@pytest.mark.parametrize("event", [*FORBIDDEN, "issues", "pull_request_review", "repository_dispatch"])
def test_untrusted_event_that_may_start_other_workflows(event, rights):
    """A start by hand is only as good as whoever starts it."""
    (fault,) = faults(a=workflow(event, STARTS.format(permissions=rights)))
    assert fault == f".github/workflows/a.yml, job a: may start workflows by hand and can be started by {event}"


def test_rights_of_a_whole_workflow_count():
    text = workflow("issues", "runs-on: ubuntu-24.04").replace("jobs:", "permissions: {actions: write}\njobs:")
    assert faults(a=text)
    assert faults(a=text.replace("{actions: write}", "{}")) == []


def test_a_call_hands_the_right_on():
    called = workflow(CALLED, "runs-on: ubuntu-24.04")
    assert faults(a=workflow("issues", f"{CALLS_B}\n    permissions: {{actions: write}}"), b=called)


@pytest.mark.parametrize("on", ["{schedule: [{cron: '1 1 * * *'}]}", "workflow_dispatch", GOOD_PUSH])
def test_jobs_that_may_start_other_workflows(on):
    assert faults(a=workflow(on, STARTS.format(permissions="{actions: write}"))) == []


def test_one_good_caller_does_not_excuse_a_bad_one():
    found = faults(
        a=workflow(GOOD_PUSH, CALLS_B), b=workflow(CALLED, "runs-on: ldos-lab"), c=workflow("pull_request", CALLS_B)
    )
    assert len(found) == 1
    assert "c.yml" in found[0]


ASKED = """name: x
on: {on}
jobs:
  decide:
    runs-on: ubuntu-24.04
    steps: [{{run: "python3 -I .ci/results decide --repository x"}}]
  measure:
    needs: [decide]
    if: ${{{{ needs.decide.outputs.commit }}}}
    uses: ./.github/workflows/b.yml
    with: {{commit: "${{{{ needs.decide.outputs.commit }}}}"}}
"""
BY_PULL_REQUEST = "{pull_request_target: {types: [opened, synchronize]}}"
BY_COMMENT = "{issue_comment: {types: [created]}}"
MEASURES = workflow("{workflow_call: {inputs: {commit: {type: string}}}}")


@pytest.mark.parametrize("on", [BY_PULL_REQUEST, BY_COMMENT])
def test_job_after_the_decision_is_permitted(on):
    assert faults(a=ASKED.format(on=on), b=MEASURES) == []


@pytest.mark.parametrize(
    ("line", "other"),
    [
        ("needs: [decide]", "needs: []"),
        ("    if: ${{ needs.decide.outputs.commit }}\n", ""),
        ("if: ${{ needs.decide.outputs.commit }}", "if: ${{ always() && needs.decide.outputs.commit }}"),
        ("if: ${{ needs.decide.outputs.commit }}", "if: ${{ true }}"),
        ('commit: "${{ needs.decide.outputs.commit }}"', 'commit: "${{ github.event.pull_request.head.sha }}"'),
        ('run: "python3 -I .ci/results decide --repository x"', 'run: "echo commit=HEAD"'),
        ("[created]", "[created, edited]"),
        (", types: [created]", ""),
        ("issue_comment:", "pull_request:"),
        ("issue_comment:", "pull_request_review_comment:"),
        ("issue_comment:", "discussion_comment:"),
    ],
)
def test_gap_in_the_decision_is_detected(line, other):
    text = ASKED.format(on="{issue_comment: {types: [created]}}").replace(
        "{types: [created]}", "{x: 1, types: [created]}"
    )
    assert line in text
    assert faults(a=text.replace(line, other), b=MEASURES)


def test_workflows_that_call_each_other_end():
    a = workflow("{workflow_call: , pull_request: }", CALLS_B)
    b = workflow("workflow_call", "uses: ./.github/workflows/a.yml")
    assert faults(a=a, b=b) == []


def test_unsafe_edit_is_detected():
    """The real workflows, with the one line that somebody might add."""
    workflows = read_workflows(ROOT)
    for name, event in (
        ("gate", "pull_request"),
        ("gate", "pull_request_target"),
        ("gate", "workflow_run"),
        ("request", "pull_request"),
        ("request", "pull_request_review"),
        ("request", "workflow_run"),
        ("baseline", "schedule"),
    ):
        path = f".github/workflows/{name}.yml"
        text = re.sub(r"(?m)^on:.*\n", f"on:\n  {event}:\n", (ROOT / path).read_text("utf-8"), count=1)
        assert find_faults({**workflows, path: parse(text)})
