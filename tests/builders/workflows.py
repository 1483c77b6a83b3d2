"""Events that can start a job of a GitHub workflow, and machines on which it can then run.

Conditions (``if:``) and labels are no boundary, so conditions are not looked at: a job that can be reached but for its
condition is reached. An unknown value (an expression, a workflow of another repository) may be any machine.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

HOSTED: Final = frozenset({"ubuntu-24.04", "ubuntu-22.04", "ubuntu-latest", "ubuntu-24.04-arm"})
"""Labels of machines of GitHub's that this project uses. Any other is the lab's, or could be."""

TRUSTED: Final = frozenset({"push", "merge_group", "workflow_dispatch"})
"""Events that somebody causes who was let in."""

ASKED: Final = {
    "pull_request_target": frozenset({"opened", "synchronize", "reopened", "edited", "labeled"}),
    "issue_comment": frozenset({"created"}),
}
"""Events that anybody can cause, of a kind each: a job that decides about them has to come first."""

PROTECTED: Final = frozenset({"main"})
UNKNOWN: Final = "?"

_EXPRESSION: Final = re.compile(r"\$\{\{\s*(.*?)\s*\}\}", re.DOTALL)
_DEFAULTS: Final = {
    "format('refs/heads/{0}', github.event.repository.default_branch)": (
        "refs/heads/${{ github.event.repository.default_branch }}"
    ),
    "format('refs/heads/{0}', github.event.repository.default_branch || github.ref_name)": (
        "refs/heads/${{ github.event.repository.default_branch || github.ref_name }}"
    ),
    "github.repository": "${{ github.repository }}",
}
"""In workflows that events start as well, which give no inputs."""

_DECIDED: Final = "${{ needs.decide.outputs.commit }}"
_DECIDES: Final = "python3 -I .ci/results decide "
_CALLED: Final = re.compile(r"OWNER/pytest-ldos/\.github/workflows/request\.yml@[0-9a-f]{40}")
_HOSTED_CALL: Final = re.compile(r"OWNER/pytest-ldos/\.github/workflows/(?:verdict|sweep|regression)\.yml@[0-9a-f]{40}")
"""Workflows to copy, without jobs of the lab."""

_LOCAL: Final = re.compile(r"[.$]/(\.github/workflows/[^@]+)")


@dataclass(frozen=True)
class Start:
    """One way in which a workflow begins.

    Attributes:
        event: that starts the first workflow of the chain.
        settings: of that event in the first workflow.
        chain: workflows that call each other, the first one first.
        inputs: what the caller gives.
        is_decided: true where a job has decided about the event before, and says which commit is measured.
    """

    event: str
    settings: Any
    chain: tuple[str, ...]
    is_decided: bool = False
    inputs: Mapping[str, Any] = field(default_factory=dict)


def read_workflows(root: Path) -> dict[str, dict[str, Any]]:
    """All workflows below a root, by their path in it."""
    files = sorted(file for kind in ("yml", "yaml") for file in (root / ".github" / "workflows").glob(f"*.{kind}"))
    return {file.relative_to(root).as_posix(): parse(file.read_text("utf-8")) for file in files}


def parse(text: str) -> dict[str, Any]:
    found = yaml.load(text, Loader=yaml.CSafeLoader)
    assert isinstance(found, dict), "a workflow is a mapping"
    return found


def events_of(workflow: Mapping[Any, Any]) -> dict[str, Any]:
    """The settings of each event. YAML 1.1 reads the key ``on`` as true."""
    found = workflow.get("on", workflow.get(True))
    if isinstance(found, str):
        return {found: None}
    if isinstance(found, list):
        return dict.fromkeys(found)
    assert isinstance(found, dict), "a workflow says on what it runs"
    return found


def find_faults(workflows: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Every job that could run on the lab's machine, or could start another workflow, and begins in a way that it must
    not; empty where all is well."""
    return [*_lab_faults(workflows), *_dispatch_faults(workflows)]


