"""The harness's reaches, in settings that may make them fail: ``reaches.py MIDDLEWARE SETTING… --output FILE``.

Each setting starts a stack of its own (`stack.launch.py`), and asks it ten times for the harness's pose: one start for
all, no motion home in between, times from MoveGroup's feedback (`client.py`). Those with a second controller manager
need mock hardware.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any

import psutil
from ament_index_python.packages import get_package_prefix, get_package_share_path

from pytest_ldos import api
from pytest_ldos.base.stats.counts import mean_interval
from pytest_ldos.host.processes import Child, ProcessGroup, comes_true
from pytest_ldos.record.choose import choose_recorder
from pytest_ldos.robot.dds.domain import claim_domain, loopback_config
from pytest_ldos.robot.stack.ros2.installed import SharedMemory, isolated_environment, ros2_info
from pytest_ldos.scenario.model import Ros2Spec, StackSpec
from pytest_ldos.scenario.words import Simulation, StackKind

HERE = Path(__file__).parent
REACHES = 10
ONE_CPU = ("taskset", "--cpu-list", "0")
ARM, STATES = "panda_arm_controller", "joint_state_broadcaster"
READY_S = 60.0
PAUSE_S = 2.5  # a motion that MoveIt gave up may go on

REASONS = {
    r"Goal was rejected by server": "rejected by the controller",
    r"Action client not connected": "no action server of the controller",
    r"Controller handle \S+ reports status UNKNOWN": "status UNKNOWN",
    r"Controller handle \S+ reports status ABORTED": "aborted by the controller",
    r"start point deviates from current robot state": "the start deviates from the arm's state",
    r"couldn't receive full current joint state": "no joint states within 1 s",
    r"Cannot push a new trajectory": "the last motion goes on",
    r"Controller is taking too long": "too slow",
}
"""Reasons by the line that move_group logs when it gives up."""


class Stack:
    """Processes of a setting, in a domain of their own."""

    def __init__(self, folder: Path, environment: Mapping[str, str], prefix: Sequence[str], sim: Simulation) -> None:
        self.folder, self.environment, self.prefix, self.sim = folder, dict(environment), prefix, sim
        self._groups: list[ProcessGroup] = []
        self.running: dict[str, Child] = {}
        self.launches: list[Child] = []

    def run(self, name: str, *command: str, talk: bool = False) -> Child:
        group = ProcessGroup(log_directory=self.folder, environment=self.environment, prefix=self.prefix)
        self._groups.append(group)
        self.running[name] = group.start(name, command, talk=talk)
        return self.running[name]

    def end(self, name: str) -> None:
        if child := self.running.pop(name, None):
            child.process.terminate()
            child.process.wait(READY_S)

    def launch(self, *loaded: str, **arguments: str) -> None:
        """Launches a stack, and waits until the given controllers were loaded, well or not."""
        given = [f"{name}:={value}" for name, value in {"sim": self.sim, **arguments}.items()]
        name = f"launch_{len(self.launches)}"
        self.launches.append(self.run(name, "ros2", "launch", str(HERE / "stack.launch.py"), *given))
        begun = () if arguments.get("move_group") == "false" else ("You can start planning now!",)
        for line in (*begun, *(rf"\[load_{each}-\d+\]: process has" for each in loaded)):
            self.await_line(name, line)

    def await_line(self, name: str, line: str) -> None:
        log = self.folder / f"{name}.log"
        if not comes_true(lambda: re.search(line, log.read_text("utf-8", "replace")), limit_s=READY_S, poll_s=0.1):
            raise RuntimeError(f"no {line!r} in {READY_S:.0f} s\n{log.read_text('utf-8', 'replace')[-4000:]}")

    def abandon(self) -> None:
        """Ends the last launch as the harness's ``kill $STACK_PID`` does, which leaves its processes."""
        launch = self.launches[-1].process
        left = psutil.Process(launch.pid).children(recursive=True)
        launch.send_signal(signal.SIGTERM)
        launch.wait(READY_S)
        print(f"  left: {[each.name() for each in left if each.is_running()]}", file=sys.stderr)

    def control(self, *arguments: str) -> None:
        command, environment = ["ros2", "control", *arguments], {**os.environ, **self.environment}
        subprocess.run(command, env=environment, check=True, capture_output=True, timeout=READY_S)

    def reasons(self) -> list[str]:
        """Returns the reasons of the motions that were given up so far."""
        logs = "".join(log.read_text("utf-8", "replace") for log in sorted(self.folder.glob("launch_*.log")))
        found = re.finditer("|".join(f"({pattern})" for pattern in REASONS), logs)
        return [list(REASONS.values())[each.lastindex - 1] for each in found if each.lastindex]

    def stop(self) -> None:
        for group in reversed(self._groups):
            group.stop()


