"""Every command of every workflow, run here: in a copy of the repository, with fakes for what installs or measures.

What cannot be run so is named, with the reason. None of it was run by GitHub.
"""

from __future__ import annotations

import json
import shutil
import tarfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
import typer
import typer.core
import yaml

from pytest_ldos.base.files import write_atomically
from pytest_ldos.judge.baseline.key import BaselineKey
from pytest_ldos.measure.trial.artifacts import encode_trials
from pytest_ldos.scenario.options import OPTIONS
from pytest_ldos.show.report import json_text
from tests.builders.asking import by_hand
from tests.builders.ci_rooms import leave_own
from tests.builders.git import git
from tests.builders.report_snapshots import FOLDER, hostile
from tests.builders.trials import noisy_set
from tests.builders.workflow_steps import steps_of, steps_of_action
from tests.builders.workflows import read_workflows
from tests.project.workflows.conftest import LABELS, ROOT, Machine

ACTION = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
FOUND = (*steps_of(read_workflows(ROOT)), *steps_of_action("action.yml", ACTION))
STEPS = {(step.where, step.run): step for step in FOUND}

NOT_RUN = {
    "sh .ci/lint-workflows --with-go": "builds actionlint from the network; test_house_rules runs it with an installed one",
    "sh .ci/wheels": "builds for minutes, and needs the network",
    "python3 .ci/check_dist.py": "needs built distributions; tests/project/ci/test_check_dist.py makes some",
    "python3 .ci/check_release.py": "judges a release; tests/project/ci/test_check_release.py makes good and bad ones",
}
"""Beginnings of commands that are not run here, and why."""


def leave(machine: Machine, name: str, content: str) -> None:
    write_atomically(machine.checkout / name, content)


def leave_result(machine: Machine) -> None:
    leave_own(machine.checkout / "received", "result")
    leave(machine, "received/result-ldos-lab/result.json", json_text.render(hostile()))


def leave_trials_of_two(machine: Machine) -> None:
    """Trials and a result of a machine, and the project."""
    leave_result(machine)
    leave(machine, "project/pyproject.toml", "")
    leave(machine, "accepted.json", '{"words": [], "changes": []}')
    base = machine.base
    for name, commit in (("", machine.commit), ("base/", base)):
        trials = noisy_set(1, n=20, commit=commit[:12], session="s")
        leave(machine, f"received/trials-ldos-lab/1/baseline/{name}trials.json", encode_trials(trials))


def leave_verdicts(machine: Machine) -> None:
    hosts = {"ldos-lab": {"state": "success", "text": "passed"}}
    leave(
        machine, "received/verdicts.json", json.dumps({"commit": machine.commit, "base": machine.base, "hosts": hosts})
    )


def leave_accepted(machine: Machine) -> None:
    """A word on a commit, and the changes that judge.py finds of it."""
    texts = dict.fromkeys(("scenario", "stack", "reason", "at", "base", "difference"), "x")
    change = {**texts, "size": 0.5, "metric": "T1", "by": "maintainer", "commit": machine.commit[:12]}
    leave(machine, "received/accepted.json", json.dumps({"changes": [change], "applied": [change]}))
    machine.github.git.start("main", {})
    machine.github.add(f'/ldos accept {machine.commit} T1 "x"', "maintainer")


def leave_project(machine: Machine) -> None:
    (machine.checkout / "project").mkdir()
    git(machine.checkout / "project", "init", "-q")
    git(machine.checkout / "project", "remote", "add", "origin", str(machine.checkout / "nowhere"))


def leave_event(machine: Machine) -> None:
    (machine.programs / "event.json").write_text(json.dumps(by_hand(machine.commit, base=machine.base)), "utf-8")


def leave_old_status(machine: Machine) -> None:
    machine.github.git.start("main", {})
    machine.github.open(3, machine.commit, machine.base)
    machine.github.add_status(machine.commit, "pending", "waits", at=datetime(2026, 1, 1, tzinfo=UTC))


def leave_regression(machine: Machine) -> None:
    machine.github.parents = {machine.commit: (machine.base,), machine.base: ()}
    machine.github.add_status(machine.commit, "failure", f"regressed: baseline; base {machine.base}")


