"""Metrics, their input (one trial and the model of its trace), their measurements, and sources in a trace.

MoveGroup's server publishes the feedback ``PLANNING`` twice, and ``MONITOR`` right before it sends the planned
trajectory to a controller, which then accepts a goal of ``FollowJointTrajectory``. ``MONITOR`` is therefore the last
feedback before the first status of a controller. No event contains the text of a feedback, the outcome or the plan.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, Final, Self

import numpy as np
import polars as pl

from pytest_ldos.base.errors import ConfigurationError, require, suggest
from pytest_ldos.base.ros2 import PathSpec, Phase
from pytest_ldos.base.series import Better, Invalid, Missing, Moments, Value
from pytest_ldos.base.text import UNITS
from pytest_ldos.host.process_resources import StackUse
from pytest_ldos.scenario.model import StackSpec
from pytest_ldos.trace.ctf.stats import describe_losses
from pytest_ldos.trace.execution import goals
from pytest_ldos.trace.execution.coverage import name_missing
from pytest_ldos.trace.execution.model import ExecutionModel, TimesNs, TrialSpan
from pytest_ldos.trace.execution.observed import OwnEvents
from pytest_ldos.trace.flow.graph import FlowGraph
from pytest_ldos.trace.flow.lineage import PathInstances, find_path


@dataclass(frozen=True)
class Source:
    """Origin of a number. Numbers from different sources are not compared.

    Attributes:
        name: short name for reports.
        caveat: difference between the number and the metric's definition; empty if there is none.
    """

    name: str
    caveat: str = ""

    @property
    def is_approximate(self) -> bool:
        return bool(self.caveat)


MARKERS: Final = Source("markers")
"""``ldos:phase``, ``ldos:plan``: phases as the goal client entered them."""

CONTROL_PROBE: Final = Source("control probe")
"""``ldos:control_cycle``."""

SIMULATOR_PROBE: Final = Source("simulator probe")
"""``ldos:sim_step``."""

STAMPS: Final = Source("stimulus' stamps")
"""Stamps, on the trace's clock, of a program that sends its own goals without markers."""

STIMULUS: Final = Source("stimulus' numbers")
"""Numbers that a stimulus program reports at the end of a trial."""

OWN: Final = frozenset({MARKERS, STAMPS, STIMULUS, CONTROL_PROBE, SIMULATOR_PROBE})
"""Sources in the metrics' definitions."""

FEEDBACK: Final = Source("feedback publications")
"""Feedback of the planner's action, without the transport to its client."""

FEEDBACK_AND_STATUS: Final = Source("feedback and status publications")
"""Feedback of the planner's action (begin) and its status (end), without the transport of either."""

STATUS: Final = Source("status publications", "begins when the goal was accepted, 1 to 4 ms after it was sent")
"""Status of the planner's action (begin and end)."""

PUBLICATIONS: Final = Source("publications")
"""Publications on a topic, of all its publishers."""

PASSAGES: Final = Source("passages")
"""Passages of messages along a path, or of goals through its phases."""

KERNEL_COUNTERS: Final = Source("kernel's counters")
"""Counters of the kernel for each process or thread, read before and after a trial."""

PEAK_MEMORY: Final = Source("peak of memory")
"""Peak resident memory without file pages and shared memory, reset before each trial."""

MEMORY_AT_ENDS: Final = Source("memory before and after", "a peak within the trial is not seen")
"""Resident memory if the kernel's peak cannot be reset."""

MESSAGES: Final = Source("messages")
"""Numbers in the messages of a topic, by a subscription."""

OWN_TRACEPOINTS: Final = Source("own tracepoints")
"""Events of the project's own tracepoints."""

CALLS: Final = Source("recorded calls")
"""Calls of functions by LTTng's wrappers, page faults and waits by perf, in control cycles or runs of a callback."""

CONTROLLER_MANAGER: Final = Source("controller manager")
"""Statistics of each loop from ros2_control's controller manager."""

MANAGERS_RATES: Final = Source("controller manager's rates", "a single long gap counts for less than it lasts")
"""Spread of the periods, derived from its spread of the rates."""

DECLARED: Final = frozenset(
    {PUBLICATIONS, PASSAGES, KERNEL_COUNTERS, PEAK_MEMORY, CONTROLLER_MANAGER, OWN_TRACEPOINTS, CALLS}
)
"""Sources in the definitions of metrics of paths, topics, processes, loops and own tracepoints."""

PART: Final = "of_"  # prefix of the name of a detail with a process's or state's part; the suffix is the unit
WITHOUT_END: Final = "begins_without_end"  # detail of a span: its begins in the trial that no end follows
WITHOUT_BEGIN: Final = "ends_without_begin"  # detail of a span: its ends in the trial that no begin precedes