def alone(stack: Stack) -> None:
    stack.launch(STATES, ARM)


def arm_later(stack: Stack) -> None:
    stack.launch(STATES, arm_after_s="600")


def inactive(stack: Stack, controller: str) -> None:
    alone(stack)
    stack.control("set_controller_state", controller, "inactive")


def left_behind(stack: Stack) -> None:
    alone(stack)
    stack.abandon()
    alone(stack)


def two_stacks(stack: Stack) -> None:
    alone(stack)
    alone(stack)


def two_managers(stack: Stack) -> None:
    stack.launch(STATES, ARM, move_group="false")
    stack.launch(STATES, ARM)


def two_arms(stack: Stack) -> None:
    """A second controller of the arm's name, which is inactive, in a controller manager of another name."""
    alone(stack)
    file = get_package_share_path("ldos_panda_config") / "config" / "ros2_controllers.yaml"
    kind = f"{ARM}.type:=joint_trajectory_controller/JointTrajectoryController"
    given = ("--params-file", str(file), "-r", "controller_manager:__node:=second_manager", "-p", kind)
    stack.run("second", "ros2", "run", "controller_manager", "ros2_control_node", "--ros-args", *given)
    stack.control("load_controller", "-c", "/second_manager", "--set-state", "inactive", ARM)


def flooded_first(stack: Stack) -> None:
    start_flood(stack)
    alone(stack)


def flooded(stack: Stack) -> None:
    alone(stack)
    start_flood(stack)


def start_flood(stack: Stack) -> None:
    for number in range(1, 5):
        stack.run(f"flood_{number}", sys.executable, str(HERE / "flood.py"), f"/flood_topic_{number}", "publish")


def starved(stack: Stack, rate_hz: float) -> None:
    """Simulated time from a clock of a low rate."""
    stack.run("clock", sys.executable, str(HERE / "client.py"), "clock", str(rate_hz))
    stack.launch(STATES, ARM, use_sim_time="true")


def stopped_clock(stack: Stack) -> None:
    starved(stack, 100.0)
    stack.end("clock")


def discovery(stack: Stack, reach: int) -> None:
    talker = str(Path(get_package_prefix("demo_nodes_cpp")) / "lib/demo_nodes_cpp/talker")
    names = [f"talker_{number}" for number in range(10)]
    for name in names:
        stack.end(name)
    for name in names:
        stack.run(name, talker, "--ros-args", "-r", f"__node:={name}_{reach}")


def busy(stack: Stack) -> None:
    alone(stack)
    stack.run("busy", "stress-ng", "--cpu", "4", "--cpu-load", "80", "--cpu-method", "matrixprod")


@dataclass(frozen=True)
class Setting:
    what: str
    start: Callable[[Stack], Any]
    before: Callable[[Stack, int], None] = lambda stack, reach: None
    environment: Callable[[str, Path], Mapping[str, str]] = lambda rmw, folder: {}
    prefix: tuple[str, ...] = ()
    settle_s: float = 5.0


def small_buffers(rmw: str, folder: Path) -> Mapping[str, str]:
    """Receive buffers of 8 KiB for UDP, and no shared memory."""
    if rmw == "rmw_cyclonedds_cpp":
        internal = '<Internal><SocketReceiveBufferSize max="8 kB"/></Internal>'
        return {"CYCLONEDDS_URI": loopback_config().replace("</Domain>", f"{internal}</Domain>")}
    profile = folder / "small.xml"
    profile.write_text(
        '<dds xmlns="http://www.eprosima.com"><profiles><transport_descriptors><transport_descriptor>'
        "<transport_id>small</transport_id><type>UDPv4</type><receiveBufferSize>8192</receiveBufferSize>"
        "<maxMessageSize>8192</maxMessageSize></transport_descriptor></transport_descriptors>"
        '<participant profile_name="small" is_default_profile="true"><rtps><useBuiltinTransports>false'
        "</useBuiltinTransports><userTransports><transport_id>small</transport_id></userTransports></rtps>"
        "</participant></profiles></dds>",
        "utf-8",
    )
    return {"FASTRTPS_DEFAULT_PROFILES_FILE": str(profile)}


