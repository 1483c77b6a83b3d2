"""Publication of a release: on a matching tag, from files built and tested by other jobs, without the tracer."""

from __future__ import annotations

import os
import shlex
import subprocess
import tomllib
from pathlib import Path

import pytest

from pytest_ldos.base.ros2 import DISTROS
from tests.builders.workflows import events_of, read_workflows

ROOT = Path(__file__).parents[3]
WORKFLOW = read_workflows(ROOT)[".github/workflows/wheels.yml"]
JOBS = WORKFLOW["jobs"]
BUILDING = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["cibuildwheel"]


def test_release_is_published_only_on_a_tag_after_all_tests():
    publish = JOBS["publish"]
    assert "github.ref_type == 'tag'" in publish["if"]
    assert "github.event_name == 'push'" in publish["if"]
    assert set(publish["needs"]) == set(JOBS) - {"publish", "tag"}
    assert publish["environment"] == "pypi"
    assert events_of(WORKFLOW)["push"]["tags"] == ["v*"]


def test_publisher_has_no_password_and_runs_no_project_code():
    publish = JOBS["publish"]
    assert publish["permissions"] == {"attestations": "write", "id-token": "write"}
    assert [step["run"] for step in publish["steps"] if "run" in step] == ["ln --target-directory=dist wheels/*/*"]
    assert not any(
        "write" in job["permissions"].values() for name, job in JOBS.items() if name not in {"publish", "tag"}
    )
    last = publish["steps"][-1]
    assert last["uses"].startswith("pypa/gh-action-pypi-publish@")
    assert last["with"] == {"attestations": True}


def test_major_tag_follows_the_published_release():
    assert JOBS["tag"]["needs"] == "publish", "and so it is skipped where that is"
    assert "if" not in JOBS["tag"]


@pytest.mark.parametrize(("tag", "fits"), [("v2.0.0", True), ("v2.0.1", False), ("v2.0.0; true", False)])
def test_the_step_that_compares_the_tag(tmp_path, tag, fits):
    """As the workflow has it, in a shell."""
    (tmp_path / ".ci").symlink_to(ROOT / ".ci")
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nversion = "2.0.0"\n[project.urls]\n'
        + "".join(f'{name} = "https://example.org"\n' for name in ("Source", "Documentation", "Changelog", "Issues")),
        "utf-8",
    )
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## [2.0.0] - 2027-01-01\n", "utf-8")
    (step,) = (each for each in JOBS["install"]["steps"] if "TAG" in each.get("env", {}))
    environment = {**os.environ, "TAG": tag}
    done = subprocess.run(
        ["sh", "-c", step["run"]],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert (done.returncode == 0) == fits, done.stderr


def test_no_wheel_gets_a_tracer_of_its_own():
    repair = shlex.split(BUILDING["repair-wheel-command"])
    assert repair[:2] == ["auditwheel", "repair"]
    assert repair[repair.index("--exclude") + 1] == "liblttng-ust*.so.*"


def test_wheels_are_built_and_tested():
    for command in (BUILDING["before-all"], BUILDING["test-command"]):
        for word in shlex.split(command):
            if word.startswith("{project}/"):
                assert (ROOT / word.removeprefix("{project}/")).is_file(), word
    assert BUILDING["before-all"] == "sh {project}/.ci/lttng-ust"


def test_wheels_cover_tested_declared_and_ros_pythons():
    """The Python of the newest ROS 2 has wheels, each of which is tried, before the embedded stack's packages have any."""
    tested = read_workflows(ROOT)[".github/workflows/test.yml"]["jobs"]["test"]["strategy"]["matrix"]["python"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    prefix = "Programming Language :: Python :: 3."
    claimed = [each.rpartition(" ")[2] for each in project["classifiers"] if each.startswith(prefix)]
    assert claimed == tested
    wheels = sorted({*tested, *(each.python for each in DISTROS.values())})
    assert BUILDING["build"] == f"cp3{{{','.join(each.removeprefix('3.') for each in wheels)}}}-manylinux_*"