def leave_issue(machine: Machine) -> None:
    machine.github.parents = {machine.commit: (machine.base,), machine.base: ()}
    machine.github.add_issue(f"<!-- pytest-ldos regression -->\n<!-- range {machine.base}..{machine.commit} -->\n")


def leave_comment(machine: Machine) -> None:
    leave(machine, "received/comment.md", (FOLDER / "hostile.comment.md").read_text("utf-8"))
    machine.github.open(3, machine.commit, machine.commit)


def leave_baselines(machine: Machine) -> None:
    trials = noisy_set(1, commit=machine.commit[:12])
    leave_own(machine.checkout / "received", "baselines")
    file = BaselineKey.of(trials).file(Path("received/baselines-ldos-lab"))
    leave(machine, str(file), encode_trials(trials))


def leave_proposal(machine: Machine) -> None:
    leave(machine, "received/pull_request.md", "<!-- pytest-ldos baselines -->\ntext\n")
    leave(machine, "received/baselines/embedded/epyc/baseline.json", "{}")


def leave_trials(machine: Machine) -> None:
    trials = noisy_set(1, commit=machine.commit[:12])
    leave_own(machine.checkout / "received", "trials")
    leave(machine, "received/trials-ldos-lab/1/baseline/trials.json", encode_trials(trials))
    (machine.checkout / "history" / "rows").mkdir(parents=True)


def leave_history(machine: Machine) -> None:
    leave(machine, "received/made-from", "\n")
    leave(machine, "received/rows/embedded/epyc/baseline/merged-runs.parquet", "PAR1PAR1")


def leave_checkout(machine: Machine) -> None:
    (machine.checkout / "measured").mkdir()


def leave_pages(machine: Machine) -> None:
    leave(machine, "site/index.html", "")


def leave_site(machine: Machine) -> None:
    leave_pages(machine)
    leave(machine, "docs/_build/html/index.html", "the documentation")


def leave_measurement(machine: Machine) -> None:
    leave(machine, "results/result.json", "{}")


def names_in(archive: Path) -> list[str]:
    with tarfile.open(archive) as file:
        return file.getnames()


def leave_wheels(machine: Machine) -> None:
    leave(machine, "dist/x.tar.gz", "")
    for kind in ("x86_64", "aarch64"):
        leave(machine, f"wheels/{kind}/x-{kind}.whl", kind)


BEFORE: dict[str, Callable[[Machine], None]] = {
    "Check and render": leave_result,
    "Decide": leave_event,
    "Decide again": leave_trials_of_two,
    "Write the statuses": leave_verdicts,
    "Sweep": leave_old_status,
    "Notify": leave_regression,
    "Find the last good commit": leave_issue,
    "Comment on the pull request": leave_comment,
    "Fetch both commits": leave_project,
    "Keep what was accepted": leave_accepted,
    "Propose": leave_accepted,
    "Check, and hold against the old ones": leave_baselines,
    "Make a branch, and say how its pull request is opened": leave_proposal,
    "Check and merge": leave_trials,
    "Keep": leave_history,
    "Make the pages": leave_checkout,
    "Pack for other machines": leave_measurement,
    "Pack them": leave_pages,
    "Put the documentation around them": leave_site,
    "Put them together": leave_wheels,
}
"""Files of earlier steps and jobs."""

