"""Recorded launches together with launch_pytest and launch_testing, in inner test runs with ROS's own packages."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from packaging.requirements import Requirement

from pytest_ldos.base.ros2 import DEFAULT, DISTROS
from pytest_ldos.host.availability import find_ros_package, installed_rmws
from pytest_ldos.launching import launch_available
from pytest_ldos.record.lttng import lttng_available

ROOT = Path(__file__).parents[3]


def reason_to_skip() -> str:
    for needed in (launch_available(), lttng_available()):
        if not needed.ok:
            return f"{needed.reason} → {needed.remedy}"
    distro = DISTROS.get(os.environ.get("ROS_DISTRO", ""), DEFAULT)
    if pytest.__version__ not in Requirement(distro.pytest).specifier:
        return f"{distro.title}'s plugins do not work with pytest {pytest.__version__} → pip install '{distro.pytest}'"
    return ""


pytestmark = pytest.mark.skipif(bool(reason_to_skip()), reason=reason_to_skip() or "available")

EMITTING = '''
"""Processes that emit a number of events."""
import os, subprocess, sys, time
from launch.actions import ExecuteProcess

EMIT = (
    "import sys, time\\n"
    "from pytest_ldos.robot.dds.node import emit\\n"
    "for n in range(int(sys.argv[1])): emit.sim_step(n, n)\\n"
    "print('emitted', flush=True)\\n"
    "time.sleep(60 if len(sys.argv) > 2 else 0)\\n"
)

def emit(count, *more, **settings):
    return ExecuteProcess(cmd=[sys.executable, "-c", EMIT, str(count), *more], **settings)

def emit_beside(count):
    subprocess.run([sys.executable, "-c", EMIT, str(count)], check=True)

def await_ends(launch, count):
    deadline = time.monotonic() + 30
    while len(launch.processes) < count or any(each.exit_code is None for each in launch.processes):
        assert time.monotonic() < deadline, launch.processes
        time.sleep(0.01)

def steps(trace):
    return len(trace.events["ldos:sim_step"])
'''

IMPORTS = """
import os, subprocess, sys, time
import launch_pytest, pytest
from launch import LaunchDescription
from launch.actions import ExecuteProcess, GroupAction, RegisterEventHandler, TimerAction
from launch.event_handlers import OnProcessExit
from pytest_ldos import api
from emitting import EMIT, await_ends, emit, emit_beside, steps
"""

SIMPLE = """
@launch_pytest.fixture
def description(ldos_launch):
    return ldos_launch([emit(5)])

@pytest.mark.launch(fixture=description)
def test_five(ldos_launch):
    await_ends(ldos_launch, 1)
    assert steps(ldos_launch.trace) == 5
"""


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch) -> pytest.Pytester:
    """A user's project whose pytest takes no warning."""
    monkeypatch.setenv("LDOS_LOCK", f"ldos-test-{secrets.token_hex(8)}")
    monkeypatch.setenv("ROS_LOG_DIR", str(pytester.path / "log"))
    monkeypatch.setenv("COLUMNS", "120")
    search = [str(pytester.path), str(ROOT), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(each for each in search if each))
    pytester.makepyprojecttoml(
        "[tool.pytest.ini_options]\n"
        "addopts = '-p no:cacheprovider --strict-markers'\n"
        "filterwarnings = ['error', 'ignore:Module already imported so cannot be rewritten']\n"
    )
    pytester.makepyfile(emitting=EMITTING)
    return pytester


@pytest.fixture
def run(project: pytest.Pytester):
    """Runs tests of that project; nothing may be left of them."""

    def runner(*arguments: str, **files: str) -> pytest.RunResult:
        for name, text in files.items():
            project.makepyfile(**{name: IMPORTS + text})
        result = project.runpytest_subprocess(*arguments, timeout=120)
        assert daemons() == []
        return result

    return runner


def daemons() -> list[str]:
    running = psutil.Process().children(recursive=True)
    return [process.name() for process in running if process.name().startswith("lttng-")]


def kept_traces(project: pytest.Pytester) -> list[str]:
    return sorted(path.parent.name for path in project.path.glob(".ldos/runs/*/*/trace"))


