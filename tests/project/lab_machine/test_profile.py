"""CloudLab's ``profile.py``: one node, and a command into which nothing of the form can creep."""

from __future__ import annotations

import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fakes.geni_lib import Portal

PROFILE = Path(__file__).parents[3] / "profile.py"
IMAGE = "urn:publicid:IDN+emulab.net+image+emulab-ops//UBUNTU24-64-STD"


@pytest.fixture
def instantiate(monkeypatch):
    def run(**chosen):
        portal = Portal(**chosen)
        for name, module in portal.modules().items():
            monkeypatch.setitem(sys.modules, name, module)
        runpy.run_path(str(PROFILE), run_name="__main__")
        return portal

    return run


def words(portal):
    [node] = portal.printed.nodes
    [service] = node.services
    assert service.shell == "sh"
    return shlex.split(service.command)


def test_a_node_of_ubuntu_24_04_runs_the_bootstrap(instantiate):
    portal = instantiate()
    [node] = portal.printed.nodes
    assert (node.hardware_type, node.disk_image) == ("c6525-25g", IMAGE)
    assert words(portal) == ["sudo", "sh", "/local/repository/lab/cloudlab", "", ""]
    types = {name: it["type"] for name, it in portal.parameters.items()}
    assert types == {"hardware_type": "nodetype", "image": "image", "repository": "string", "ref": "string"}
    assert (PROFILE.parent / "lab/cloudlab").exists()


def test_chosen_values_are_requested(instantiate):
    repository, ref = "https://github.com/some-body/pytest-ldos.fork", "topic/faster_1.0"
    portal = instantiate(hardware_type="d6515", repository=repository, ref=ref)
    assert portal.printed.nodes[0].hardware_type == "d6515"
    assert words(portal)[3:] == [repository, ref]
    assert portal.warnings == []


def test_other_version_of_cloudlabs_clone_gives_a_warning(instantiate):
    [warning] = instantiate(ref="v1").warnings
    assert warning.params == ["ref"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("repository", "https://x.org/$(touch x)"),
        ("repository", 'https://x.org/a" ; touch x "'),
        ("repository", "https://x.org/a\n"),
        ("repository", "https://user:secret@x.org/a"),
        ("repository", "https://x.org/../a"),
        ("repository", "http://x.org/a"),
        ("repository", "git@x.org:a/b"),
        ("repository", "--upload-pack=x"),
        ("ref", "`id`"),
        ("ref", "--force"),
        ("ref", "a b"),
        ("ref", "a\n"),
        ("ref", "../a"),
        ("ref", "main;id"),
    ],
)
def test_values_with_special_characters_are_refused(instantiate, name, value):
    with pytest.raises(SystemExit):
        instantiate(**{name: value})


def test_standard_librarys_module_is_not_shadowed():
    """This file lies where programs that run in the repository look first."""
    code = "import cProfile, profile; cProfile.run('1 + 1'); print(profile.Profile.__module__, profile.__file__)"
    done = subprocess.run([sys.executable, "-c", code], cwd=PROFILE.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].startswith("profile ")
    assert str(PROFILE) not in done.stdout
