"""Specs of scenarios and stacks: frozen values, checked when they are created."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Final

from pytest_ldos.base.errors import require
from pytest_ldos.scenario.loads import CPU_LIST, LoadSpec
from pytest_ldos.scenario.metrics import DeadlineSpec
from pytest_ldos.scenario.stimuli import GRAPH_NAME, MoveGroupSpec, StimuliSpec, StimulusSpec, require_graph_name
from pytest_ldos.scenario.words import (
    DEFAULT_RATE_HZ,
    ProfilerKind,
    SeedMode,
    Simulation,
    StackKind,
    StimulusKind,
    WhenUnavailable,
)

PANDA_LAUNCH_FILE: Final = "ldos_bringup/stack.launch.py"
RUNNING: Final = "running/"
"""Launch file of a stack that runs already."""

_NEEDS: Final = ("topic", "service", "action", "active")
_RMW: Final = re.compile(r"rmw_[a-z0-9_]+")
_FASTEST_LOOP_HZ: Final = 20_000
ISOLATED: Final = "isolated"
_CPUS: Final = re.compile(rf"{ISOLATED}|{CPU_LIST}|[^\s=]+={CPU_LIST}(?: [^\s=]+={CPU_LIST})*", re.ASCII)
_OF_RUNNING: Final = (StimulusKind.WINDOW, StimulusKind.ACTION, StimulusKind.SERVICE)
_MOST: Final = "most"
"""Key of a field's metadata: its largest value."""


@dataclass(frozen=True, kw_only=True)
class Ros2Spec:
    """Launch and names of a stack of ROS 2 nodes.

    Attributes:
        launch_file: ``PACKAGE/FILE``, or a path.
        launch_arguments: for it, by name.
        sim: value of the launch argument ``sim:=``; ``auto`` is Gazebo for the Panda if it is installed, or else mock
            hardware, and nothing for other launch files.
        rmw: middleware, ``rmw_…``; empty for that of ``RMW_IMPLEMENTATION``, or ROS 2's default.
        action: the MoveGroup action.
        group: MoveIt's planning group.
        base_frame: frame of the goals' poses.
        joint_states: topic of the joint states.
        controller_manager: node that is queried for its controllers.
        controllers: controllers that must be active before a goal is sent; by default none unless the stimulus is
            `move_group`.
        ready: further conditions for the first trial: ``topic:/scan`` (a message was received), ``service:/NAME``,
            ``action:/NAME``, or ``active:/NODE`` (a lifecycle node is active).
        seeded_planner: True if MoveIt's pipeline plans through ``ldos_planner``, which takes a seed with each goal; the
            Panda's does if it is installed.
        ready_timeout_s: time after which a stack that is not ready has failed to start.
    """

    launch_file: str = PANDA_LAUNCH_FILE
    launch_arguments: Mapping[str, str] = field(default_factory=dict)
    sim: Simulation = Simulation.AUTO
    rmw: str = ""
    action: str = "/move_action"
    group: str = "panda_arm"
    base_frame: str = "panda_link0"
    joint_states: str = "/joint_states"
    controller_manager: str = "/controller_manager"
    controllers: tuple[str, ...] = ("joint_state_broadcaster", "panda_arm_controller")
    ready: tuple[str, ...] = ()
    seeded_planner: bool = False
    ready_timeout_s: float = 60.0

    def __post_init__(self) -> None:
        require(
            "/" in self.launch_file,
            f"launch_file {self.launch_file!r} is neither PACKAGE/FILE nor the path of a file",
            remedy="name a launch file as my_package/stack.launch.py, or by its path from pyproject.toml",
        )
        for name in ("action", "joint_states", "controller_manager"):
            require_graph_name(name, getattr(self, name))
        for need in self.ready:
            kind, _, name = need.partition(":")
            require(
                kind in _NEEDS and GRAPH_NAME.fullmatch(name) is not None,
                f"ready has {need!r}, which is not a condition",
                remedy=f"write KIND:/NAME, with one of {', '.join(_NEEDS)}",
            )
        for name in ("group", "base_frame"):
            require(bool(getattr(self, name)), f"{name} of the stack is empty")
        require(
            not self.rmw or _RMW.fullmatch(self.rmw) is not None,
            f"rmw {self.rmw!r} is not a middleware",
            remedy="give the name of its package, as in rmw_cyclonedds_cpp",
        )
        require(0 < self.ready_timeout_s <= 600, "ready_timeout_s must be between 0 and 600")

    @property
    def is_panda(self) -> bool:
        """True for this project's own Panda stack."""
        return self.launch_file == PANDA_LAUNCH_FILE

    @property
    def is_running(self) -> bool:
        """True for nodes that run already."""
        return self.launch_file == RUNNING