def _lab_faults(workflows: Mapping[str, Mapping[str, Any]]) -> list[str]:
    return [
        f"{' → '.join(start.chain)}, job {name}: may run on {', '.join(labels)} and {reason}"
        for path, workflow in workflows.items()
        for name, job in workflow.get("jobs", {}).items()
        for start in starts_of(workflows, path)
        if (labels := [*_foreign_labels(job, start)]) and (reason := _why_not(start, job))
    ]


def _dispatch_faults(workflows: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Jobs whose token starts workflows as if by hand, and that somebody can start who could not do so himself.

    A clock is as good as the default branch: it runs what is there.
    """
    return [
        f"{' → '.join(start.chain)}, job {name}: may start workflows by hand and can be started by {start.event}"
        for path, name in sorted(dispatchers(workflows))
        for start in starts_of(workflows, path)
        if start.event not in {*TRUSTED, "schedule"}
    ]


def dispatchers(workflows: Mapping[str, Mapping[str, Any]]) -> set[tuple[str, str]]:
    """Jobs whose token can start other workflows, by the path of their workflow and their name."""
    return {
        (path, name)
        for path, workflow in workflows.items()
        for name, job in workflow.get("jobs", {}).items()
        if _can_dispatch(job.get("permissions", workflow.get("permissions")))
    }


def _can_dispatch(permissions: Any) -> bool:
    """By default, the repository's settings decide: GitHub's own default has no right to write."""
    return permissions == "write-all" or (isinstance(permissions, dict) and permissions.get("actions") == "write")


def lab_jobs(workflows: Mapping[str, Mapping[str, Any]]) -> set[tuple[str, str]]:
    """Jobs that may run on the lab's machine, by the first workflow of their chain and by their name."""
    return {
        (start.chain[0], name)
        for path, workflow in workflows.items()
        for name, job in workflow.get("jobs", {}).items()
        for start in starts_of(workflows, path)
        if next(_foreign_labels(job, start), None)
    }


def starts_of(workflows: Mapping[str, Mapping[str, Any]], path: str, after: tuple[str, ...] = ()) -> Iterator[Start]:
    """Every way in which a workflow begins; what can be called can be called by anybody who may write workflows here.

    Args:
        after: workflows that it calls, the nearest first; none of them is followed again.
    """
    chain = (path, *after)
    for event, settings in events_of(workflows[path]).items():
        if event != "workflow_call":
            yield Start(event, settings, chain)
            continue
        defaults = {name: (each or {}).get("default", UNKNOWN) for name, each in _inputs(settings).items()}
        for caller, job in _callers(workflows, path):
            if caller in chain:
                continue
            for start in starts_of(workflows, caller, chain):
                given = {name: resolve(value, start.inputs) for name, value in (job.get("with") or {}).items()}
                is_decided = start.is_decided or _is_decided(workflows[caller], job)
                yield Start(start.event, start.settings, start.chain, is_decided, {**defaults, **given})


def _is_decided(workflow: Mapping[str, Any], job: Mapping[str, Any]) -> bool:
    """True for a call that measures the commit which the job `decide` names, and none where it names none."""
    steps = workflow["jobs"].get("decide", {}).get("steps", ())
    needed = job.get("needs", ())
    return (
        any(str(step.get("run", "")).startswith(_DECIDES) for step in steps)
        and "decide" in ([needed] if isinstance(needed, str) else needed)
        and job.get("if") == _DECIDED
        and (job.get("with") or {}).get("commit") == _DECIDED
    )


def _inputs(settings: Any) -> Mapping[str, Any]:
    return (settings or {}).get("inputs") or {}


def _callers(workflows: Mapping[str, Mapping[str, Any]], path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for caller, workflow in workflows.items():
        for job in workflow.get("jobs", {}).values():
            called = _LOCAL.fullmatch(str(job.get("uses", "")).strip())
            if called and called.group(1) == path:
                yield caller, job


def resolve(value: Any, inputs: Mapping[str, Any]) -> Any:
    """A value without expressions; `UNKNOWN` where one is more than the name of an input."""
    if not isinstance(value, str):
        return value
    return _EXPRESSION.sub(lambda match: str(_lookup(match.group(1), inputs)), value)


def _lookup(expression: str, inputs: Mapping[str, Any]) -> Any:
    """Value of an input, or of one with a default of its own where nothing was given."""
    name, _, default = expression.removeprefix("inputs.").partition(" || ")
    if default in _DEFAULTS:
        return inputs.get(name) or _DEFAULTS[default]
    return inputs.get(name, UNKNOWN) if not default and name != expression else UNKNOWN


def _foreign_labels(job: Mapping[str, Any], start: Start) -> Iterator[str]:
    """Labels of a job that are not of GitHub's machines."""
    if "uses" in job:
        used = str(job["uses"]).strip()
        if not _LOCAL.fullmatch(used) and not _HOSTED_CALL.fullmatch(used):
            yield f"whatever {job['uses']} runs on"
        return
    yield from sorted({label for label in _labels(job, start) if label not in HOSTED})


def _labels(job: Mapping[str, Any], start: Start) -> Iterator[str]:
    wanted = job.get("runs-on", UNKNOWN)
    if isinstance(wanted, dict):
        if "group" in wanted:
            yield f"group {wanted['group']}"
        wanted = wanted.get("labels", [])
    for each in wanted if isinstance(wanted, list) else [wanted]:
        for cell in _cells(job):
            yield str(resolve(_in_cell(str(each), cell), start.inputs))


def _cells(job: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Values of a job's matrix for its expressions; unknown if the matrix is an expression."""
    matrix = (job.get("strategy") or {}).get("matrix", {})
    if not isinstance(matrix, dict):
        return [{}]
    axes = {name: values for name, values in matrix.items() if name not in {"include", "exclude"}}
    lists = [values if isinstance(values, list) else [UNKNOWN] for values in axes.values()]
    cells = [dict(zip(axes, values, strict=True)) for values in itertools.product(*lists)]
    included = matrix.get("include", [])
    more = included if isinstance(included, list) else [dict.fromkeys([*axes], UNKNOWN)]
    return [*cells, *more]


def _in_cell(text: str, cell: Mapping[str, Any]) -> str:
    def value(match: re.Match[str]) -> str:
        name = match.group(1).removeprefix("matrix.")
        return str(cell[name]) if name != match.group(1) and name in cell else match.group()

    return _EXPRESSION.sub(value, text)


def _why_not(start: Start, job: Mapping[str, Any]) -> str:
    """The reason why the lab's machine must refuse a job with this start; empty if it may run."""
    if start.event in ASKED and (start.is_decided or _CALLED.fullmatch(str(job.get("uses", "")))):
        kinds = {*((start.settings or {}).get("types") or ["any"])}
        return "" if kinds <= ASKED[start.event] else f"can be started by {start.event}, of any kind"
    if start.event not in TRUSTED:
        return f"can be started by {start.event}"
    settings = start.settings or {}
    if start.event == "push" and not _is_protected(settings.get("branches")):
        return "can be started by a push to a branch that is not protected"
    if start.event == "push" and "tags" in settings:
        return "can be started by a tag"
    if start.event == "merge_group" and not _is_protected(settings.get("branches")):
        return "can be started by the queue of a branch that is not protected"
    if start.event == "workflow_dispatch" and not (_inputs(settings).get("sha") or {}).get("required"):
        return "can be started by hand without naming a commit"
    return ""


def _is_protected(branches: Any) -> bool:
    """True if only protected branches are named, each in full."""
    named = [branches] if isinstance(branches, str) else branches or []
    return bool(named) and {*named} <= PROTECTED
