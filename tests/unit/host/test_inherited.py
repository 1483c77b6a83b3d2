"""Inherited settings: those of the tests are withheld, others are recorded by name."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from pytest_ldos.host.fingerprint import PASSED_ON, WITHHELD, find_influences, find_tracers, find_withheld, pass_on
from pytest_ldos.host.kept import KeptTree
from pytest_ldos.host.processes import ProcessGroup

SHOWS = """
import json, os, sys
print(json.dumps({"environment": dict(os.environ), "modules": sorted(sys.modules), "dev": sys.flags.dev_mode}), flush=True)
"""


def of_a_group(tmp_path: Path, environment: Mapping[str, str]) -> dict:
    group = ProcessGroup(log_directory=tmp_path, environment=environment)
    try:
        output = group.start("shows", [sys.executable, "-c", SHOWS], talk=True).process.stdout
        assert output is not None
        return json.loads(output.readline())
    finally:
        group.stop()


def of_a_kept_tree(tmp_path: Path, environment: Mapping[str, str]) -> dict:
    tree = KeptTree("tree", [sys.executable, "-c", SHOWS], log=tmp_path / "log", environment=environment)
    try:
        output = tree.child.process.stdout
        assert output is not None
        return json.loads(output.readline())
    finally:
        tree.stop()


@pytest.fixture(params=[of_a_group, of_a_kept_tree])
def started(request, tmp_path):
    """The environment of a process, for each way of starting one."""
    return lambda environment={}: request.param(tmp_path, environment)


@pytest.fixture
def package(tmp_path) -> Path:
    """A folder of an installed package by which a tool starts in every Python, like ddtrace's."""
    folder = tmp_path / "lib/site-packages/ddtrace/bootstrap"
    folder.mkdir(parents=True)
    (folder / "sitecustomize.py").write_text("import cProfile\n")
    return folder


def test_variables_of_the_tests_are_withheld(started, monkeypatch):
    for name in ("COV_CORE_SOURCE", "COVERAGE_PROCESS_CONFIG", "PYTHONDEVMODE", "PYTHONWARNINGS", "PYDEVD_USE_CYTHON"):
        monkeypatch.setenv(name, "1")
    seen = started()
    assert not [name for name in seen["environment"] if name.startswith(("COV", "PYTHONDEV", "PYTHONW", "PYDEVD"))]
    assert not seen["dev"]


def test_coverage_does_not_start_in_a_child(started, monkeypatch, tmp_path):
    pytest.importorskip("coverage")
    (tmp_path / "coveragerc").write_text("[run]\nparallel = true\n")
    monkeypatch.setenv("COVERAGE_FILE", str(tmp_path / ".coverage"))
    monkeypatch.setenv("COVERAGE_PROCESS_START", str(tmp_path / "coveragerc"))
    alone = subprocess.run([sys.executable, "-c", SHOWS], capture_output=True, text=True, check=True)
    if "coverage" not in json.loads(alone.stdout)["modules"]:
        pytest.skip("this coverage starts in no process by itself")
    assert "coverage" not in started()["modules"]


UNDER_A_DEBUGGER = """
import json, sys
from pathlib import Path
from tests.unit.host.test_inherited import of_a_group, of_a_kept_tree
seen = [of_a_group(Path(sys.argv[1]), {}), of_a_kept_tree(Path(sys.argv[1]), {})]
print(json.dumps([[name for name in each["modules"] if name.startswith("pydevd")] for each in seen]))
"""


@pytest.mark.acceptance
def test_debugger_does_not_follow_a_child(tmp_path):
    pytest.importorskip("debugpy")
    code = tmp_path / "measures.py"
    code.write_text(UNDER_A_DEBUGGER)
    command = [sys.executable, "-m", "debugpy", "--listen", "127.0.0.1:0", str(code), str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == [[], []]


def test_explicitly_set_value_is_kept(started, monkeypatch):
    monkeypatch.setenv("PYTHONDEVMODE", "0")
    assert started({"PYTHONDEVMODE": "1"})["dev"]


def test_derived_environment_does_not_restore_variables(started, monkeypatch):
    monkeypatch.setenv("COV_CORE_SOURCE", "here")
    monkeypatch.setenv("LD_BIND_NOW", "1")
    seen = started(dict(os.environ))["environment"]
    assert "COV_CORE_SOURCE" not in seen
    assert seen["LD_BIND_NOW"] == "1"


def test_tool_folders_are_removed_from_pythonpath(started, monkeypatch, package, tmp_path):
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("import wave\n")
    monkeypatch.setenv("PYTHONPATH", f"{package}:{own}")
    seen = started()
    assert seen["environment"]["PYTHONPATH"] == str(own)
    assert {"wave", "cProfile"} & set(seen["modules"]) == {"wave"}
    assert find_withheld(os.environ) == ("PYTHONPATH",)
    assert find_influences(os.environ)["PYTHONPATH"] == "sitecustomize of own"


def test_influences_are_named_without_folders():
    environment = {
        "LD_PRELOAD": "/home/somebody/lib/libjemalloc.so.2:libfaketime.so.1",
        "OMP_NUM_THREADS": "4",
        "ASAN_OPTIONS": "detect_leaks=0",
        "PYTHONMALLOC": "",
        "HOME": "/home/somebody",
    }
    assert pass_on(environment, environment) == environment
    found = find_influences(environment)
    assert found["LD_PRELOAD"] == "libjemalloc.so.2 libfaketime.so.1"
    assert found.keys() >= {"OMP_NUM_THREADS", "ASAN_OPTIONS"}
    assert not found.keys() & {"PYTHONMALLOC", "HOME"}


def test_priority_and_cpus_are_influences():
    code = "from pytest_ldos.host.fingerprint import find_influences as f; import json; print(json.dumps(f({})))"
    command = ["nice", "-n", "3", "taskset", "-c", str(min(os.sched_getaffinity(0))), sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert int(found["nice"]) >= 3
    assert os.cpu_count() == 1 or found["CPUs"].endswith(f"of {os.cpu_count()}")


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_tracer_is_named(tmp_path):
    code = "from pytest_ldos.host.fingerprint import find_tracers as f; import os; print(f([os.getpid()]))"
    command = ["strace", "-f", "-o", str(tmp_path / "calls"), sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"strace may not trace here: {done.stderr[-200:]}")
    assert done.stdout == "{'ptrace': 'strace'}\n"


def test_this_process_has_no_tracer():
    assert find_tracers([os.getpid(), 2**30]) == {}


def test_each_variable_is_in_one_list_with_a_reason():
    assert not WITHHELD.keys() & PASSED_ON.keys()
    assert all({**WITHHELD, **PASSED_ON}.values())
    assert find_influences({"MALLOC_TRACE": "file"}).keys().isdisjoint({"MALLOC_TRACE"})
