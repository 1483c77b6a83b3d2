"""The process of the stimulus ``bag``; plays a bag in each trial by ``ros2 bag play``.

The player starts paused, so that all subscribers discover its publishers before the first message.
It speaks the line protocol of `stimulus.lines`, and marks each trial in the trace.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import rclpy
import rosbag2_py
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rosbag2_interfaces.srv import Resume

from pytest_ldos.base.errors import ConfigurationError, LdosError, suggest
from pytest_ldos.base.text import NS_PER_S
from pytest_ldos.base.tracepoints import Phase
from pytest_ldos.robot.stack.goals import OutcomeClass
from pytest_ldos.robot.stack.stimulus.lines import Ended, Task, refuse, serve
from pytest_ldos.scenario.stimuli import BagSpec

_NODE: Final = "rosbag2_player"
"""Name of the node of ``ros2 bag play``, which is unique because each run has its own DDS domain."""
_PLAYER_S: Final = 20.0
"""Timeout for the player to open its bag and to be discovered."""
_POLL_S: Final = 0.02
_GRACE_S: Final = 10.0


class BagPlayer:
    """Plays a bag.

    Raises:
        ConfigurationError: it cannot be read, lacks a chosen topic, or is shorter than the part to play.
    """

    def __init__(self, node: Node, spec: BagSpec) -> None:
        self._node = node
        self._spec = spec
        self._executor = SingleThreadedExecutor()
        self._executor.add_node(node)
        recorded = _read_metadata(Path(spec.path))
        lasts_s = recorded.duration.nanoseconds / NS_PER_S
        in_bag = [each.topic_metadata.name for each in recorded.topics_with_message_count]
        self._topics = _chosen(spec.topics, in_bag)
        _require_length(spec, lasts_s)
        self._seconds = (spec.duration_s or lasts_s - spec.start_s) / spec.rate
        self._resume = node.create_client(Resume, f"/{_NODE}/resume")

    def check(self) -> None:
        """Refuses a bag if no node in the stack subscribes to its topics.

        Raises:
            ConfigurationError: names the played topics.
        """
        ends_at = time.monotonic() + _PLAYER_S
        while not any(self._node.count_subscribers(topic) for topic in self._topics):
            if time.monotonic() > ends_at:
                raise ConfigurationError(
                    f"no node in the stack subscribes to a topic of the bag: {', '.join(self._topics)}",
                    remedy="record what the stack takes, or remap its topics in the launch file",
                )
            self._executor.spin_once(timeout_sec=_POLL_S)

    def handle(self, task: Task) -> Ended:
        """Plays the bag once, from the first message to the player's end."""
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
            task.enter(Phase.RESULT)
            return task.end(OutcomeClass.ABORTED, "the player did not become ready; see the log of the stimulus")
        task.begin()
        task.enter(Phase.GOAL_SENT)
        answer = self._resume.call_async(Resume.Request())
        self._executor.spin_until_future_complete(answer, timeout_sec=_PLAYER_S)
        task.enter(Phase.EXECUTING)
        try:
            code = player.wait(timeout=self._seconds + _GRACE_S)
        except subprocess.TimeoutExpired:
            task.enter(Phase.RESULT)
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


def _read_metadata(path: Path) -> Any:
    try:
        return rosbag2_py.Info().read_metadata(str(path), "")
    except RuntimeError as error:
        raise ConfigurationError(f"{path} is not a readable bag: {error}", remedy="see `ros2 bag info`") from None


def _chosen(wanted: Sequence[str], in_bag: Iterable[str]) -> tuple[str, ...]:
    known = tuple(in_bag)
    for topic in wanted:
        if topic not in known:
            raise ConfigurationError(f"the bag has no topic {topic}", remedy=suggest(topic, known))
    return tuple(wanted) or known


def _require_length(spec: BagSpec, lasts_s: float) -> None:
    needed_s = spec.start_s + spec.duration_s
    if needed_s > lasts_s or spec.start_s >= lasts_s:
        raise ConfigurationError(
            f"the bag lasts {lasts_s:.1f} s, shorter than a trial, which ends at {needed_s:.1f} s",
            remedy="lower start_s or duration_s in [tool.ldos.stimulus.bag]",
        )


def main() -> None:
    """Plays the bag described by ``argv[1]``: JSON with ``spec``."""
    settings = json.loads(sys.argv[1])
    rclpy.init(args=[])
    node = Node("ldos_bag_player", enable_rosout=False, start_parameter_services=False)
    try:
        player = BagPlayer(node, BagSpec(**{**settings["spec"], "topics": tuple(settings["spec"]["topics"])}))
        player.check()
    except LdosError as error:
        refuse(error)
    else:
        serve(player.handle, resets=False)


if __name__ == "__main__":
    main()
