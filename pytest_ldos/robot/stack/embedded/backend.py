"""The embedded stack's backend: four processes on their own DDS domain."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, ClassVar, Final, Unpack

from pytest_ldos.base.errors import BringUpFailed, ConfigurationError, require
from pytest_ldos.base.files import writing
from pytest_ldos.base.series import Moments
from pytest_ldos.host.availability import Availability, find_modules
from pytest_ldos.host.cpu import thief_commands
from pytest_ldos.host.processes import Child, ProcessGroup
from pytest_ldos.record.protocol import Recorder
from pytest_ldos.robot.dds.domain import bound_to_loopback, claim_domain
from pytest_ldos.robot.stack.cpus import cpus_of
from pytest_ldos.robot.stack.embedded.installed import PARTS, Installed, installed_here, installed_in
from pytest_ldos.robot.stack.goals import HOME, PANDA_GOALS, Goal, read_goals
from pytest_ldos.robot.stack.lines import MotionOutcome, MoveReport, died, plant_failure, to_outcome
from pytest_ldos.robot.stack.problems import read_problems
from pytest_ldos.robot.stack.protocol import (
    OURS,
    CaseBook,
    Installation,
    StackInfo,
    Stimulus,
    digest_of_data,
    read_cases,
    single_case,
)
from pytest_ldos.robot.stack.senders import (
    ArmStimulus,
    Conversation,
    MoveRequest,
    ProgramStimulus,
    WindowStimulus,
    no_answer,
    to_command,
)
from pytest_ldos.scenario.model import StackSpec
from pytest_ldos.scenario.stimuli import MoveGroupSpec, PlanSpec, StimulusSpec, WindowSpec
from pytest_ldos.scenario.words import StimulusKind


def tracepoints_available(found: Installed, *, where: str = "") -> Availability:
    """Availability of the tracepoints in an environment (`where`; empty for ours): built, and loadable."""
    whose = f"the pytest-ldos of {where}" if where else "pytest-ldos"
    there = " there" if where else ""
    if not found.is_traced:
        return Availability(
            False,
            f"{whose} was built without tracepoints, because LTTng-UST was missing",
            f"sudo apt-get install liblttng-ust-dev, then build again{there} "
            "(make setup, or pip install --force-reinstall --no-binary pytest-ldos)",
        )
    if found.load_fault:
        return Availability(
            False,
            f"the tracepoints of {whose} cannot be loaded: {found.load_fault}",
            "sudo apt-get install liblttng-ust-dev (LTTng-UST 2.13 or later)",
        )
    return Availability(True)


READY_TIMEOUT_S: Final = 30.0  # it usually takes 3 s
_CHECK_S: Final = 2.0  # of a message, at most
_FASTEST_LOOP_HZ: Final = 1000  # of a control loop in Python

_QUIET: Final = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MUJOCO_GL": "disable"}
"""Disables thread pools, which would disturb the timing, and a search for graphics, which would delay the start."""


def embedded_available(installation: Installation = OURS) -> Availability:
    if installation.is_ours:
        modules = find_modules(PARTS, extra="embedded")
        return tracepoints_available(installed_here()) if modules.ok else modules
    python = installation.python
    found = installed_as(installation)
    if isinstance(found, str):
        return Availability(False, f"{python} cannot be asked: {found}", "name another environment")
    if found.missing:
        reason = f"the environment of {python} lacks {', '.join(found.missing)}"
        return Availability(False, reason, "install pytest-ldos[embedded] there")
    return tracepoints_available(found, where=python)


def installed_as(installation: Installation) -> Installed | str:
    return installed_here() if installation.is_ours else installed_in(installation.interpreter)


def versions_of(installation: Installation) -> Mapping[str, str]:
    found = installed_as(installation)
    return {} if isinstance(found, str) else found.versions


def embedded_info(installation: Installation = OURS, *, driver: StimulusSpec | None = None) -> StackInfo:
    """Describes an installed stack without starting it; `driver` is its stimulus, ``None`` for goals of the arm."""
    driver = driver or MoveGroupSpec()
    versions = versions_of(installation)
    parts = f"MuJoCo {versions['mujoco']}, OMPL {versions['ompl']}, TOPP-RA {versions['toppra']}"
    return StackInfo(
        name="embedded" if driver.KIND is StimulusKind.MOVE_GROUP else f"embedded-{driver.KIND}",
        description=f"embedded ({parts}, Cyclone DDS {versions['cyclonedds']})",
        rmw="cyclonedds",
        # Trials with different problems are not comparable.
        versions={**versions, **({driver.KIND: digest_of_data(Path(driver.data))} if driver.data else {})},
    )


class NodesBackend:
    """The part of a `StackBackend` for processes of the embedded node layer."""

    VARIABLES: ClassVar[Mapping[str, str]] = {}

    def __init__(
        self, spec: StackSpec, *, recorder: Recorder, log_directory: Path, installation: Installation = OURS
    ) -> None:
        self._spec = spec
        self._logs = log_directory
        self._installation = installation
        self._resources = ExitStack()
        environment = {**recorder.environment, **bound_to_loopback(), **self.VARIABLES}
        self._group = ProcessGroup(log_directory=log_directory, prefix=recorder.prefix, environment=environment)

    def _run(self, name: str, module: str, parameters: Mapping[str, Any], *, talk: bool = False) -> Child:
        command = [*self._installation.interpreter, "-m", module, json.dumps(parameters)]
        return self._group.start(name, command, talk=talk)

    def stop(self) -> None:
        self._group.stop()
        self._resources.close()


class NodesStack:
    """The part of a `RunningStack` for processes of the embedded node layer."""

    stimulus: Stimulus

    def __init__(self, domain: int, group: ProcessGroup, *, info: StackInfo) -> None:
        self.info = info
        self.domain = domain
        self.environment: Mapping[str, str] = {}
        self._group = group
        self._under_test: Sequence[Child] = tuple(group.children)

    def pids(self) -> list[int]:
        return [child.pid for child in self._under_test]

    def processes(self) -> Mapping[int, str]:
        return {child.pid: child.name for child in self._under_test if child.exit_code is None}

    def all_processes(self) -> Mapping[int, str]:
        return {child.pid: child.name for child in self._under_test}

    def loop_statistics(self) -> Mapping[str, Moments]:
        return {}

    def topic_numbers(self, subjects: Sequence[str]) -> Mapping[str, list[float] | str]:
        return dict.fromkeys(subjects, "messages are read on stacks of ROS 2 only")

    def settle(self) -> None:
        """Does nothing: the processes themselves report when they are ready."""


class EmbeddedBackend(NodesBackend):
    VARIABLES = _QUIET

    def start(self, *, on_waiting: Callable[[str], None] | None = None) -> EmbeddedStack:
        embedded_available(self._installation).demand()
        faults = self._spec.faults
        rate_hz = faults.control_rate_of(self._spec.control_rate_hz)
        require(
            rate_hz <= _FASTEST_LOOP_HZ,
            f"control_rate_hz is {rate_hz:g}, and the embedded loop runs at {_FASTEST_LOOP_HZ} Hz at most",
            remedy="give less, or measure a stack of ROS 2",
        )
        domain = self._resources.enter_context(claim_domain())
        self._start_node("simulator", domain, control_rate_hz=rate_hz, transport_delay_ms=faults.transport_delay_ms)
        self._start_node(
            "move_group",
            domain,
            planning_delay_ms=faults.planning_delay_ms,
            planning_delay_share=faults.planning_delay_share,
            leak_mb=faults.leak_mb,
        )
        self._start_node(
            "state_publisher", domain, callback_delay_ms=faults.callback_delay_ms, cpu_waste=faults.cpu_waste
        )
        client = self._start_node("goal_client", domain, talk=True)
        info = embedded_info(self._installation, driver=self._spec.driver)
        stack = EmbeddedStack(self._spec, domain, self._group, client, info=info)
        stack.await_ready()
        if not self._spec.moves_arm:
            stack.stimulate_by(self._start_stimulus(stack))
        for name, command in thief_commands(faults.cpu_steal, cpus_of(self._spec)).items():
            self._group.start(name, command)
        return stack

    def _start_stimulus(self, stack: EmbeddedStack) -> Stimulus:
        spec, driver = self._spec, self._spec.driver
        if isinstance(driver, WindowSpec):
            return WindowStimulus(driver.seconds, stack.why)
        if driver.own_command:
            # The variable from which every DDS program of ROS takes its domain.
            command = ["env", f"ROS_DOMAIN_ID={stack.domain}", *driver.own_command]
            program = self._group.start("stimulus", command, talk=True)
            return self._converse(program, single_case(driver.case_name), driver.longest_s, stack)
        if driver.EMBEDDED:
            if isinstance(driver, PlanSpec):
                book = read_problems(driver)
                file = self._logs / "stimulus.json"  # messages are too long for an argument
                with writing(file):
                    file.write_text(json.dumps(book.all_messages, default=str), "utf-8")
                given: dict[str, Any] = {"file": str(file)}
            else:
                book = read_cases(Path(spec.goals))
                given = {"messages": book.all_messages, "reset": book.reset}
            node = self._start_node(driver.EMBEDDED, stack.domain, talk=True, spec=asdict(driver), **given)
            return self._converse(node, book, driver.longest_s, stack)
        raise ConfigurationError(
            f'stimulus = "{spec.stimulus}" needs nodes of ROS 2, and this is the embedded stack',
            remedy="source ROS 2 and name your launch file in [tool.ldos.stack], or take another stimulus",
        )

    def _converse(self, program: Child, book: CaseBook, timeout_s: float, stack: EmbeddedStack) -> Stimulus:
        conversation = Conversation(program, self._group.describe_ended)
        if not conversation.await_ready(READY_TIMEOUT_S + _CHECK_S * len(book.all_messages)):
            raise BringUpFailed(
                f"the stimulus is not ready: {stack.why() or conversation.misunderstood or 'it printed nothing'}",
                details=self._group.last_words(),
                remedy='a program of your own must write {"event": "ready"} as its first line',
            )
        return ProgramStimulus(conversation, book, timeout_s=timeout_s, why=stack.why)

    def _start_node(self, name: str, domain: int, *, talk: bool = False, **parameters: Any) -> Child:
        found = installed_as(self._installation)
        if isinstance(found, str):
            raise BringUpFailed(f"{self._installation.python} cannot be asked: {found}")
        return self._run(name, found.node(name), {"domain": domain, **parameters}, talk=talk)


class EmbeddedStack(NodesStack):
    """See `RunningStack`. The planner takes seeds: equal versions plan equal paths."""

    is_repeatable = True
    warms_up_by_planning = True

    def __init__(self, spec: StackSpec, domain: int, group: ProcessGroup, client: Child, *, info: StackInfo) -> None:
        super().__init__(domain, group, info=info)
        self.goal_book = read_goals(Path(spec.goals)) if spec.goals and spec.moves_arm else PANDA_GOALS
        self._spec = spec
        self._traced = tuple(group.children)
        self._under_test = [child for child in self._traced if child is not client]
        self._conversation = Conversation(client, group.describe_ended)
        self.stimulus = ArmStimulus(self)

    def stimulate_by(self, stimulus: Stimulus) -> None:
        """Sets a stimulus other than goals for the arm; its program is traced, but not under test."""
        self.stimulus = stimulus
        self._traced = tuple(self._group.children)

    def await_ready(self) -> None:
        if self._conversation.await_ready(READY_TIMEOUT_S):
            return
        why = self.why()
        raise BringUpFailed(
            f"the embedded stack did not start: {why or f'it was not ready within {READY_TIMEOUT_S:.0f} s'}",
            details=self._group.last_words(),
            remedy="look at the logs above" + ("" if why else ", and at the load of this machine"),
        )

    def why(self) -> str:
        """Returns why the stack cannot continue; empty while it runs."""
        return self._group.describe_ended() or self._conversation.misunderstood

    @property
    def can_plan_only(self) -> bool:
        return self._conversation.can_plan_only

    def pids(self) -> list[int]:
        return [child.pid for child in self._traced]

    def move(self, goal: Goal, **request: Unpack[MoveRequest]) -> MotionOutcome:
        refuse_other_joints(goal)
        failure = plant_failure(self._spec.faults.failure_rate, seed=request["seed"], trial=request["trial"])
        command = replace(to_command(self._spec, goal, **request), failure=failure or "")
        report = self._conversation.ask(command)
        if isinstance(report, MoveReport):
            return to_outcome(report, check_pose=not command.plan_only)
        reason = self.why() or no_answer("goal client", command)
        return died(command.goal_id, f"{reason}\n{self._group.last_words()}")


def refuse_other_joints(goal: Goal) -> None:
    """Raises `ConfigurationError` for a joint goal that does not name exactly the Panda's joints."""
    assert HOME.joints is not None
    if goal.joints is None or set(goal.joints) == set(HOME.joints):
        return
    wrong = sorted(set(goal.joints) ^ set(HOME.joints))
    raise ConfigurationError(
        f"goal {goal.name!r} does not fit the Panda's joints: {', '.join(wrong)} missing or unknown",
        remedy=f"give a position for each of {', '.join(HOME.joints)}",
    )
