"""A session that is refused before measuring reports the reason once, and leaves nothing behind."""

from __future__ import annotations

import os
from fnmatch import fnmatch

import pytest

from pytest_ldos.host.fingerprint import take_fingerprint
from pytest_ldos.host.lock import measuring_lock
from pytest_ldos.robot.stack.choose import describe_stack
from pytest_ldos.scenario.model import StackSpec
from pytest_ldos.scenario.words import StackKind
from tests.plugin.conftest import AGAIN, SCENARIO

SWEEP = """
import pytest

@pytest.mark.baseline
@pytest.mark.ldos_sweep("memory_load.size", [64, 256])
def test_swept(ldos_scenario):
    ldos_scenario()
"""


def test_busy_machine_is_reported_once_and_leaves_no_folder(run, project):
    project.makepyfile(test_scenario=SCENARIO + AGAIN + SWEEP)
    with measuring_lock():
        result = run("--ldos-report=report.json")
    assert result.ret == 11
    result.assert_outcomes(errors=4)
    shown = result.stdout.str()
    assert shown.count(f"another measuring session holds this machine: pid {os.getpid()}") == 1
    assert shown.count("refused for the same reason as test_scenario.py::test_reach") == 3
    result.stdout.fnmatch_lines(["tests refused before anything was measured: 4; see above"])
    assert not (project.path / ".ldos" / "sweeps").exists()
    assert not (project.path / ".ldos" / "runs").exists()
    assert (project.path / "report.json").read_text().count("another measuring session holds this machine") == 1


def test_fault_of_every_measurement_is_reported_once(run, project):
    pytest.importorskip("xdist", reason="pytest-xdist is not installed")
    project.makepyfile(test_scenario=SCENARIO + AGAIN)
    result = run("-n1")
    result.assert_outcomes(errors=2)
    assert result.stdout.str().count("run them alone, with -n 0") == 1
    result.stdout.fnmatch_lines(["refused for the same reason as test_scenario.py::test_reach"])


NO_CONNECTIONS = """
import socket
import pytest

@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    def connect(*arguments):
        raise RuntimeError("Network is disabled")

    monkeypatch.setattr(socket.socket, "connect", connect, raising=False)
"""
"""As pytest-recording blocks the network."""


LONG = pytest.mark.acceptance
"""Another way to a refusal that one of the others has."""


@pytest.mark.parametrize("blocked", ["--disable-socket", pytest.param("--allow-hosts=127.0.0.1", marks=LONG)])
def test_a_plugin_that_blocks_sockets_is_named(run, project, blocked):
    pytest.importorskip("pytest_socket", reason="pytest-socket is not installed")
    result = run(blocked)
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        [
            "a plugin blocks the sockets * a measurement holds machine and DDS domain: pytest_socket: A test tried *",
            "  → mark the test with @pytest.mark.enable_socket, or give --force-enable-socket",
        ]
    )
    assert "Traceback" not in result.stdout.str()
    assert "SocketBlockedError" not in result.stdout.str()
    assert not (project.path / ".ldos").exists()


def test_refusal_of_blocked_sockets_has_a_remedy(run, project):
    pytest.importorskip("pytest_socket", reason="pytest-socket is not installed")
    assert run("--disable-socket", "--force-enable-socket", "--ldos-trials=2").ret == 0
    project.makepyfile(test_scenario=SCENARIO.replace("@pytest", "@pytest.mark.enable_socket\n@pytest", 1))
    assert run("--disable-socket", "--ldos-trials=2").ret == 0


def test_any_plugin_that_blocks_sockets_is_named(run, project):
    project.makepyfile(test_scenario=SCENARIO + NO_CONNECTIONS)
    result = run()
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        ["a plugin blocks the sockets *: Network is disabled", "  → let this test open sockets*"]
    )


def broken_records(project, **texts):
    """Writes files next to this host's baselines of the embedded stack."""
    info = describe_stack(StackSpec(kind=StackKind.EMBEDDED))
    host = take_fingerprint(rmw=info.rmw, versions=info.versions)
    folder = project.path / ".ldos/baselines" / info.name / host.host_class
    folder.mkdir(parents=True)
    for name, text in texts.items():
        (folder / name.replace("_", ".")).write_text(text)


LFS = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n"
CONFLICT = '{\n "kind": "pytest-ldos trials",\n<<<<<<< HEAD\n "schema": 5,\n=======\n "schema": 4,\n>>>>>>> topic\n}\n'


UNREADABLE = {
    "pointer_json": (LFS, "the baseline cannot be read: *is a Git LFS pointer*git lfs pull"),
    "conflict_json": (CONFLICT, "the baseline cannot be read: *has an unresolved merge conflict (line 3)*"),
    "cut_json": ('{"kind": "pytest-ldos trials", "schema": 5,', "the baseline cannot be read: *is no JSON*"),
    "old_json": ('{"kind": "pytest-ldos trials", "schema": 4}', "*has schema version 4*"),
    "noise_calibration_json": (LFS, "the calibration cannot be read: *is a Git LFS pointer*git lfs pull"),
}


