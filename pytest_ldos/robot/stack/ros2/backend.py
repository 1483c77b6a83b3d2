"""The backend for stacks of ROS 2 nodes: runs a launch file and records it from the start."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple, Self, Unpack

from pytest_ldos.base.errors import BringUpFailed
from pytest_ldos.base.series import Moments
from pytest_ldos.host.availability import find_ros_packages
from pytest_ldos.host.cpu import describe_cpus, thief_commands
from pytest_ldos.host.kept import AnsweringChild, ChildFailed, KeptTree
from pytest_ldos.host.processes import Child, ProcessGroup, last_words, quoted
from pytest_ldos.record.protocol import Recorder
from pytest_ldos.robot.dds.domain import claim_domain
from pytest_ldos.robot.stack.cpus import cpus_of, find_placement
from pytest_ldos.robot.stack.goals import Goal, OutcomeClass
from pytest_ldos.robot.stack.lines import MotionOutcome, MoveReport, died, plant_failure, to_outcome
from pytest_ldos.robot.stack.protocol import OURS, Installation, StackInfo
from pytest_ldos.robot.stack.ros2.installed import (
    PROGRAM,
    SEEDED_PLANNER,
    Isolation,
    SharedMemory,
    isolated,
    ros2_available,
    ros2_info,
)
from pytest_ldos.robot.stack.ros2.state import LaunchWatch, find_launch_file, launch_arguments
from pytest_ldos.robot.stack.ros2.stimuli import (
    StimulusPlan,
    demand_plantable,
    fault_arguments,
    out_of_reach,
    plan_stimulus,
)
from pytest_ldos.robot.stack.senders import ANSWER_GRACE_S, Conversation, MoveRequest, no_answer, to_command
from pytest_ldos.scenario.model import FIRST_SEED, StackSpec

_PACKAGE: Final = "pytest_ldos.robot.stack.ros2"
_READINESS: Final = f"{_PACKAGE}.readiness_node"

_MESSAGES: Final = "pal_statistics_msgs"
_ANSWER_S: Final = 15.0  # before the first one, the process imports ROS 2 and waits for the manager
_END_S: Final = 5.0


class ReadinessWatch:
    """Runs the readiness node, which ends when the stack is ready.

    Leaving the DDS domain takes it a third of a second, during which the stack can warm up; call `await_end` before
    measuring.
    """

    def __init__(
        self, spec: StackSpec, *, needs_clock: bool, environment: Mapping[str, str], log_directory: Path
    ) -> None:
        self._group = ProcessGroup(log_directory=log_directory, environment=environment, death_signal=signal.SIGINT)
        services = [f"service:{spec.driver.service}"] if spec.driver.service else []
        needs = {
            "controllers": spec.ros2.controllers,
            "controller_manager": spec.ros2.controller_manager,
            "action": spec.ros2.action if spec.moves_arm else spec.driver.action,
            "joint_states": spec.ros2.joint_states if spec.moves_arm else "",
            "group": spec.ros2.group if spec.moves_arm else "",
            "others": [*services, *spec.ros2.ready],
            "needs_clock": needs_clock,
        }
        self._command = [sys.executable, "-m", _READINESS, json.dumps(needs)]
        self._missing = ["no answer yet"]
        self._wrong = ""

    def __enter__(self) -> Self:
        self._child = self._group.start("readiness", self._command, talk=True)
        threading.Thread(target=self._read, name="readiness", daemon=True).start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._group.stop()

    def _read(self) -> None:
        assert self._child.process.stdout is not None
        for line in self._child.process.stdout:
            try:
                word = json.loads(line)
            except ValueError:
                word = f"the readiness node printed an unexpected line: {quoted(line)}"
            if isinstance(word, str):
                self._wrong = word
            else:
                self._missing = word

    def await_end(self) -> None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._child.process.wait(_END_S)
        self._group.stop()

    @property
    def is_ready(self) -> bool:
        return not self._missing

    @property
    def missing(self) -> str:
        return "; ".join(self._missing)

    def what_failed(self) -> str:
        """Returns why readiness can no longer be determined or reached; empty if it still can."""
        code = self._child.exit_code
        if self._wrong:
            return self._wrong
        return "" if code in {None, 0} else f"{self._child.describe_end()}\n{self._child.last_lines()}"


_POLL_S: Final = 0.02
_NOT_OF_THE_STACK: Final = frozenset({"launch", "lttng-sessiond", "readiness"})
"""Logs not of the stack's own processes; the launch's log repeats their output."""

_WORD_EVERY_S: Final = 5.0


class Members(NamedTuple):
    """The processes of a stack, and lines of `state` about them."""

    pids: Callable[[], Collection[int]]
    events: Iterable[str]


class Ros2Stack:
    def __init__(
        self,
        spec: StackSpec,
        plan: StimulusPlan,
        *,
        isolation: Isolation,
        members: Members,
        client: Child | None,
        group: ProcessGroup,
        log_directory: Path,
        info: StackInfo,
    ) -> None:
        self.info = info
        self.is_repeatable = SEEDED_PLANNER in info.versions
        self.warms_up_by_planning = False  # not measured
        self.domain = int(isolation.environment["ROS_DOMAIN_ID"])
        self.environment = isolation.environment
        self.goal_book = plan.goal_book
        self._spec = spec
        self._members = members
        self._client = client
        self._group = group
        self._router = isolation.router
        self._logs = log_directory
        self._seen_pids: set[int] = set()
        self._watch: ReadinessWatch | None = None
        self.listeners = ProcessGroup(
            log_directory=log_directory, environment=self.environment, death_signal=signal.SIGINT
        )
        self._answering: dict[str, AnsweringChild] = {}
        self._launch = LaunchWatch()
        self._conversation = None if client is None else Conversation(client, self.what_failed)
        self.stimulus = plan.build(self, self._conversation, self._why)
        threading.Thread(target=self._launch.follow, args=(members.events,), name="launch events", daemon=True).start()

    def what_failed(self) -> str:
        """Returns the process that ended too early; empty while the stack is complete."""
        misunderstood = self._conversation.misunderstood if self._conversation is not None else ""
        router = "" if self._router is None else self._router.describe_ended()
        ended = [router, self._launch.what_failed(), self._group.describe_ended(), misunderstood]
        return "; ".join(reason for reason in ended if reason)

    def become_ready(self, resources: ExitStack, on_waiting: Callable[[str], None] | None) -> None:
        """Watches the stack until it is ready; raises as `await_ready`."""
        resources.callback(self.listeners.stop)
        watch = ReadinessWatch(
            self._spec,
            needs_clock=self.info.has_simulated_clock,
            environment=self.environment,
            log_directory=self._logs,
        )
        self.await_ready(resources.enter_context(watch), on_waiting or (lambda _: None))

    def await_ready(self, watch: ReadinessWatch, on_waiting: Callable[[str], None]) -> None:
        """Waits for all parts that a goal needs, then for the client; `on_waiting` gets the missing parts now and then.

        Raises `BringUpFailed` with them at a timeout or end, `ConfigurationError` if a stimulus refused to begin.
        """
        self._watch = watch
        limit_s = self._spec.ros2.ready_timeout_s
        deadline = time.monotonic() + limit_s
        next_word = time.monotonic() + _WORD_EVERY_S
        while not watch.is_ready:
            reason = self.what_failed() or watch.what_failed()
            if reason:
                raise self._bring_up_failed(reason)
            if time.monotonic() > deadline:
                raise self._bring_up_failed(f"it was not ready within {limit_s:.0f} s: {watch.missing}")
            if time.monotonic() > next_word:
                next_word += _WORD_EVERY_S
                on_waiting(watch.missing)
            time.sleep(_POLL_S)
        if self._conversation is not None:
            patience_s = max(deadline - time.monotonic(), ANSWER_GRACE_S)
            if not self._conversation.await_ready(patience_s):
                reason = self._spec.driver.NOT_READY or "the stimulus is not ready"
                raise self._bring_up_failed(self.what_failed() or reason)
        self._seen_pids.update(self._members.pids())

    def _bring_up_failed(self, reason: str) -> BringUpFailed:
        return BringUpFailed(
            f"the ros2 stack did not start: {reason}",
            details=self._last_words(reason),
            remedy=f"check the names in [tool.ldos.stack], look at the logs above (whole in {self._logs}), "
            "or run `ldos doctor`",
        )

    @property
    def can_plan_only(self) -> bool:
        return self._conversation is not None and self._conversation.can_plan_only

    def pids(self) -> list[int]:
        self._seen_pids.update(self._members.pids())
        client = () if self._client is None else (self._client.pid,)
        return sorted({*client, *self.stimulus.pids, *self._seen_pids, *self._launch.pids(), *self._routers()})

    def processes(self) -> Mapping[int, str]:
        return {**self._launch.running(), **self._routers()}

    def all_processes(self) -> Mapping[int, str]:
        return {**self._launch.named(), **self._routers()}

    def _routers(self) -> Mapping[int, str]:
        return {} if self._router is None else {self._router.children[0].pid: PROGRAM}

    def loop_statistics(self) -> Mapping[str, Moments]:
        find_ros_packages([_MESSAGES], environment={**os.environ, **self.environment}).demand()
        found = self._ask_listener("statistics", [f"{self._spec.ros2.controller_manager}/statistics"])
        return {name: Moments(*each) for name, each in found.items()}

    def topic_numbers(self, subjects: Sequence[str]) -> Mapping[str, list[float] | str]:
        return self._ask_listener("topics", subjects)

    def _ask_listener(self, name: str, arguments: Sequence[str]) -> Mapping[str, Any]:
        if name not in self._answering:
            command = [sys.executable, "-m", f"{_PACKAGE}.{name}_node", *arguments]
            self._answering[name] = AnsweringChild(self.listeners.start(name, command, talk=True))
        try:
            return self._answering[name].ask("", limit_s=_ANSWER_S)
        except ChildFailed as error:
            raise BringUpFailed(f"{', '.join(arguments)}: {error.message}", details=error.details) from None

    def settle(self) -> None:
        if self._watch is not None:
            self._watch.await_end()

    def move(self, goal: Goal, **request: Unpack[MoveRequest]) -> MotionOutcome:
        # MoveIt plans from the arm's position if it also executes. Motions other than trials share a seed, so that home
        # is the same to the last bit after any trial.
        command = replace(to_command(self._spec, goal, **request), start=None)
        goal_id, trial = command.goal_id, command.trial
        if trial is None and not command.plan_only and command.seed is not None:
            command = replace(command, seed=FIRST_SEED)
        rate = self._spec.faults.failure_rate
        if plant_failure(rate, seed=None if trial is None else trial.index + 1, trial=trial) is not None:
            command = out_of_reach(command)
        assert self._conversation is not None, "an arm has a goal client"
        report = self._conversation.ask(command)
        if not isinstance(report, MoveReport):
            return self._died(goal_id, no_answer("goal client", command))
        outcome = to_outcome(report, check_pose=goal.pose is not None and not command.plan_only)
        if outcome.outcome is not OutcomeClass.SUCCESS and self.what_failed():
            return self._died(goal_id, outcome.message)  # which is not a failure of planning or control
        return outcome

    def _why(self) -> str:
        reason = self.what_failed()
        return f"{reason}\n{self._last_words(reason)}" if reason else ""

    def _died(self, goal_id: str, otherwise: str) -> MotionOutcome:
        reason = self.what_failed() or otherwise
        return died(goal_id, f"{reason}\n{self._last_words(reason)}")

    def _last_words(self, reason: str) -> str:
        """Returns the last lines of the process in the reason, or of all processes of the launch file."""
        logs = sorted(self._logs.glob("*.log"))
        named = [log for log in logs if log.stem in reason]
        return last_words(named or [log for log in logs if log.stem not in _NOT_OF_THE_STACK])


class Ros2Backend:
    """See `StackBackend`. The launch runs under a keeper, so that its processes never outlive this process."""

    def __init__(
        self, spec: StackSpec, *, recorder: Recorder, log_directory: Path, installation: Installation = OURS
    ) -> None:
        self._spec = spec
        self._sourced = installation.environment
        self._launch_file = installation.launch_file or spec.ros2.launch_file
        self._recorder = recorder
        self._logs = log_directory.resolve()
        self._resources = ExitStack()

    def start(self, *, on_waiting: Callable[[str], None] | None = None) -> Ros2Stack:
        ros2_available(self._spec, self._sourced).demand()
        demand_plantable(self._spec)
        command = self._launch_command()
        plan = plan_stimulus(self._spec)
        domain = self._resources.enter_context(claim_domain())
        isolation = self._resources.enter_context(
            isolated(self._spec.ros2, domain=domain, log_directory=self._logs, environment=self._sourced)
        )
        recorded = {**isolation.environment, **self._recorder.environment}
        self._resources.callback(SharedMemory().remove_left_behind)
        tree = KeptTree("launch", command, log=self._logs / "launch.log", environment=recorded)
        self._resources.callback(tree.stop)
        group = ProcessGroup(
            log_directory=self._logs, prefix=self._recorder.prefix, environment=recorded, death_signal=signal.SIGINT
        )
        assert tree.child.process.stdout is not None
        stack = self._assemble(plan, group, isolation, Members(tree.pids, tree.child.process.stdout))
        stack.become_ready(self._resources, on_waiting)
        for name, thief in thief_commands(self._spec.faults.cpu_steal, cpus_of(self._spec)).items():
            group.start(name, thief)
        return stack

    def _assemble(self, plan: StimulusPlan, group: ProcessGroup, isolation: Isolation, members: Members) -> Ros2Stack:
        """Starts the stimulus in the group."""
        self._resources.callback(group.stop)
        program = plan.command(self._logs, self._sourced)
        name = "goal_client" if self._spec.moves_arm else "stimulus"
        return Ros2Stack(
            self._spec,
            plan,
            isolation=isolation,
            members=members,
            client=None if program is None else group.start(name, program, talk=True),
            group=group,
            log_directory=self._logs,
            info=ros2_info(self._spec, self._sourced),
        )

    def _launch_command(self) -> list[str]:
        ros2 = self._spec.ros2
        settings = {
            "file": str(find_launch_file(self._launch_file, self._sourced)),
            "arguments": {
                **launch_arguments(ros2, self._sourced),
                **fault_arguments(self._spec, self._logs, self._sourced),
            },
            "log_directory": str(self._logs),
        }
        cpus = describe_cpus(find_placement(self._spec).rest)  # inherited by processes that begin later
        placed = ("taskset", "--cpu-list", cpus) if cpus else ()
        return [*self._recorder.prefix, *placed, sys.executable, "-m", f"{_PACKAGE}.launcher", json.dumps(settings)]

    def stop(self) -> None:
        self._resources.close()
