"""Recipes for other CI systems: what can be read of them, and their commands run. None was run by the system it is for."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from pytest_ldos.base.files import write_atomically
from pytest_ldos.show.report import json_text
from tests.builders.git import git
from tests.builders.report_snapshots import hostile
from tests.project.workflows.conftest import Machine

FOLDER = Path(__file__).parents[3] / "examples" / "ci"


def test_gitlab_s_lab_job_begins_for_protected_branches_alone():
    found = yaml.safe_load((FOLDER / "gitlab-ci.yml").read_text("utf-8"))
    hosted = {"stages", "report"}
    assert found.keys() - hosted == {"gate"}
    lab = {"gate": found["gate"]}
    assert (lab["gate"]["tags"], lab["gate"]["resource_group"]) == (["ldos-lab"], "ldos-lab")
    assert "tags" not in found["report"]
    for rule in lab["gate"]["rules"]:
        assert "merge_request" not in rule["if"]
        assert "$CI_DEFAULT_BRANCH" in rule["if"] or "$CI_COMMIT_REF_PROTECTED" in rule["if"]
    assert all(".ci/" in line for job in ("gate", "report") for line in found[job]["script"])


def test_gitlab_report_runs_if_its_inputs_exist():
    found = yaml.safe_load((FOLDER / "gitlab-ci.yml").read_text("utf-8"))
    assert found["report"]["needs"] == [{"job": "gate", "artifacts": True}]
    assert "parallel" not in found["gate"], "several machines' artifacts would be laid into one folder"
    assert found["report"]["rules"] == [{**rule, "when": "always"} for rule in found["gate"]["rules"]]


def leave_result(machine: Machine) -> None:
    """Real results of the lab's machine; its stand-in has none to show."""
    for file in machine.checkout.glob("results/**/result.json"):
        write_atomically(file, json_text.render(hostile()))


def test_gitlab_commands_work(machine):
    found = yaml.safe_load((FOLDER / "gitlab-ci.yml").read_text("utf-8"))
    gate, report = found["gate"], found["report"]
    variables = {
        "CI_COMMIT_SHA": machine.commit,
        "CI_COMMIT_BEFORE_SHA": git(machine.checkout, "rev-parse", "HEAD~1").strip(),
        "CI_PROJECT_PATH": "arm-makers/arm",
        "CI_SERVER_URL": "https://git.example.org",
        "CI_PIPELINE_URL": "https://git.example.org/arm-makers/arm/-/pipelines/7",
    }
    done = machine.call("\n".join([*gate["before_script"], *gate["script"]]), variables, shell="bash")
    assert done.returncode == 0, done.stderr
    leave_result(machine)
    lines = [*report["before_script"], *report["script"]]
    done = machine.call("\n".join(lines), variables, shell="bash")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"({variables['CI_PIPELINE_URL']})" in (machine.checkout / "comment.md").read_text("utf-8")
    assert "apt-get install --yes --no-install-recommends make" in machine.calls


@pytest.mark.acceptance
def test_jenkins_commands_work(machine):
    text = (FOLDER / "Jenkinsfile").read_text("utf-8")
    commands = re.findall(r"\bsh '(.*)'$", text, re.MULTILINE)
    build = "https://ci.example.org/job/arm-gate/7/"
    variables = {
        "GATE_SHA": machine.commit,
        "GATE_BASE": "main~1",
        "JENKINS_URL": "https://ci.example.org/",
        "JOB_NAME": "arm-gate",
        "BUILD_URL": build,
    }
    for command in commands:
        if "render" in command:
            leave_result(machine)
        done = machine.call(command, variables, shell="sh")
        assert done.returncode == 0, done.stderr
    assert f"({build})" in (machine.checkout / "comment.md").read_text("utf-8")


@pytest.mark.parametrize("text", ["$(touch owned)", "--upload-pack=touch owned", "'; touch owned; '"])
def test_no_parameter_of_jenkins_becomes_a_command(machine, text):
    for command in re.findall(r"\bsh '(.*)'$", (FOLDER / "Jenkinsfile").read_text("utf-8"), re.MULTILINE):
        machine.call(command, {"GATE_SHA": text, "GATE_BASE": text, "JOB_NAME": text, "BUILD_URL": text}, shell="sh")
    assert not [*machine.checkout.rglob("owned")]


def test_jenkins_takes_parameters_from_the_environment():
    text = (FOLDER / "Jenkinsfile").read_text("utf-8")
    commands = re.findall(r"\bsh (\S.*)$", text, re.MULTILINE)
    assert len(commands) == 4
    assert all(command.startswith("'") for command in commands), (
        "a string in double quotes would be filled in by Groovy"
    )
    assert text.count("{") == text.count("}")