def published_states(topic: str) -> Source:
    """Joint states as a substitute for control cycles."""
    return Source(f"{topic} publications", "when the publisher sent them, not when the control loop ran")


def published_clock(topic: str) -> Source:
    """The simulator's clock topic as a substitute for its steps."""
    return Source(f"{topic} publications", "when the clock was published, not when the simulator stepped")


PLANNED_DURATION: Final = "planned_duration_ms"  # covariate: duration of the planned trajectory
CPU_WORK: Final = "cpu_work_ms"  # covariate: duration of a fixed computation on the planner's CPU right before planning
PLANS_CPU_WORK: Final = "plans_cpu_work_ms"  # covariate: mean of this duration over all plans of a trial
# Covariate, part of T1 and T4: time for which other processes had the CPU of the runnable planner
WAITED_FOR_OTHERS: Final = "waited_for_strangers_ms"
PLANS_WAITED_FOR_OTHERS: Final = "plans_waited_for_strangers_ms"  # covariate: increase of T1mean due to such waits

PRIMARY_SHARE: Final = 0.18  # weight of a judged metric in the division of the false-alarm probability
SECONDARY_SHARE: Final = 0.02  # weight of a metric of which only large effects matter
USUAL_FLOOR: Final = 0.05  # smallest reported relative effect of most metrics on an uncalibrated host
OWN_SHARES: Final = 0.04  # weight of all user metrics together; the k-th receives ``6 / (π k)²`` of it
DECLARED_SHARE: Final = PRIMARY_SHARE / 3  # weight of a declared metric of a path, a topic or a process
COVARIATES: Final = (PLANNED_DURATION, CPU_WORK, PLANS_CPU_WORK, WAITED_FOR_OTHERS, PLANS_WAITED_FOR_OTHERS)


@dataclass(frozen=True)
class Measurement:
    """Value of a metric in one trial.

    Attributes:
        details: further numbers of the same window, by name with a unit suffix
            (``p99_ms``, ``misses``); displayed, not gated.
        source: origin of the number; ``None`` without one.
    """

    value: Value
    details: Mapping[str, float] = field(default_factory=dict)
    source: Source | None = None

    @property
    def number(self) -> float | None:
        """The value if it is usable, else ``None``."""
        return None if isinstance(self.value, Missing | Invalid) else self.value


Window = tuple[int, int]
"""First and last time of a measurement's window, nanoseconds since the epoch."""


@dataclass(frozen=True, kw_only=True)
class Interfaces:
    """Names that identify goals and loops in a trace without markers and probes.

    Attributes:
        action: MoveGroup's.
        joint_states, clock: topics.
    """

    action: str = "/move_action"
    joint_states: str = "/joint_states"
    clock: str = "/clock"

    def __post_init__(self) -> None:
        for name in (self.action, self.joint_states, self.clock):
            if not name.startswith("/"):
                raise ConfigurationError(f"{name!r} is no full name", remedy=f"write it as in the trace: '/{name}'")

    @classmethod
    def of(cls, stack: StackSpec) -> Self:
        return cls(action=stack.ros2.action, joint_states=stack.ros2.joint_states)


USUAL: Final = Interfaces()