AFTER: dict[str, Callable[[Machine], object]] = {
    "Check the labels": lambda machine: (machine.programs / "output").read_text("utf-8") == f"labels={LABELS}\n",
    "Check and render": lambda machine: (machine.checkout / "made/comment.md").is_file(),
    "Decide": lambda machine: f"commit={machine.commit}" in (machine.programs / "output").read_text("utf-8"),
    "Decide again": lambda machine: (machine.checkout / "made/verdicts.json").is_file(),
    "Write the statuses": lambda machine: machine.github.shown(machine.commit)["ldos"][0] == "success",
    "Sweep": lambda machine: machine.github.shown(machine.commit)["ldos"][0] == "error",
    "Notify": lambda machine: len(machine.github.issues) == 1,
    "Find the last good commit": lambda machine: (
        (machine.programs / "output").read_text("utf-8") == f"base={machine.base}\n"
    ),
    "Look": lambda machine: (machine.programs / "output").read_text("utf-8") == "measured=false\n",
    "Say so": lambda machine: machine.github.shown(machine.commit)["ldos"][0] == "pending",
    "Comment on the pull request": lambda machine: len(machine.github.comments) == 1,
    "Fetch both commits": lambda _: True,  # where nothing can be fetched, nothing is accepted
    "Read what was accepted": lambda machine: (machine.checkout / "accepted.json").is_file(),
    "Keep what was accepted": lambda machine: len(machine.github.comments) == 2,
    "Propose": lambda machine: f"accepted/{machine.commit}" in machine.github.git.branches,
    "Check, and hold against the old ones": lambda machine: (machine.checkout / "proposal/pull_request.md").is_file(),
    "Make a branch, and say how its pull request is opened": lambda machine: (
        f"baselines/{machine.commit}" in machine.github.git.branches
        and f"compare/main...baselines/{machine.commit}?" in (machine.programs / "summary").read_text("utf-8")
    ),
    "Check and merge": lambda machine: [*(machine.checkout / "history/rows").rglob("merged-runs.parquet")],
    "Keep": lambda machine: "ldos-history" in machine.github.git.branches,
    "Read the history": lambda machine: (machine.checkout / "history" / "made-from").is_file(),
    "Start": lambda machine: (
        machine.github.started == [("explore.yml", {"ref": "main", "inputs": {"sha": machine.commit}})]
    ),
    "Pack for other machines": lambda machine: (machine.checkout / "results/packed/result/result.json").is_file(),
    "Move it": lambda machine: machine.github.git.branches["tags/v1"] == machine.commit,
    "Put the documentation around them": lambda machine: (
        (machine.checkout / "site/index.html").read_text("utf-8") == "the documentation"
        and (machine.checkout / "site/history/index.html").is_file()
        and "make docs" in machine.calls
    ),
    "Pack them": lambda machine: "./index.html" in names_in(machine.checkout / "artifact.tar"),
    "Put them together": lambda machine: len([*(machine.checkout / "dist").iterdir()]) == 3,
    "Measure": lambda machine: (machine.checkout / "results").is_dir(),
}
"""Files that must exist after a step; for other steps, calls of programs."""


@pytest.mark.parametrize(
    "step",
    [step for step in STEPS.values() if not step.run.startswith((*NOT_RUN,))],
    ids=lambda step: f"{step.where[0]}-{step.where[1]}",
)
def test_each_step_works(machine, step):
    BEFORE.get(step.where[1], lambda _: None)(machine)
    done = machine.run(step)
    assert done.returncode == 0, done.stdout + done.stderr
    effect = AFTER.get(step.where[1])
    assert effect(machine) if effect is not None else machine.calls, "it did nothing that can be seen"
    assert_options_exist(machine)


def assert_options_exist(machine: Machine) -> None:
    """In what pytest and our own command were called with, by the real ones."""
    known = {option.flag for option in OPTIONS.values()}
    for call in machine.calls:
        named = {word.partition("=")[0] for word in call.split() if word.startswith("--ldos-")}
        assert named <= known, call
        if call.startswith("ldos "):
            parse_command(call.split()[1:])


def parse_command(arguments: list[str]) -> None:
    """Raises what the command raises where it knows an option or an argument not."""
    from tests.builders.command_line import app

    name, *others = arguments
    group = typer.main.get_command(app)
    assert isinstance(group, typer.core.TyperGroup)
    group.commands[name].make_context(name, others)


def test_unknown_option_is_detected():
    with pytest.raises(Exception, match="No such option: --no-such-option"):
        parse_command(["history", "--no-such-option"])


def test_every_listed_step_exists():
    names = {step.where[1] for step in STEPS.values()}
    assert {*BEFORE} | {*AFTER} <= names
    assert all(any(step.run.startswith(each) for step in STEPS.values()) for each in NOT_RUN)