def test_every_kind_of_process_is_recorded_and_no_other(run):
    """Own prefixes, shells, groups that forward nothing, own environments, late starts."""
    run(
        test_ways="""
        @launch_pytest.fixture
        def description(ldos_launch):
            first = emit(1)
            late = RegisterEventHandler(OnProcessExit(target_action=first, on_exit=[emit(10)]))
            shell = f"{sys.executable} -c \\"$EMIT\\" 100000 && true"
            return ldos_launch(LaunchDescription([
                late, first, emit(100, prefix="env A=1"),
                GroupAction([emit(1000)], scoped=True, forwarding=False),
                TimerAction(period=0.2, actions=[emit(10000, env=dict(os.environ))]),
                ExecuteProcess(cmd=[shell], shell=True, additional_env={"EMIT": EMIT}),
            ]))

        @pytest.mark.launch(fixture=description)
        def test_ways(ldos_launch):
            emit_beside(7)
            await_ends(ldos_launch, 6)
            assert steps(ldos_launch.trace) == 111111
            assert "LTTNG_HOME" not in os.environ
        """.replace("\n        ", "\n")
    ).assert_outcomes(passed=1)


def test_running_launch_can_be_read(run):
    run(
        test_between="""
@launch_pytest.fixture
def description(ldos_launch):
    return ldos_launch([emit(3, "stay")])

@pytest.mark.launch(fixture=description)
def test_between(ldos_launch):
    deadline = time.monotonic() + 30
    while True:
        assert time.monotonic() < deadline
        try:
            if steps(ldos_launch.trace) == 3:
                break
        except pytest.fail.Exception as nothing_yet:
            assert "has recorded anything" in str(nothing_yet)
    yield
    assert [each.exit_code for each in ldos_launch.processes] == [-2]
    assert steps(ldos_launch.trace) == 3
    assert ldos_launch.model is ldos_launch.model
    assert ldos_launch.flow.model is ldos_launch.model
"""
    ).assert_outcomes(passed=1)


CLOSED = """
from launch import LaunchService
from pytest_ldos.base.errors import ConfigurationError

def launch(description):
    service = LaunchService(noninteractive=True)
    service.include_launch_description(description)
    assert service.run() == 0

def test_trace_remains_after_the_end():
    with api.record_launch() as recorded:
        launch(recorded.describe([emit(5)]))
    assert steps(recorded.trace) == 5
    assert recorded.model is recorded.model
    with pytest.raises(ConfigurationError, match="recording is over"):
        recorded.describe([emit(5)])

def test_closed_recording_refuses_another_launch():
    with api.record_launch() as recorded:
        pass
    with pytest.raises(ConfigurationError, match="recording is over"):
        recorded.describe([emit(5)])

def test_first_recording_may_end_first():
    first, second = api.record_launch(), api.record_launch()
    launch(first.describe([emit(3)]))
    first.close()
    launch(second.describe([emit(4)]))
    second.close()
    assert [steps(first.trace), steps(second.trace)] == [3, 4]
"""


def test_recordings_are_closed_and_read_in_any_order(run):
    run(test_closed=CLOSED).assert_outcomes(passed=3)


def test_launch_files_take_arguments(run, project):
    project.makefile(
        ".launch.py",
        stack="""
from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, ExecuteProcess
from launch.substitutions import LaunchConfiguration
import sys
from emitting import EMIT

def generate_launch_description():
    cmd = [sys.executable, "-c", EMIT, LaunchConfiguration("count")]
    return LaunchDescription([DeclareLaunchArgument("count"), ExecuteProcess(cmd=cmd)])
""",
    )
    result = run(
        test_file="""
@launch_pytest.fixture
def description(ldos_launch):
    return ldos_launch("stack.launch.py", {"count": "4"})

@pytest.mark.launch(fixture=description)
def test_four(ldos_launch):
    await_ends(ldos_launch, 1)
    assert steps(ldos_launch.trace) == 4

def test_not_there(ldos_launch):
    ldos_launch("stak.launch.py")

def test_no_description(ldos_launch):
    ldos_launch(42)
"""
    )
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(["there is no launch file stak.launch.py", "42 cannot be launched"])


