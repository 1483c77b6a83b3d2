"""The processes of the stimuli ``action``, ``service`` and ``bag``, which speak the line protocol of `stack.lines`."""

from __future__ import annotations

import json
import math
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import rclpy
from action_msgs.msg import GoalStatus
from rclpy.action import ActionClient
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.task import Future

from pytest_ldos.base.errors import ConfigurationError, LdosError, suggest
from pytest_ldos.base.ros2 import Phase
from pytest_ldos.base.text import NS_PER_MS, NS_PER_S
from pytest_ldos.robot.stack.goals import OutcomeClass
from pytest_ldos.robot.stack.lines import REJECTED, Ended, Order, Task, details_of, is_success, judge_end, refuse, serve
from pytest_ldos.robot.stack.messages import fill, find_type
from pytest_ldos.scenario.stimuli import FEEDBACK, ActionSpec, BagSpec, ServiceSpec
from pytest_ldos.scenario.words import StimulusKind

_NODES: Final = {
    StimulusKind.ACTION: "ldos_action_caller",
    StimulusKind.SERVICE: "ldos_service_caller",
    StimulusKind.BAG: "ldos_bag_player",
}
_STATUS: Final = "STATUS_"
_DISCOVERY_S: Final = 10.0
_CANCEL_S: Final = 2.0
_POLL_S: Final = 0.02
_PLAYER: Final = "rosbag2_player"
"""Name of the node of ``ros2 bag play``, which is unique because each run has its own DDS domain."""
_PLAYER_S: Final = 20.0  # to open its bag and be discovered
_GRACE_S: Final = 10.0


class Program:
    """A stimulus with a node, which spins only while something is awaited."""

    resets = False

    def __init__(self, node: Node) -> None:
        self._node = node
        self._executor = SingleThreadedExecutor()
        self._executor.add_node(node)

    def _await(self, future: Future, timeout_s: float) -> bool:
        """Returns True if the future was completed in time."""
        self._executor.spin_until_future_complete(future, timeout_sec=timeout_s)
        return bool(future.done())


class ActionCaller(Program):
    """Sends one goal at a time and waits for its end; `reset` is the message of the goal after each trial, if any."""

    def __init__(self, node: Node, spec: ActionSpec, reset: Mapping[str, Any] | None) -> None:
        super().__init__(node)
        self._spec = spec
        self._reset = reset
        self._type = find_type(spec.type, "action")
        self._client = ActionClient(node, self._type, spec.name)
        self._task: Task | None = None
        self._service = None
        if spec.reset_service:
            self._service = node.create_client(find_type(spec.reset_type, "srv"), spec.reset_service)
        self.resets = reset is not None or self._service is not None
        if spec.executing and spec.executing != FEEDBACK:
            self._listen(spec.executing)

    def check(self, messages: Mapping[str, Mapping[str, Any]]) -> None:
        """Raises `ConfigurationError` for messages that are not goals of this type, and an action without a server."""
        for where, values in messages.items():
            fill(self._type.Goal(), values, where)
        if not self._client.wait_for_server(timeout_sec=_DISCOVERY_S):
            raise ConfigurationError(f"there is no action server {self._spec.name} of type {self._spec.type}")

    def handle(self, task: Task) -> Ended:
        if task.order is Order.RUN:
            return self._send(task, task.message)
        if self._service is not None:
            answer = self._service.call_async(self._service.srv_type.Request())
            if not self._await(answer, task.left_s):
                return task.end(OutcomeClass.TIMED_OUT, f"no answer from {self._spec.reset_service}")
        return self._send(task, self._reset) if self._reset is not None else task.end(OutcomeClass.SUCCESS)

    def _send(self, task: Task, values: Mapping[str, Any]) -> Ended:
        goal = fill(self._type.Goal(), values, "the goal")
        self._task = task
        task.begin()
        task.enter(Phase.GOAL_SENT)
        if self._spec.executing:
            task.enter(Phase.PLANNING)
        sent = self._client.send_goal_async(goal, feedback_callback=self._fed_back)
        if not self._await(sent, task.left_s):
            return task.end(OutcomeClass.TIMED_OUT, "the server did not answer the goal")
        handle = sent.result()
        if not handle.accepted:
            return task.end(*REJECTED)
        task.enter(Phase.GOAL_ACCEPTED)
        if not self._spec.executing:
            task.enter(Phase.EXECUTING)
        done = handle.get_result_async()
        if not self._await(done, task.left_s):
            self._await(handle.cancel_goal_async(), _CANCEL_S)
            return task.end(OutcomeClass.TIMED_OUT, f"no result within {self._spec.timeout_s:g} s")
        task.enter(Phase.RESULT)
        answer = done.result()
        return task.end(*judge_end(_status_name(answer.status), answer.result, self._spec.success_codes))

    def _fed_back(self, _: Any) -> None:
        if self._spec.executing == FEEDBACK and self._task is not None:
            self._task.enter(Phase.EXECUTING)

    def _heard(self, _: Any) -> None:
        if self._task is not None and Phase.GOAL_SENT in self._task.stamps and Phase.RESULT not in self._task.stamps:
            self._task.enter(Phase.EXECUTING)

    def _listen(self, topic: str) -> None:
        ends_at = time.monotonic() + _DISCOVERY_S
        while topic not in (types := dict(self._node.get_topic_names_and_types())):
            if time.monotonic() > ends_at:
                names = ", ".join(sorted(types)) or "none"
                message = f"executing names the topic {topic}, which does not exist"
                raise ConfigurationError(message, remedy=f"there is {names}")
            self._executor.spin_once(timeout_sec=_POLL_S)
        qos = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)
        self._node.create_subscription(find_type(types[topic][0], "msg"), topic, self._heard, qos)