@dataclass(frozen=True, kw_only=True)
class Metric:
    """Description of a quantity that is measured in each trial and gated.

    Attributes:
        name: identifier under which measurements and floors are stored.
        unit: one of `UNITS`.
        better: direction of improvement.
        censored_by_failure: True if a failed trial counts as infinitely slow, for latencies that
            a failure cuts short. False for regularity, of which a failed trial only has a
            shorter record.
        adjust_for: covariates (`COVARIATES`) whose effect the gate removes.
        adjust_where_alike: covariates whose effect it removes only if both versions have similar values:
            a difference between versions is a real effect.
        error_share: weight in the division of the false-alarm probability among a scenario's metrics.
        largest_tolerable_mde: largest acceptable minimum detectable effect (relative); above it, the
            metric is not judged, or `inconclusive` if it is required.
        usual_floor: default for the smallest relative effect that is reported.
        score_weight: weight in the overall score, which is displayed but not gated; 0 leaves it out.
        asked_as: its text in the setting `metrics` (``cpu:move_group``); empty for others.

    Raises:
        ConfigurationError: a name that is no identifier, an unknown unit, direction or covariate, a title
            that is no single line, a number that makes no sense.
    """

    name: str
    title: str
    unit: str
    better: Better
    censored_by_failure: bool = False
    adjust_for: tuple[str, ...] = ()
    adjust_where_alike: tuple[str, ...] = ()
    error_share: float = 0.0
    largest_tolerable_mde: float = 1.0
    usual_floor: float = USUAL_FLOOR
    score_weight: float = 0.0
    asked_as: str = ""

    def __post_init__(self) -> None:
        _require_text(self.name, "the name of a metric")
        require(
            self.name.isascii() and self.name.isidentifier(),
            f"{self.name!r} cannot name a metric",
            remedy="use letters, digits and _, and a letter first",
        )
        _require_text(self.title, f"the title of metric '{self.name}'")
        require(self.title.isprintable(), f"the title of metric '{self.name}' is no single line: {self.title!r}")
        self._require_one_of("unit", self.unit, UNITS)
        self._require_one_of("better", self.better, tuple(Better))
        object.__setattr__(self, "better", Better(self.better))  # accepts 'lower'
        require(
            not (self.censored_by_failure and self.better is Better.HIGHER),
            f"metric '{self.name}' is better when higher, and a failed trial would count as infinitely high",
            remedy="leave out censored_by_failure, and give what a failed trial is worth",
        )
        for covariate in (*self.adjust_for, *self.adjust_where_alike):
            self._require_one_of("covariate", covariate, COVARIATES)
        self._require_number("largest_tolerable_mde", above_zero=True)
        self._require_number("usual_floor", above_zero=True)
        self._require_number("score_weight", above_zero=False)
        self._require_number("error_share", above_zero=False)

    def _require_one_of(self, what: str, value: Any, known: tuple[str, ...]) -> None:
        if not isinstance(value, str) or value not in known:
            message = f"metric '{self.name}' has an unknown {what}: {value!r}"
            raise ConfigurationError(message, remedy=suggest(str(value), known))

    def _require_number(self, what: str, *, above_zero: bool) -> None:
        value = getattr(self, what)
        is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        good = is_number and (value > 0 if above_zero else value >= 0)
        wanted = "a number above 0" if above_zero else "0 or more"
        require(good, f"{what} of metric '{self.name}' is {value!r}", remedy=f"it must be {wanted}")

    @property
    def description(self) -> Metric:
        """The part of the metric that a record keeps."""
        return Metric(**{each.name: getattr(self, each.name) for each in fields(Metric)})


def _require_text(value: object, what: str) -> None:
    require(isinstance(value, str) and bool(value), f"{what} is {value!r}", remedy="it must be a text")


CONTROLLER_STATUS: Final = f"/follow_joint_trajectory{goals.STATUS}"


def find_unmarked(model: ExecutionModel, action: str) -> Mapping[str, TrialSpan]:
    """Goals of an action under generated names (``/move_action 1``), ordered by begin."""
    topics = [topic for topic in model.topics() if topic.endswith(CONTROLLER_STATUS)]
    statuses = [np.empty(0, np.int64), *(model.publication_times_ns(topic) for topic in topics)]
    controllers = np.sort(np.concatenate(statuses))
    spans = {}
    for index, goal in enumerate(goals.find_action_goals(model, action)):
        times_ns = {Phase.RESULT: goal.result_ns}
        if goal.accepted_ns is not None:
            times_ns |= {Phase.GOAL_ACCEPTED: goal.accepted_ns, Phase.PLANNING: goal.feedback_ns[0]}
            times_ns |= {Phase.EXECUTING: _began_execution(goal, controllers)}
        goal_id = f"{action} {index + 1}"
        spans[goal_id] = TrialSpan(
            goal_id=goal_id,
            scenario="",
            index=index,
            begin_ns=goal.begin_ns,
            phases={phase: time_ns for phase, time_ns in times_ns.items() if time_ns is not None},
            plan=None,
            end_ns=goal.result_ns,
            error_code=None,
            marked=False,
        )
    return spans


def _began_execution(goal: goals.ActionGoal, controllers: TimesNs) -> int | None:
    """The last feedback before a controller's first status within the goal; the first feedback is not ``MONITOR``."""
    last_ns = np.iinfo(np.int64).max if goal.result_ns is None else goal.result_ns
    within = controllers[(controllers > goal.feedback_ns[0]) & (controllers < last_ns)]
    before: Sequence[int] = [at for at in goal.feedback_ns[1:] if len(within) and at < within[0]]
    return before[-1] if before else None


class TraceFlow:
    """Own events of a trace, if they were read, and its flow graph, built on first use, with the paths found in it."""

    def __init__(self, build: Callable[[], FlowGraph], own: OwnEvents | None = None) -> None:
        self._build, self.own = build, own
        self._found: dict[PathSpec, PathInstances] = {}

    @cached_property
    def graph(self) -> FlowGraph:
        return self._build()

    def find_path(self, path: PathSpec) -> PathInstances:
        if path not in self._found:
            self._found[path] = find_path(self.graph, path)
        return self._found[path]


@dataclass(frozen=True, kw_only=True)
class OutsideTrace:
    """Measurements of a trial outside its trace; ``None`` if not measured."""

    numbers: Mapping[str, float] = field(default_factory=dict)  # reported by the stimulus
    resources: StackUse | None = None
    loops: Mapping[str, Moments] | None = None  # statistics of the controller manager
    # by topic and field, numbers or the reason why there are none
    topics: Mapping[str, list[float] | str] = field(default_factory=dict)