SETTINGS = {
    "alone": Setting("the stack alone", alone),
    "at_once": Setting("goals from the moment at which the controllers are active", alone, settle_s=0.0),
    "one_cpu": Setting("the stack on one CPU", alone, prefix=ONE_CPU),
    "busy": Setting("four workers at 80 %", busy),
    "flood": Setting("four Python publishers", flooded),
    "flood_first": Setting("the flood before the stack, goals at once", flooded_first, settle_s=0.0),
    "flood_one_cpu": Setting("the flood and the stack on one CPU", flooded, prefix=ONE_CPU),
    "flood_small_buffers": Setting("the flood, receive buffers of 8 KiB", flooded, environment=small_buffers),
    "discovery": Setting("ten more participants start as each goal is sent", alone, before=discovery),
    "clock_10_hz": Setting("simulated time, a clock of 10 Hz", partial(starved, rate_hz=10.0)),
    "clock_1_hz": Setting("simulated time, a clock of 1 Hz", partial(starved, rate_hz=1.0)),
    "clock_stopped": Setting("simulated time, a clock that stops before the first goal", stopped_clock),
    "no_joint_states": Setting("the joint state broadcaster is inactive", partial(inactive, controller=STATES)),
    "controller_missing": Setting("the arm's controller is not loaded yet", arm_later),
    "controller_inactive": Setting("the arm's controller is inactive", partial(inactive, controller=ARM)),
    "left_behind": Setting("an earlier stack, whose ros2 launch got SIGTERM", left_behind),
    "two_stacks": Setting("an earlier stack still runs", two_stacks),
    "two_managers": Setting("an earlier controller manager still runs", two_managers),
    "two_arms": Setting("an earlier controller of the arm still runs, and is inactive", two_arms),
}


@dataclass
class Reach:
    """An answered goal: times in ms, as by the harness's client."""

    code: int | None
    t1: float | None = None
    t2: float | None = None
    t4: float | None = None
    reason: str = ""