def _status_name(status: int) -> str:
    """``aborted`` for `GoalStatus.STATUS_ABORTED`."""
    names = (name for name, value in vars(GoalStatus).items() if name.startswith(_STATUS) and value == status)
    return next(names, f"status {status}").removeprefix(_STATUS).lower()


class ServiceCaller(Program):
    def __init__(self, node: Node, spec: ServiceSpec) -> None:
        super().__init__(node)
        self._spec = spec
        self._type = find_type(spec.type, "srv")
        self._client = node.create_client(self._type, spec.name)

    def check(self, messages: Mapping[str, Mapping[str, Any]]) -> None:
        for where, values in messages.items():
            fill(self._type.Request(), values, where)
        if not self._client.wait_for_service(timeout_sec=_DISCOVERY_S):
            raise ConfigurationError(f"there is no service {self._spec.name}")

    def handle(self, task: Task) -> Ended:
        request = fill(self._type.Request(), task.message, "the request")
        latencies_ns: list[int] = []
        task.begin()
        task.enter(Phase.GOAL_SENT)
        outcome, message = OutcomeClass.SUCCESS, ""
        for number in range(1, self._spec.calls + 1):
            begin_ns = time.monotonic_ns()
            call = self._client.call_async(request)
            if not self._await(call, self._spec.timeout_s):
                outcome, message = OutcomeClass.TIMED_OUT, f"call {number} was not answered"
                break
            latencies_ns.append(time.monotonic_ns() - begin_ns)
            answer = call.result()
            if not is_success(answer):
                outcome, message = OutcomeClass.ABORTED, f"call {number} did not succeed{details_of(answer)}"
                break
        task.enter(Phase.RESULT)
        return task.end(outcome, message, **_numbers(latencies_ns))


def _numbers(latencies_ns: Sequence[int]) -> dict[str, float]:
    """Geometric mean, median, 99th percentile (nearest rank) and maximum of the calls."""
    if not latencies_ns:
        return {}
    ordered = sorted(latencies_ns)
    return {
        "calls_mean_ms": statistics.geometric_mean(ordered) / NS_PER_MS,
        "calls_p50_ms": statistics.median(ordered) / NS_PER_MS,
        "calls_p99_ms": ordered[math.ceil(0.99 * len(ordered)) - 1] / NS_PER_MS,
        "calls_max_ms": ordered[-1] / NS_PER_MS,
    }


