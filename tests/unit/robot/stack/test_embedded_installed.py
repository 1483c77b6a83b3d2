"""Detection of an environment's installed parts."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from pytest_ldos.robot.stack.embedded.backend import embedded_available, embedded_info, tracepoints_available
from pytest_ldos.robot.stack.embedded.installed import PARTS, installed_here, installed_in, load_fault
from pytest_ldos.robot.stack.protocol import OURS, Installation


def test_another_process_of_the_environment_agrees():
    assert installed_in((sys.executable, "-I")) == installed_here()


def test_an_environment_without_the_parts(tmp_path):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "bare"], check=True)
    bare = Installation(str(tmp_path / "bare/bin/python"))
    found = embedded_available(bare)
    assert not found.ok
    assert found.reason == f"the environment of {bare.python} lacks {', '.join((*PARTS, 'pytest-ldos'))}"


@pytest.mark.parametrize(
    ("says", "reason"),
    [
        ("exec 2>/dev/null; echo '{}'", "it printed an invalid description"),
        ("echo broken library >&2; exit 1", "broken library"),
    ],
)
def test_interpreter_that_does_not_answer(tmp_path, says, reason):
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\n{says}\n")
    python.chmod(0o755)
    found = embedded_available(Installation(str(python)))
    assert not found.ok
    assert f"{python} cannot be asked: {reason}" in found.reason
    assert not embedded_available(Installation(str(tmp_path / "absent"))).ok


def test_one_without_tracepoints(tmp_path):
    python = tmp_path / "python"
    versions = ", ".join(f'"{name}": "1"' for name in (*PARTS, "pytest-ldos"))
    python.write_text(f"""#!/bin/sh\necho '{{"versions": {{{versions}}}, "is_traced": false}}'\n""")
    python.chmod(0o755)
    assert "built without tracepoints" in embedded_available(Installation(str(python))).reason
    assert embedded_info(Installation(str(python))).versions["ompl"] == "1"


def test_version_before_the_wings_is_started_from_its_package(tmp_path):
    nodes = tmp_path / "pytest_ldos/stack/embedded"
    nodes.mkdir(parents=True)
    for folder in (nodes, *nodes.parents[:2]):
        (folder / "__init__.py").touch()
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={tmp_path} exec {sys.executable} -S "$@"\n')
    python.chmod(0o755)
    found = installed_in((str(python),))
    assert not isinstance(found, str)
    assert found.node("simulator") == "pytest_ldos.stack.embedded.simulator"
    assert installed_here().node("simulator") == "pytest_ldos.robot.stack.embedded.simulator"


@pytest.fixture
def tracerless_provider(tmp_path) -> Path:
    """The provider without LTTng-UST's library: it needs a library that does not exist."""
    provider = find_spec("pytest_ldos.robot.dds._lttng")
    if provider is None or provider.origin is None:
        pytest.skip("built without tracepoints: LTTng-UST was missing")
    needed, absent = b"liblttng-ust.so.1\0", b"liblttng-ust.so.X\0"
    content = Path(provider.origin).read_bytes()
    assert needed in content
    copy = tmp_path / "provider.so"
    copy.write_bytes(content.replace(needed, absent))
    return copy


def test_unloadable_tracepoints_are_an_error(tracerless_provider):
    fault = load_fault(str(tracerless_provider))
    assert fault == "liblttng-ust.so.X: cannot open shared object file: No such file or directory"
    found = tracepoints_available(replace(installed_here(), load_fault=fault))
    assert not found.ok
    assert found.reason == f"the tracepoints of pytest-ldos cannot be loaded: {fault}"
    assert found.remedy.startswith("sudo apt-get install liblttng-ust-dev")


def test_tracepoints_of_this_environment_can_be_loaded():
    assert installed_here().load_fault == ""
    assert tracepoints_available(installed_here()).ok == installed_here().is_traced


def test_own_environment_is_inherited_and_others_are_isolated():
    assert OURS.interpreter == (sys.executable,)
    assert Installation("/other/python").interpreter == ("/other/python", "-I")