def measure(
    rmw: str, sim: Simulation, name: str, folder: Path, *, traced: bool
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Returns the setting's row, and an excerpt of its trace."""
    setting = SETTINGS[name]
    with ExitStack() as resources:
        domain = resources.enter_context(claim_domain())
        resources.callback(SharedMemory().remove_left_behind)
        environment = isolated_environment(Ros2Spec(rmw=rmw), domain=domain, log_directory=folder)
        environment, prefix = {**environment, **setting.environment(rmw, folder)}, setting.prefix
        if traced:
            recorder = choose_recorder(folder / "trace", folder)
            recorder.start()
            resources.callback(recorder.stop)
            environment, prefix = {**environment, **recorder.environment}, (*recorder.prefix, *prefix)
        stack = Stack(folder, environment, prefix, sim)
        resources.callback(stack.stop)
        setting.start(stack)
        reaches = list(reach_all(stack, setting))
    return row_of(name, setting.what, reaches), excerpt(folder) if traced else []


def reach_all(stack: Stack, setting: Setting) -> Iterator[Reach]:
    client = stack.run("client", sys.executable, str(HERE / "client.py"), "reach", talk=True)
    assert client.process.stdin is not None
    assert client.process.stdout is not None
    assert json.loads(client.process.stdout.readline()) == "ready"
    time.sleep(setting.settle_s)
    for number in range(REACHES):
        already = len(stack.reasons())
        setting.before(stack, number)
        client.process.stdin.write("reach\n")
        client.process.stdin.flush()
        reach = Reach(**json.loads(client.process.stdout.readline()))
        time.sleep(0.3 if reach.code == 1 else PAUSE_S)
        if reach.code != 1:
            reach.reason = next(iter(stack.reasons()[already:]), "no reason in the log")
        print(f"  {reach}", file=sys.stderr, flush=True)
        yield reach
    if ended := [
        name for name in stack.running if not name.startswith("launch") and stack.running[name].exit_code is not None
    ]:
        raise RuntimeError(f"{', '.join(ended)} ended before the last reach")


def row_of(name: str, what: str, reaches: Sequence[Reach]) -> dict[str, Any]:
    failed, good = ([each for each in reaches if (each.code == 1) is is_good] for is_good in (False, True))
    reasons = Counter(each.reason for each in failed)
    late = sorted(each.t2 for each in failed if each.t2 is not None)
    row: dict[str, Any] = {"setting": name, "what": what, "reaches": len(reaches), "failed": len(failed)}
    row |= {
        "success_rate": 100 * len(good) / len(reaches),
        "codes": ", ".join(sorted({str(each.code) for each in failed})),
    }
    row |= {"reasons": ", ".join(f"{number} × {reason}" for reason, number in reasons.most_common())}
    row |= {"T2_failed": median(late), "T2_failed_least": late[0], "T2_failed_most": late[-1]} if late else {}
    for time_ in ("t1", "t2", "t4") if len(good) > 1 else ():
        values = [value for each in good if (value := getattr(each, time_)) is not None]
        name, (low, high) = time_.upper(), mean_interval(values)
        row |= {name: fmean(values), f"{name}_sd": stdev(values), f"{name}_low": low, f"{name}_high": high}
    return row


SHOWN = (
    r"Received request|Starting trajectory execution|Received new action goal|Can't accept new action goals"
    r"|Accepted new action goal|Goal request accepted|reports status|Goal was rejected|CONTROL_FAILED"
)
PROCESSES = {"move_group": "move_group", "moveit": "move_group", ARM: "controller"}
"""Processes by the beginning of a logger's name."""


def excerpt(folder: Path) -> list[dict[str, Any]]:
    """Publications of actions, from the trace, and log lines, from a goal's arrival until 0.1 s after its failure.

    The goal is the one that failed soonest, of those with the status UNKNOWN if there are any.
    """
    events = sorted([*published(folder / "trace"), *(each for log in folder.glob("*.log") for each in logged(log))])
    begins = [time_ns for time_ns, _, what in events if "Received request" in what]
    ends = [time_ns for time_ns, _, what in events if "CONTROL_FAILED" in what]
    unknown = [time_ns for time_ns, _, what in events if "UNKNOWN" in what] or ends
    goals = [(max(b for b in begins if b < each), min(e for e in ends if e >= each)) for each in unknown]
    begin, end = min(goals, key=lambda goal: goal[1] - goal[0])
    return [
        {"ms": round((time_ns - begin) / 1e6, 2), "process": process, "what": what}
        for time_ns, process, what in events
        if begin <= time_ns <= end + 100_000_000
    ]


Happening = tuple[int, str, str]


def published(trace: Path) -> Iterator[Happening]:
    model = api.build_execution(api.read_trace(trace))
    topics, processes = model.publishers.select("id", "topic"), model.processes.select("id", "name")
    found = (
        model.publications.join(topics, left_on="publisher", right_on="id")
        .join(model.threads.select("id", "process"), left_on="thread", right_on="id")
        .join(processes, left_on="process", right_on="id")
        .select("time_ns", "name", "topic")
    )
    for time_ns, name, topic in found.iter_rows():
        if "/_action/" in topic:
            yield time_ns, name, f"publishes {topic}"


def logged(log: Path) -> Iterator[Happening]:
    line = r"\[\w+\] \[(\d+)\.(\d{9})\] \[([\w.]+)\]: (.*)"
    for seconds, nanoseconds, name, text in re.findall(line, log.read_text("utf-8", "replace")):
        if re.search(SHOWN, text):
            process = "second controller" if log.stem == "second" else PROCESSES.get(name.partition(".")[0], name)
            yield int(seconds + nanoseconds), process, f"logs “{text}”"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rmw", nargs="?", default="rmw_fastrtps_cpp")
    parser.add_argument("settings", nargs="*", help=f"of {', '.join(SETTINGS)}; by default all")
    parser.add_argument("--sim", type=Simulation, choices=[Simulation.GZ, Simulation.MOCK], default=Simulation.MOCK)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--keep", type=Path, help="folder for logs and traces")
    parser.add_argument("--trace", action="store_true", help="record each setting, and print an excerpt")
    chosen = parser.parse_args()
    if unknown := set(chosen.settings) - set(SETTINGS):
        parser.error(f"there is no setting {', '.join(sorted(unknown))}; there is {', '.join(SETTINGS)}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    rows, traces = [], []
    for name in chosen.settings or SETTINGS:
        print(name, file=sys.stderr, flush=True)
        with ExitStack() as resources:
            folder = chosen.keep / f"{name}_{chosen.rmw}" if chosen.keep else None
            folder = folder or Path(resources.enter_context(tempfile.TemporaryDirectory()))
            folder.mkdir(parents=True, exist_ok=True)
            row, trace = measure(chosen.rmw, chosen.sim, name, folder, traced=chosen.trace)
        print(json.dumps(row), file=sys.stderr, flush=True)
        rows.append(row)
        traces += trace
    if chosen.output:
        info = ros2_info(StackSpec(kind=StackKind.ROS2, ros2=Ros2Spec(rmw=chosen.rmw, sim=chosen.sim)))
        tables = {"settings": {"rows": rows}, **({"trace": {"rows": traces}} if traces else {})}
        results = {"versions": {"stack": info.description}, "middleware": chosen.rmw, "notes": [], "tables": tables}
        chosen.output.write_text(json.dumps({"started_at": datetime.now(UTC).isoformat(), **results}))


if __name__ == "__main__":
    main()