class BagPlayer(Program):
    """Plays a bag by ``ros2 bag play``, once in each trial.

    The player starts paused, so that all subscribers discover its publishers before the first message.
    """

    def __init__(self, node: Node, spec: BagSpec) -> None:
        import rosbag2_py  # noqa: PLC0415 - not every stack takes a bag
        from rosbag2_interfaces.srv import Resume  # noqa: PLC0415

        super().__init__(node)
        self._spec = spec
        try:
            recorded = rosbag2_py.Info().read_metadata(spec.path, "")
        except RuntimeError as error:
            raise ConfigurationError(
                f"{spec.path} is not a readable bag: {error}", remedy="see `ros2 bag info`"
            ) from None
        in_bag = tuple(each.topic_metadata.name for each in recorded.topics_with_message_count)
        for topic in spec.topics:
            if topic not in in_bag:
                raise ConfigurationError(f"the bag has no topic {topic}", remedy=suggest(topic, in_bag))
        self._topics = tuple(spec.topics) or in_bag
        lasts_s = recorded.duration.nanoseconds / NS_PER_S
        needed_s = spec.start_s + spec.duration_s
        if needed_s > lasts_s or spec.start_s >= lasts_s:
            raise ConfigurationError(
                f"the bag lasts {lasts_s:.1f} s, shorter than a trial, which ends at {needed_s:.1f} s",
                remedy="lower start_s or duration_s in [tool.ldos.stimulus.bag]",
            )
        self._seconds = (spec.duration_s or lasts_s - spec.start_s) / spec.rate
        self._resume = node.create_client(Resume, f"/{_PLAYER}/resume")

    def check(self, _: Mapping[str, Mapping[str, Any]]) -> None:
        """Raises `ConfigurationError` if no node in the stack subscribes to the topics of the bag."""
        ends_at = time.monotonic() + _PLAYER_S
        while not any(self._node.count_subscribers(topic) for topic in self._topics):
            if time.monotonic() > ends_at:
                raise ConfigurationError(
                    f"no node in the stack subscribes to a topic of the bag: {', '.join(self._topics)}",
                    remedy="record what the stack takes, or remap its topics in the launch file",
                )
            self._executor.spin_once(timeout_sec=_POLL_S)

    def handle(self, task: Task) -> Ended:
        player = subprocess.Popen(self._command(), stdin=subprocess.DEVNULL, stdout=sys.stderr, stderr=sys.stderr)
        task.pids = (player.pid,)
        try:
            return self._play(task, player)
        finally:
            if player.poll() is None:
                player.terminate()
            player.wait()

    def _play(self, task: Task, player: subprocess.Popen[bytes]) -> Ended:
        if not self._is_seen(player):
            task.enter(Phase.GOAL_SENT)
            return task.end(OutcomeClass.ABORTED, "the player did not become ready; see the log of the stimulus")
        task.begin()
        task.enter(Phase.GOAL_SENT)
        self._await(self._resume.call_async(self._resume.srv_type.Request()), _PLAYER_S)
        task.enter(Phase.EXECUTING)
        try:
            code = player.wait(timeout=self._seconds + _GRACE_S)
        except subprocess.TimeoutExpired:
            return task.end(OutcomeClass.TIMED_OUT, f"the player did not end within {self._seconds + _GRACE_S:.0f} s")
        task.enter(Phase.RESULT)
        if code != 0:
            return task.end(OutcomeClass.ABORTED, f"ros2 bag play ended with exit code {code}")
        return task.end(OutcomeClass.SUCCESS)

    def _is_seen(self, player: subprocess.Popen[bytes]) -> bool:
        """Waits until the player can be resumed and its publishers are in the graph."""
        ends_at = time.monotonic() + _PLAYER_S
        while player.poll() is None and time.monotonic() < ends_at:
            self._executor.spin_once(timeout_sec=_POLL_S)
            if self._resume.service_is_ready() and all(map(self._node.count_publishers, self._topics)):
                return True
        return False

    def _command(self) -> list[str]:
        spec = self._spec
        return [
            *("ros2", "bag", "play", spec.path, "--start-paused", "--disable-keyboard-controls"),
            *("--rate", str(spec.rate), "--start-offset", str(spec.start_s), "--topics", *self._topics),
            *(("--playback-duration", str(spec.duration_s)) if spec.duration_s else ()),
            *(("--clock",) if spec.clock else ()),
        ]


def run(name: str, settings: Mapping[str, Any], build: Callable[[Node], Any]) -> None:
    """Serves the stimulus that `build` returns for a node of this name, once its messages are checked."""
    rclpy.init(args=[])
    try:
        program = build(Node(name, enable_rosout=False, start_parameter_services=False))
        program.check(settings["messages"])
    except LdosError as error:
        refuse(error)
    else:
        serve(program.handle, resets=program.resets)


def main() -> None:
    """Serves a stimulus; ``argv[1]`` is a JSON file: ``stimulus``, ``spec``, ``messages`` (by place), ``reset``."""
    settings = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    stimulus = StimulusKind(settings["stimulus"])
    fields = settings["spec"].items()
    spec: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in fields}
    programs: dict[StimulusKind, Callable[[Node], Program]] = {
        StimulusKind.ACTION: lambda node: ActionCaller(node, ActionSpec(**spec), settings["reset"]),
        StimulusKind.SERVICE: lambda node: ServiceCaller(node, ServiceSpec(**spec)),
        StimulusKind.BAG: lambda node: BagPlayer(node, BagSpec(**spec)),
    }
    run(_NODES[stimulus], settings, programs[stimulus])


if __name__ == "__main__":
    main()