@dataclass(frozen=True, kw_only=True)
class FaultSpec:
    """Faults that can be planted in a running stack, to test the gate.

    Attributes:
        planning_delay_ms: added to every planning.
        planning_delay_share: share of the planning time added to each planning: 0.15 makes it take 15 % longer.
        control_rate_hz: replaces the nominal rate; ``0`` plants nothing.
        control_rate_drop: reduction of the nominal rate, as a share: 0.1 makes 500 Hz 450 Hz.
        callback_delay_ms: added to the callback that turns joint states into transforms, each time it publishes.
        transport_delay_ms: additional transport delay of joint states.
        failure_rate: share of the measured goals that fail, chosen by the trial's seed (see `stack.lines`).
        cpu_steal: share of the stack's CPUs that competing processes take.
        cpu_waste: share of its own CPU time that the process which turns joint states into transforms uses in
            addition: 0.2 makes it use 20 % more.
        leak_mb: memory that the planner's process keeps of each motion that it executes; a trial has two, to the goal
            and home.
    """

    planning_delay_ms: float = field(default=0.0, metadata={_MOST: 5000})
    planning_delay_share: float = field(default=0.0, metadata={_MOST: 10})
    control_rate_hz: float = field(default=0.0, metadata={_MOST: _FASTEST_LOOP_HZ})
    control_rate_drop: float = field(default=0.0, metadata={_MOST: 0.9})
    callback_delay_ms: float = field(default=0.0, metadata={_MOST: 1000})
    transport_delay_ms: float = field(default=0.0, metadata={_MOST: 1000})
    failure_rate: float = field(default=0.0, metadata={_MOST: 1})
    cpu_steal: float = field(default=0.0, metadata={_MOST: 0.9})
    cpu_waste: float = field(default=0.0, metadata={_MOST: 10})
    leak_mb: float = field(default=0.0, metadata={_MOST: 100})

    def __post_init__(self) -> None:
        for each in fields(self):
            is_possible = 0 <= getattr(self, each.name) <= each.metadata[_MOST]
            require(is_possible, f"{each.name} of a fault must be between 0 and {each.metadata[_MOST]}")
        require(
            not (self.control_rate_hz and self.control_rate_drop),
            "control_rate_hz and control_rate_drop contradict each other",
            remedy="plant one of them",
        )

    def control_rate_of(self, nominal_hz: float) -> float:
        """Actual rate of the control loop, Hz."""
        return self.control_rate_hz or nominal_hz * (1 - self.control_rate_drop)


@dataclass(frozen=True, kw_only=True)
class StackSpec:
    """The stack under test.

    Attributes:
        kind: ``embedded`` (this project's nodes without ROS), ``ros2``, ``running`` (ROS 2 nodes that run already, in
            this environment's DDS domain), or ``auto``: ROS 2 if it is installed and sourced.
        control_rate_hz: nominal rate of the control loop, the reference of T3.
        planning_time_s: allowed to the planner for a goal.
        velocity_scaling, acceleration_scaling: fractions of the joint limits, 0 to 1.
        goals: YAML file with goal sets and, for an arm, the home position; empty for the Panda's.
        cpus: CPUs of its processes alone: a list (``"2-3"`` or ``[2, 3]``), ``"isolated"`` for the CPU that the kernel
            isolates, or a table by process (``{ move_group = 2, rest = 3 }``; without ``rest``, its other processes run
            on all of these). Stimulus, recorder, loads and pytest run on the others. Empty: all share all CPUs.
        topology: file of a topology (see ``ldos topology``), or the name of a built-in one. The stack is then its nodes
            of the embedded layer, and the stimulus is ``window``. Empty for an arm, or for ROS 2 nodes.
        stimulus: what makes the stack work in a trial.
        stimuli: details of each stimulus.
        faults: planted in the stack, as far as it supports them.
        ros2: settings for stacks of ROS 2 nodes only.
    """

    kind: StackKind = StackKind.AUTO
    control_rate_hz: float = 500.0
    planning_time_s: float = 5.0
    velocity_scaling: float = 0.5
    acceleration_scaling: float = 0.5
    goals: str = ""
    cpus: str = ""
    topology: str = ""
    stimulus: StimulusKind = StimulusKind.MOVE_GROUP
    stimuli: StimuliSpec = field(default_factory=StimuliSpec)
    faults: FaultSpec = field(default_factory=FaultSpec)
    ros2: Ros2Spec = field(default_factory=Ros2Spec)

    def __post_init__(self) -> None:
        if self.kind is StackKind.RUNNING:
            object.__setattr__(self, "ros2", replace(self.ros2, launch_file=RUNNING))
        self._require_stimulus()
        require(
            1 <= self.control_rate_hz <= _FASTEST_LOOP_HZ, f"control_rate_hz must be between 1 and {_FASTEST_LOOP_HZ}"
        )
        require(0 < self.planning_time_s <= 60, "planning_time_s must be between 0 and 60")
        for name in ("velocity_scaling", "acceleration_scaling"):
            require(0 < getattr(self, name) <= 1, f"{name} must be between 0 and 1")
        require(
            not self.cpus or _CPUS.fullmatch(self.cpus) is not None,
            f"cpus of the stack is {self.cpus!r}",
            remedy='write "2-3", [2, 3], "isolated", or { move_group = 2, rest = 3 }',
        )

    def _require_stimulus(self) -> None:
        require(
            not self.topology or self.stimulus is StimulusKind.WINDOW,
            f'a topology runs by itself, and stimulus is "{self.stimulus}"',
            remedy='set stimulus = "window" in [tool.ldos.stack]',
        )
        require(
            not self.topology or self.kind is not StackKind.ROS2,
            "a topology is a stack of the embedded layer",
            remedy='leave out kind = "ros2"; `ldos topology --layer ros2` measures it over rclcpp',
        )
        require(
            self.kind is not StackKind.RUNNING or self.stimulus in _OF_RUNNING,
            f'a running stack does not take stimulus "{self.stimulus}"',
            remedy=f"set stimulus in [tool.ldos.stack] to one of {', '.join(_OF_RUNNING)}",
        )
        needed = {key: getattr(self.driver, key) for key in self.driver.NEEDS}
        if self.driver.NEEDS_GOALS:
            needed["goals"] = self.goals
        for key, value in needed.items():
            table = "[tool.ldos.stack]" if key == "goals" else f"[tool.ldos.stimulus.{self.stimulus}]"
            require(bool(value), f'stimulus = "{self.stimulus}" needs {key}', remedy=f"set {key} in {table}")

    @property
    def moves_arm(self) -> bool:
        """True if the stimulus is goals for an arm."""
        return self.stimulus is StimulusKind.MOVE_GROUP

    @property
    def driver(self) -> StimulusSpec:
        """The settings of its stimulus, with the requirements and metrics of its kind."""
        return MoveGroupSpec() if self.moves_arm else getattr(self.stimuli, self.stimulus)