@pytest.mark.parametrize("what", ["sweep", "breaking", "history"])
def test_nightly_exploration_calls_known_commands(machine, what):
    """Its options are those of the real command."""
    step = next(step for step in STEPS.values() if step.where == ("explore.yml", "Measure"))
    done = machine.run(step, **{"matrix.what": what})
    assert done.returncode == 0, done.stderr
    (call,) = machine.calls
    assert " results/" in call, "what came of it is kept"
    assert_options_exist(machine)


def test_wheels_do_not_overwrite_each_other(machine):
    step = next(step for step in STEPS.values() if step.where == ("wheels.yml", "Put them together"))
    leave_wheels(machine)
    leave(machine, "dist/x-aarch64.whl", "another")
    assert machine.run(step).returncode != 0
    assert (machine.checkout / "dist/x-aarch64.whl").read_text("utf-8") == "another"


def test_targets_that_a_matrix_names_exist(machine):
    """Steps of the nightly workflow."""
    workflow = read_workflows(ROOT)[".github/workflows/nightly.yml"]
    step = next(step for step in STEPS.values() if step.where == ("nightly.yml", "Run"))
    for target in workflow["jobs"]["long"]["strategy"]["matrix"]["target"]:
        assert machine.run(step, **{"matrix.target": target}).returncode == 0
    assert machine.run(step, **{"matrix.target": "nothing"}).returncode != 0


HOSTILE = "$(touch owned)`touch owned`; touch owned\ntouch owned\n'; touch owned; '\"; touch owned; \""
"""Commands, in every way in which a shell could come to them."""

FOREIGN = (  # from events, inputs and variables
    *("inputs.commit", "inputs.base", "inputs.scenarios", "inputs.trials", "inputs.host-class", "inputs.sha"),
    *("inputs.stack", "inputs.minutes", "inputs.max-trials", "inputs.ref", "inputs.pull-request", "inputs.result"),
    *("inputs.run", "github.event.workflow_run.head_branch", "vars.LDOS_MAINTAINERS"),
    "github.event.repository.default_branch",
    *("matrix.host-class", "matrix.what", "matrix.target"),
)
READ_BY_A_SHELL = [
    (step, expression)
    for step in STEPS.values()
    if step.run.startswith("sh ") or '"$' in step.run
    for expression in FOREIGN
    if any(f"${{{{ {expression} }}}}" in text for text in step.environment.values())
]


@pytest.mark.acceptance
def test_no_value_becomes_a_command(machine):
    """Whatever an event or a variable says, in every step whose shell reads it."""
    assert len(READ_BY_A_SHELL) >= 10
    for step, expression in READ_BY_A_SHELL:
        machine.run(step, **{expression: HOSTILE})
        assert not [*machine.checkout.rglob("owned")], (step.where, expression)


def test_combined_values_become_no_command(machine):
    for step in {step.where: step for step, _ in READ_BY_A_SHELL}.values():
        machine.run(step, **dict.fromkeys(FOREIGN, HOSTILE))
        assert not [*machine.checkout.rglob("owned")], step.where


def test_results_of_machines_pass_all_steps(machine):
    """From a measurement to the comment, through every step between them."""
    chosen = {step.where: step for step in STEPS.values()}
    for where in (("action.yml", "Measure"), ("action.yml", "Pack for other machines")):
        done = machine.run(chosen[where], **{"inputs.record": "false"})
        assert done.returncode == 0, done.stderr
    packed = machine.checkout / "results/packed/result"
    (packed / "result.json").write_text(json_text.render(hostile()), "utf-8")
    leave_own(machine.checkout / "received", "result")
    # As one job sends it and another takes it.
    shutil.copytree(packed, machine.checkout / "received/result-ldos-lab")
    assert machine.run(chosen["report.yml", "Check and render"]).returncode == 0
    shutil.copy(machine.checkout / "made/comment.md", machine.checkout / "received/comment.md")
    machine.github.open(3, machine.commit, machine.commit)
    assert machine.run(chosen["report.yml", "Comment on the pull request"]).returncode == 0
    (comment,) = machine.github.comments
    assert comment["body"] == (FOLDER / "hostile.comment.md").read_text("utf-8")
    assert json.loads((packed / "result.json").read_text("utf-8"))["kind"]