def test_a_module_shares_one_launch(run):
    result = run(
        test_module="""
@launch_pytest.fixture(scope="module")
def description(module_ldos_launch):
    return module_ldos_launch([emit(5)])

@pytest.mark.launch(fixture=description, shutdown=True)
def test_after(module_ldos_launch):
    assert steps(module_ldos_launch.trace) == 5

@pytest.mark.launch(fixture=description)
def test_before(module_ldos_launch):
    await_ends(module_ldos_launch, 1)

@pytest.mark.launch(fixture=description)
async def test_asynchronous(module_ldos_launch):
    pass
""",
    )
    result.assert_outcomes(passed=3)


LAUNCH_TESTING = """
import unittest
import launch_testing
from launch_testing.actions import ReadyToTest

@pytest.mark.launch_test
def generate_test_description():
    recorded = api.record_launch(name="steps")
    return recorded.describe([emit(5, "stay"), ReadyToTest()]), {"recorded": recorded}

class During(unittest.TestCase):
    def test_it_emits(self, proc_output, recorded):
        proc_output.assertWaitFor("emitted", timeout=30, stream="stdout")
        api.assert_event(recorded.trace, "ldos:sim_step", step=4)

@launch_testing.post_shutdown_test()
class After(unittest.TestCase):
    def test_all_is_there(self, recorded):
        api.assert_event(recorded.trace, "ldos:sim_step", at_least=5, at_most=5)
"""

SCENARIO = """
@pytest.mark.baseline
def test_reach(panda_stack, ldos_trials, ldos_gate):
    ldos_gate.check(ldos_trials(panda_stack))
"""

CONFTEST = "from tests.fakes.rig import install, noisy, Motion\ninstall(noisy(1))\n"


@pytest.mark.parametrize("first", ["ldos", "launch_pytest", "launch_testing"])
def test_all_kinds_of_tests_live_in_one_run(run, project, first):
    project.makeconftest(CONFTEST)
    files = {"test_launch": SIMPLE, "test_classic": LAUNCH_TESTING, "test_scenario": SCENARIO}
    # launch_testing leaves its event loop open.
    quiet = ("-W", "ignore::pytest.PytestUnraisableExceptionWarning")
    result = run("-p", first, *quiet, "--ldos-trials", "4", "--ldos-warmup", "0", **files)
    result.assert_outcomes(passed=3)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["baseline: no_baseline*"])
    assert kept_traces(project) == ["steps"]


def test_a_failed_launch_test_is_an_ordinary_failure_and_keeps_its_trace(run, project):
    project.makeconftest(CONFTEST)
    failing = SIMPLE.replace("== 5", "== 6")
    result = run("--ldos-trials", "4", "--ldos-warmup", "0", test_launch=failing, test_scenario=SCENARIO)
    result.assert_outcomes(passed=1, failed=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert kept_traces(project) == ["test_five"]
    result.stdout.fnmatch_lines(["recorded: *test_five/trace"])


def test_traces_are_kept_as_configured(run, project):
    run(test_launch=SIMPLE).assert_outcomes(passed=1)
    assert not list(project.path.glob(".ldos/runs/*"))
    run("--ldos-traces", "all").assert_outcomes(passed=1)
    assert kept_traces(project) == ["test_five"]


def test_process_that_dies_immediately_is_named(run):
    result = run(
        test_dies="""
@launch_pytest.fixture
def description(ldos_launch):
    return ldos_launch([ExecuteProcess(cmd=["false"], name="arm")])

@pytest.mark.launch(fixture=description)
def test_dies(ldos_launch):
    await_ends(ldos_launch, 1)
    api.assert_published(ldos_launch.model, "/chatter")
"""
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "no process of the launch has recorded anything (arm-1 ended with exit code 1)",
            "*ros2 run tracetools status*",
        ]
    )
    result.stdout.no_fnmatch_line("*Traceback*")


def test_processes_left_by_launch_are_ended_and_reported(run):
    result = run(
        "-W",
        "default",
        test_left="""
@launch_pytest.fixture
def description(ldos_launch):
    return ldos_launch([ExecuteProcess(cmd=["sleep 1000 & echo $! > left; wait"], shell=True)])

@pytest.mark.launch(fixture=description)
def test_left(ldos_launch):
    deadline = time.monotonic() + 30
    while not os.path.exists("left") or not open("left").read():
        assert time.monotonic() < deadline
        time.sleep(0.01)

def test_gone():
    assert not os.path.exists(f"/proc/{int(open('left').read())}")
""",
    )
    result.assert_outcomes(passed=2, warnings=result.parseoutcomes()["warnings"])
    result.stdout.fnmatch_lines(["*launch left processes behind, which were ended: sleep (*)"])