def test_unreadable_records_are_refused_before_the_first_start(run, project):
    broken_records(project, **{file: text for file, (text, _) in UNREADABLE.items()})
    names = [file.partition("_")[0] for file in UNREADABLE]
    tests = (SCENARIO.replace("reach", name).replace("baseline", f"baseline(name={name!r})") for name in names)
    project.makepyfile(test_scenario="".join(tests))
    result = run("--ldos-stack=embedded", "--ldos-trials=2")
    assert result.ret == 11
    result.assert_outcomes(errors=len(UNREADABLE))
    result.stdout.fnmatch_lines(
        [*(f"ldos: test_{name} cannot be measured: *" for name in names), "test_scenario.py E*"]
    )
    shown = " ".join(result.stdout.lines)
    assert [reason for _, reason in UNREADABLE.values() if not fnmatch(shown, f"*{reason}*")] == []
    result.stdout.no_fnmatch_line("*starting the stack*")
    assert not list(project.path.glob(".ldos/runs/*"))


def test_unwritable_first_baseline_is_refused_before_the_first_start(run, project):
    (project.path / ".ldos").mkdir()
    (project.path / ".ldos/baselines").write_text("no folder")
    result = run("--ldos-stack=embedded", "--ldos-trials=2")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*baseline.json cannot be written: *"])
    result.stdout.no_fnmatch_line("*starting the stack*")


def test_baseline_to_be_replaced_may_be_damaged(run, project):
    broken_records(project, baseline_json=LFS)
    result = run("--ldos-stack=embedded", "--ldos-trials=2", "--ldos-warmup=0", "--ldos-update-baseline")
    result.stdout.fnmatch_lines(["*starting the stack*"])


GOALS = "home: {joints: {panda_joint1: 0.0}}\ngoal_sets: {shelf: [{name: top, joints: {panda_joint1: 1.0}}]}\n"


@pytest.mark.parametrize(
    ("stack", "scenario", "reason"),
    [
        ("goals = 'absent.yaml'", "", "*absent.yaml cannot be read: No such file or directory"),
        ("goals = 'goals.yaml'", "goals = 'shelf'", "*goal 'home' does not fit the Panda's joints*"),
        pytest.param("", "goals = 'shelf'", "*there is no goal set 'shelf'", marks=LONG),
    ],
)
def test_missing_goals_are_refused_before_the_first_start(run, project, stack, scenario, reason):
    (project.path / "goals.yaml").write_text(GOALS)
    with (project.path / "pyproject.toml").open("a") as file:
        file.write(f"\n[tool.ldos.stack]\nkind = 'embedded'\n{stack}\n[tool.ldos.scenarios.baseline]\n{scenario}\n")
    result = run("--ldos-trials=2")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([reason])
    result.stdout.no_fnmatch_line("*starting the stack*")


def test_unknown_goals_of_a_test_are_refused_before_the_first_start(run, project):
    project.makepyfile(test_scenario=SCENARIO.replace("(panda_stack))", "(panda_stack, goals='shelf'))"))
    result = run("--ldos-stack=embedded", "--ldos-trials=2")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*there is no goal set 'shelf'", "*known are: reach*"])
    assert "Traceback" not in result.stdout.str()
    result.stdout.no_fnmatch_line("*starting the stack*")


@pytest.mark.parametrize("how", ["--forked", pytest.param("mark", marks=LONG)])
def test_tests_in_child_processes_are_refused(run, project, how):
    pytest.importorskip("pytest_forked")
    if how == "mark":
        project.makepyfile(test_scenario="import pytest\npytestmark = pytest.mark.forked\n" + SCENARIO)
    result = run("--ldos-trials=2", *(["--forked"] if how == "--forked" else []))
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*scenario tests cannot run in a child process of pytest*", "*leave out*--forked*"])
    result.stdout.no_fnmatch_line("*starting the stack*")


FORKS = """
import os
import pytest
from _pytest.runner import runtestprotocol

@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item, nextitem):
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
        os.write(write, chr(10).join(str(each.longrepr) for each in reports if each.failed).encode())
        os._exit(0)
    os.close(write)
    os.waitpid(pid, 0)
    print(os.read(read, 65536).decode())
    report = pytest.TestReport(item.nodeid, item.location, {}, "OUTCOME", None, "call")
    item.ihook.pytest_runtest_logreport(report=report)
    return True
"""


@pytest.mark.parametrize("outcome", [pytest.param("failed", marks=LONG), "passed"])
def test_plugins_that_fork_for_each_test_are_refused(run, project, outcome):
    (project.path / "forks.py").write_text(FORKS.replace("OUTCOME", outcome))
    result = run("-p", "forks", "-s", "--ldos-trials=2")
    assert result.ret == 1
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*scenario tests cannot run in a child process of pytest*"])
    result.stdout.no_fnmatch_line("*starting the stack*")
