"""Recipes for other CI systems: what can be read of them here. None was run by the system it is for."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

FOLDER = Path(__file__).parents[3] / "examples" / "ci"


def test_gitlab_s_lab_job_begins_for_protected_branches_alone():
    found = yaml.safe_load((FOLDER / "gitlab-ci.yml").read_text("utf-8"))
    hosted = {"stages", "report"}
    assert found.keys() - hosted == {"gate"}
    lab = {"gate": found["gate"]}
    assert (lab["gate"]["tags"], lab["gate"]["resource_group"]) == (["$HOST_CLASS"], "$HOST_CLASS")
    assert lab["gate"]["parallel"]["matrix"] == [{"HOST_CLASS": ["ldos-lab"]}]
    assert "tags" not in found["report"]
    for rule in lab["gate"]["rules"]:
        assert "merge_request" not in rule["if"]
        assert "$CI_DEFAULT_BRANCH" in rule["if"] or "$CI_COMMIT_REF_PROTECTED" in rule["if"]
    assert all(".ci/" in line for job in ("gate", "report") for line in found[job]["script"])


def test_jenkins_takes_parameters_from_the_environment():
    text = (FOLDER / "Jenkinsfile").read_text("utf-8")
    commands = re.findall(r"\bsh (\S.*)$", text, re.MULTILINE)
    assert len(commands) == 4
    assert all(command.startswith("'") for command in commands), (
        "a string in double quotes would be filled in by Groovy"
    )
    assert text.count("{") == text.count("}")