def test_without_a_tracer_the_cause_is_named(run, project, monkeypatch):
    place = project.mkdir("bin")
    (place / Path(sys.executable).name).symlink_to(sys.executable)
    monkeypatch.setenv("PATH", str(place))
    result = run(test_launch=SIMPLE)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["lttng, lttng-sessiond not found", "  → sudo apt-get install lttng-tools"])
    result.stdout.no_fnmatch_line("*Traceback*")


def test_a_tracer_that_refuses_is_named(run, project):
    project.makeconftest("from pytest_ldos.record import lttng\nlttng.SUBBUFFER_SIZE = '3'\n")
    result = run(test_launch=SIMPLE)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["`lttng enable-channel *` failed: *", "  → see the session daemon's log, *"])


@pytest.mark.parametrize("place", ["file/below", "/proc/ldos"])
def test_a_place_that_cannot_be_written_is_named(run, project, place):
    project.makefile("", file="a file")
    result = run("--ldos-output", place, test_launch=SIMPLE)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([f"*{place} cannot be written: *", "  → name another place with --ldos-output"])


def test_two_launches_at_once_do_not_see_each_other(project):
    text = SIMPLE.replace("[emit(5)]", "[emit(5, 'stay')]").replace("await_ends(ldos_launch, 1)", "meet()")
    meet = """
def meet():
    deadline = time.monotonic() + 30
    open(os.environ["ME"], "w").close()
    while not os.path.exists(os.environ["OTHER"]):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    time.sleep(1)  # both emit by now; what the other emits would be here
"""
    project.makepyfile(test_launch=IMPORTS + meet + text)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider"]
    names = [str(project.path / name) for name in ("one", "other")]
    runs = [
        subprocess.Popen(command, env={**os.environ, "ME": me, "OTHER": other}, stdout=subprocess.PIPE, text=True)
        for me, other in (names, reversed(names))
    ]
    outputs = [each.communicate(timeout=120)[0] for each in runs]
    assert [each.returncode for each in runs] == [0, 0], outputs


TALKER = """
from launch_pytest.tools.process import wait_for_stderr_sync
from launch_ros.actions import Node

listener = None

@launch_pytest.fixture
def chatter(ldos_launch):
    global listener
    listener = Node(package="demo_nodes_cpp", executable="listener", cached_output=True)
    return ldos_launch([Node(package="demo_nodes_cpp", executable="talker"), listener])

@pytest.mark.launch(fixture=chatter)
def test_chatter(ldos_launch, launch_context):
    assert wait_for_stderr_sync(launch_context, listener, lambda text: text.count("I heard") >= 3, timeout=30)
    yield
    model = ldos_launch.model
    assert {each.pid for each in ldos_launch.processes} == set(model.processes["pid"])
    sent = api.assert_published(model, "/chatter", node="/talker", at_least=3)
    api.assert_received(model, "/chatter", node="/listener", at_least=3, at_most=len(sent))
    api.assert_callback_ran(model, node="/listener", topic="/chatter", at_least=3)
    api.assert_order(
        ldos_launch.trace,
        api.event("ros2:rcl_node_init", node_name="talker"),
        api.callback_began(node="/talker", timer_ms=1000),
        api.published("/chatter"),
        api.callback_began(node="/listener", topic="/chatter"),
    )
    assert len(ldos_launch.flow.transport) >= 3
    api.assert_published(model, "/chatte")
"""


@pytest.mark.parametrize("rmw", ["rmw_cyclonedds_cpp", "rmw_fastrtps_cpp"])
def test_talker_and_listener(run, monkeypatch, rmw):
    if find_ros_package("demo_nodes_cpp") is None:
        pytest.skip("demo_nodes_cpp is not installed")
    if rmw not in installed_rmws():
        pytest.skip(f"{rmw} is not installed")
    monkeypatch.setenv("RMW_IMPLEMENTATION", rmw)
    result = run(test_talker=TALKER)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "E *AssertionError: expected publications on /chatte, but the trace has no topic /chatte",
            "E *did you mean '/chatter'?",
        ]
    )