FIRST_SEED: Final = 1


@dataclass(frozen=True, kw_only=True)
class ScenarioSpec:
    """Named condition under which an arm is measured.

    Attributes:
        name: also the pytest marker that selects it.
        trials: number of measured trials.
        max_trials: limit up to which trials are added while the verdict is inconclusive; ``0`` adds none.
        warmup: number of trials dropped after each start of the stack, because a fresh stack is slower. The embedded
            arm plans without moving.
        success_rate: lowest expected rate; checked without a baseline.
        seeds: with `fixed`, trial ``i`` always plans with the same random numbers, so that
            equal versions plan equal paths.
        goals: name of the goal set of the trials.
        loads: loads during the trials, at most one of each kind.
        deadlines: expectations about causal paths; checked without a baseline.
        unavailable: action if a load cannot be applied on this machine: error, or skip the scenario.
    """

    name: str
    trials: int = 10
    max_trials: int = 0
    warmup: int = 1
    success_rate: float = 1.0
    seeds: SeedMode = SeedMode.FIXED
    goals: str = "reach"
    loads: tuple[LoadSpec, ...] = ()
    deadlines: tuple[DeadlineSpec, ...] = ()
    unavailable: WhenUnavailable = WhenUnavailable.ERROR
    stack: StackSpec = field(default_factory=StackSpec)

    def __post_init__(self) -> None:
        require(self.trials >= 1, f"{self.trials} trials measure nothing", remedy="ask for at least one")
        require(
            self.max_trials == 0 or self.max_trials >= self.trials,
            f"max_trials is {self.max_trials}, less than the {self.trials} trials that come first",
            remedy="raise it (--ldos-max-trials), or ask for fewer trials (--ldos-trials)",
        )
        require(self.warmup >= 0, f"there cannot be {self.warmup} warm-up trials")
        require(0 <= self.success_rate <= 1, "success_rate must be between 0 and 1")
        kinds = [load.KIND for load in self.loads]
        require(len(set(kinds)) == len(kinds), f"scenario '{self.name}' has a load twice: {', '.join(kinds)}")

    def load(self, kind: str) -> LoadSpec | None:
        return next((load for load in self.loads if kind == load.KIND), None)

    def seed(self, index: int) -> int | None:
        """The planner's seed of trial `index`, or ``None`` for a random one."""
        return FIRST_SEED + index if self.seeds is SeedMode.FIXED else None


_HIGHEST_RATE_HZ: Final = 10_000


@dataclass(frozen=True, kw_only=True)
class WatchSpec:
    """Selection of observers: a profiler that samples call stacks, and a count of system calls."""

    profile: bool = False
    profiler: ProfilerKind = ProfilerKind.AUTO
    rate_hz: int = DEFAULT_RATE_HZ
    syscalls: bool = False

    def __post_init__(self) -> None:
        require(
            1 <= self.rate_hz <= _HIGHEST_RATE_HZ,
            f"a profile's rate is {self.rate_hz} Hz",
            remedy=f"it must be between 1 and {_HIGHEST_RATE_HZ}",
        )

    @property
    def is_asked(self) -> bool:
        return self.profile or self.syscalls