NOTHING_OUTSIDE: Final = OutsideTrace()


@dataclass(frozen=True, kw_only=True)
class TrialContext:
    """One trial and its trace.

    Attributes:
        trial: its phases, plan and error code.
        model: execution model of the whole trace.
        nominal_period_ns: of the control loop.
        trace_flow: message flow and own events of the whole trace.
        outside: measurements of the trial outside its trace.
    """

    trial: TrialSpan
    model: ExecutionModel
    nominal_period_ns: int
    trace_flow: TraceFlow
    interfaces: Interfaces = USUAL
    outside: OutsideTrace = NOTHING_OUTSIDE

    @property
    def flow(self) -> FlowGraph:
        """Message-flow graph; built on first use, once for all trials."""
        return self.trace_flow.graph

    def passages(self, path: PathSpec, window: Window) -> pl.DataFrame:
        """Passages along a path that ended within a window.

        Columns: `begin_ns`, `end_ns`, `latency_ns` and the others of `PathInstances`.

        Raises:
            ConfigurationError: the search found too many partial passages.
        """
        return self.trace_flow.find_path(path).table.filter(pl.col("end_ns").is_between(*window))

    def not_seen(self, reason: str) -> Missing:
        """The reason why a metric has no value, with the events that the trace lacks."""
        without = name_missing(self.model)
        return Missing(f"{reason}, or the trace does not show it ({without})" if without else reason)

    def planning_window(self) -> Window | Missing:
        return self.between(Phase.PLANNING, Phase.EXECUTING)

    def execution_window(self) -> Window | Missing:
        return self.between(Phase.EXECUTING, Phase.RESULT)

    def trial_window(self) -> Window | Missing:
        return self.between(self.trial.first_phase, Phase.RESULT)

    def between(self, first: Phase, last: Phase) -> Window | Missing:
        """Span from one phase to a later one, or the reason why there is none."""
        phases = self.trial.phases
        missing = next((phase for phase in (first, last) if phase not in phases), None)
        if missing is None:
            return phases[first], phases[last]
        if not self.trial.marked and Phase.GOAL_ACCEPTED not in phases:
            return Missing("that the goal was accepted is not in the trace")
        if missing is Phase.EXECUTING and not self.trial.marked:
            topics = self.model.publishers["topic"].drop_nulls()
            if not any(topic.endswith(CONTROLLER_STATUS) for topic in topics):
                return Missing("no action of a controller is in the trace, which would tell when execution began")
        return Missing(f"the trial never entered phase '{missing}'")


@dataclass(frozen=True, kw_only=True)
class MeasuredMetric(Metric):
    """See `Metric`."""

    # time span of the measurement, or the reason why there is none
    window: Callable[[TrialContext], Window | Missing | Invalid]
    measure: Callable[[TrialContext, Window], Measurement]  # measures the value in that window
    definition: str = ""  # start and end of the span, or the statistic, as Markdown
    phases: tuple[Phase, Phase] | None = None  # first and last phase, if the goal client's stamps of these check it
    path: str = ""  # causal path whose latency it is; empty if it is none
    refines: str = ""  # name of the metric that it is a part or tail of; brief tables omit it
    stage: str = ""  # stage of a motion that it measures, for the search for the first failing stage; empty for none
    in_sweeps: bool = True  # True if sweep tables and progress lines show it

    def latency_ns(self, entered: Mapping[str, int] | Mapping[Phase, int]) -> int | None:
        """Returns the time between its phases, from the time of each phase; ``None`` if one is missing."""
        if self.phases is None or not entered.keys() >= set(self.phases):
            return None
        first, last = self.phases
        return entered[last] - entered[first]

    def take(self, context: TrialContext) -> Measurement:
        """Measures a trial; invalid if the trace lost events in the window."""
        window = self.window(context)
        if isinstance(window, Missing | Invalid):
            return Measurement(window)
        losses = describe_losses(context.model.stats.gaps_within(*window))
        if losses:
            return Measurement(Invalid(f"{losses} while it was measured"))
        return self.measure(context, window)


def require_action(model: ExecutionModel, interfaces: Interfaces, usual: Interfaces) -> None:
    """Raises `ConfigurationError` if no node in the trace serves an action other than the usual one."""
    served = [
        topic.removesuffix(goals.STATUS)
        for topic in model.publishers["topic"].drop_nulls()
        if topic.endswith(goals.STATUS)
    ]
    if interfaces.action not in {usual.action, *served}:
        there = f"served are: {', '.join(sorted(served))}" if served else "none is served in it"
        raise ConfigurationError(f"no action {interfaces.action} in the trace", remedy=there)
