"""A running stack with its recording, measurements of its trials, and durations of phases, also of earlier runs."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Final, Protocol, TypeVar

from pytest_ldos.base.errors import TraceUnreadable, require
from pytest_ldos.base.files import read_plain, write_atomically
from pytest_ldos.base.ros2 import PathSpec, Ros2
from pytest_ldos.base.series import Invalid, Missing, Moments
from pytest_ldos.host.cpu import Cpus, kept_off
from pytest_ldos.host.interference import InterferenceMeter
from pytest_ldos.host.process_resources import ResourceMeter
from pytest_ldos.measure.load.protocol import LoadSite
from pytest_ldos.measure.metrics.catalogue import METRICS, Catalogue
from pytest_ldos.measure.metrics.declared import (
    declared_in,
    refuse_absent,
    refuse_absent_nodes,
    refuse_unknown_loops,
    since,
)
from pytest_ldos.measure.metrics.evidence import pids_of
from pytest_ldos.measure.metrics.extract import PathSegments, extract_trial, find_trial, kept_deadlines, span_of_stamps
from pytest_ldos.measure.metrics.latency import T1, T1_MEAN, PlanningSplits
from pytest_ldos.measure.metrics.model import NOTHING_OUTSIDE, Interfaces, Measurement, OutsideTrace, TraceFlow
from pytest_ldos.measure.metrics.on_cpus import find_work
from pytest_ldos.measure.metrics.own_events import own_events, refuse_unknown_events
from pytest_ldos.measure.metrics.regularity import nominal_period_ns
from pytest_ldos.measure.trial.artifacts import ScenarioFolder
from pytest_ldos.measure.trial.record import MotionTrial
from pytest_ldos.record.choose import choose_recorder
from pytest_ldos.record.protocol import Recorder
from pytest_ldos.robot.stack.choose import choose_backend
from pytest_ldos.robot.stack.cpus import EVERYWHERE, Placement, find_placement
from pytest_ldos.robot.stack.goals import OutcomeClass
from pytest_ldos.robot.stack.protocol import OURS, Installation, RunningStack
from pytest_ldos.scenario.metrics import DeadlineSpec, MetricKind
from pytest_ldos.scenario.model import StackSpec
from pytest_ldos.trace.ctf.read import DecodedTrace, read_trace
from pytest_ldos.trace.execution.build import NEEDED_EVENTS, build_execution
from pytest_ldos.trace.execution.observed import OwnEvents
from pytest_ldos.trace.execution.scheduling import SCHEDULING_EVENTS, build_thread_states
from pytest_ldos.trace.flow.build import build_flow

_Stack = TypeVar("_Stack")


class RunPhase(StrEnum):
    STARTING = "starting"  # tracer, processes, discovery, readiness
    WARM_UP = "warm-up"
    LOADS = "applying loads"
    TRIALS = "trials"  # and writing the record after each
    HOMING = "homing"
    READING = "reading the trace"  # flushing the tracer, decoding, measuring
    STOPPING = "stopping"


@dataclass(frozen=True)
class Spent:
    """Time spent in a phase that began so many times."""

    times: int = 0
    seconds: float = 0.0

    def __add__(self, other: Spent) -> Spent:
        return Spent(self.times + other.times, self.seconds + other.seconds)

    def __sub__(self, other: Spent) -> Spent:
        return Spent(self.times - other.times, self.seconds - other.seconds)


Durations = Mapping[RunPhase, Spent]  # time spent in each phase; phases that never began are left out


@dataclass
class PhaseClock:
    """Sums the time of each phase; stops between phases."""

    now_s: Callable[[], float] = time.monotonic
    durations: dict[RunPhase, Spent] = field(default_factory=dict)
    _phase: RunPhase | None = None
    _began_s: float = 0.0

    def enter(self, phase: RunPhase | None) -> None:
        """Ends the current phase and begins another one, or none."""
        now_s = self.now_s()
        if self._phase is not None:
            self.durations[self._phase] += Spent(0, now_s - self._began_s)
        self._phase, self._began_s = phase, now_s
        if phase is not None:
            self.durations[phase] = self.durations.get(phase, Spent()) + Spent(1)


@contextmanager
def clocked(stack: AbstractContextManager[_Stack], clock: PhaseClock) -> Iterator[_Stack]:
    """Times the start and the end of a stack."""
    clock.enter(RunPhase.STARTING)
    try:
        with stack as running:
            clock.enter(None)
            try:
                yield running
            finally:
                clock.enter(RunPhase.STOPPING)
    finally:
        clock.enter(None)


def describe_durations(durations: Durations, whole_s: float) -> str:
    """Seconds of each phase, in the order of a run: ``starting 4.5 s, warm-up 1.7 s, …, other 0.3 s``."""
    rest_s = whole_s - sum(spent.seconds for spent in durations.values())
    parts = [(str(phase), durations[phase].seconds) for phase in RunPhase if phase in durations]
    return ", ".join(f"{name} {seconds:.1f} s" for name, seconds in (*parts, ("other", rest_s)))


DURATIONS_FILE: Final = "durations.json"


def write_durations(folder: ScenarioFolder, durations: Durations, *, stack: str) -> None:
    """Writes the durations of a run to its record's folder; raises as `write_atomically`."""
    phases = {phase: {"times": spent.times, "seconds": round(spent.seconds, 3)} for phase, spent in durations.items()}
    write_atomically(folder.path / DURATIONS_FILE, json.dumps({"stack": stack, "phases": phases}, indent=1) + "\n")


def read_durations(file: Path) -> tuple[str, Durations]:
    """Stack and durations of a run; raises OSError, ValueError, LookupError or TypeError for other files."""
    document = json.loads(file.read_text("utf-8"))
    phases: Durations = read_plain(Mapping[RunPhase, Spent], document["phases"], "phases")
    return read_plain(str, document["stack"], "stack"), phases


@dataclass(frozen=True)
class Rig:
    """Stack, recorder and folder of trials; `surroundings` measures interference since the start of the recording."""

    stack: RunningStack
    spec: StackSpec
    recorder: Recorder
    folder: ScenarioFolder
    surroundings: InterferenceMeter = field(default_factory=InterferenceMeter)
    placement: Placement = EVERYWHERE
    other_cpus: Cpus = frozenset()  # of everything else, if any are left by the stack

    @property
    def site(self) -> LoadSite:
        return LoadSite(
            self.stack.domain,
            self.recorder,
            self.folder.logs,
            kind=self.stack.info.kind,
            has_simulated_clock=self.stack.info.has_simulated_clock,
            environment=self.stack.environment,
            pids=self.stack.pids,
            stack=self.spec,
        )


@contextmanager
def open_rig(
    spec: StackSpec,
    folder: ScenarioFolder,
    *,
    on_waiting: Callable[[str], None] | None = None,
    installation: Installation = OURS,
    events: Sequence[str] = (),
) -> Iterator[Rig]:
    """Starts the recording, then the stack, because events during the start name the entities.

    Args:
        on_waiting: called periodically with the conditions that the stack still waits for.
        events: patterns of events to record in addition to the usual ones.

    Raises:
        ConfigurationError: this machine has not the CPUs of the stack, or the stack not the processes named for them.
        Unavailable: a requirement is not installed.
        RecordingFailed: the tracer failed.
        BringUpFailed: the stack did not become ready.
    """
    surroundings = InterferenceMeter()
    with ExitStack() as resources:
        placement = find_placement(spec)
        others = resources.enter_context(kept_off(placement.whole))
        recorder = choose_recorder(
            folder.trace, folder.logs, switches=True, events=events, is_attached=spec.ros2.is_running
        )
        resources.callback(recorder.stop)
        recorder.start()
        backend = choose_backend(spec, recorder=recorder, log_directory=folder.logs, installation=installation)
        resources.callback(backend.stop)
        stack = backend.start(on_waiting=on_waiting)
        placement.confine(stack.processes())
        yield Rig(stack, spec, recorder, folder, surroundings, placement, others)


class Watch(Protocol):
    """Observes one version of a stack in all its starts, with other tools than the tracer.

    Attributes:
        tools: requested tools; after the trials, those that ran. Empty if there are none.
        distortion: reason why the trials' times are not comparable with others; empty if they are.
    """

    @property
    def tools(self) -> str: ...

    @property
    def distortion(self) -> str: ...

    def attached_to(self, rig: Rig) -> AbstractContextManager[None]:
        """Observes the trials in the ``with`` block. A failure to observe does not end the trials."""

    def read(self, rig: Rig, trials: int) -> None:
        """Reads the results; called while the recording is paused, after the given number of trials."""


RECEPTION: Final = "feedback reception"  # pseudo path of the client's own delays within T1 and T2


def measure_trials(
    trials: Sequence[MotionTrial],
    rig: Rig,
    paths: Sequence[PathSpec],
    *,
    catalogue: Catalogue = METRICS,
    deadlines: Sequence[DeadlineSpec] = (),
    own_pids: Collection[int] = (),
    scenario: str = "",
    outside: Mapping[str, OutsideTrace] | None = None,
) -> list[MotionTrial]:
    """Returns the trials with their measurements from the trace of a paused recording.

    If the trace cannot be read, every trial is invalid, with the reason.

    Args:
        paths: paths whose segments are kept with each trial; some have `deadlines`.
        own_pids: processes of the measurement; all others count as other processes.
        outside: measurements outside the trace, by goal id; the stimulus's numbers come from the trials.

    Raises:
        ConfigurationError: a path declares a link that the stack lacks.
    """
    own_names = own_events(declared_in(catalogue.values()))
    try:
        trace = read_trace(rig.recorder.directory, events=NEEDED_EVENTS | SCHEDULING_EVENTS | own_names)
        states = build_thread_states(trace)
    except TraceUnreadable as error:
        distrusted = dict.fromkeys(catalogue, Measurement(Invalid(str(error))))
        return [replace(trial, measurements=distrusted) for trial in trials]
    model = build_execution(trace, pids=rig.stack.pids())
    flow = build_flow(model, paths)
    trace_flow = TraceFlow(lambda: flow, OwnEvents(trace, own_names, states=states))
    segments = PathSegments(flow, paths, thread_states=states if len(states) else None)
    splits = PlanningSplits(trace, states, own_pids)
    find_placed = find_work(trace, states, rig.placement.by_pid(rig.stack.all_processes()))
    interfaces = Interfaces.of(rig.spec)
    offset_ns = trace.traces[0].clock_offset_ns if trace.traces else 0
    period_ns = nominal_period_ns(rig.spec.control_rate_hz)
    measured = []
    for trial in trials:
        stamps_ns = trial.stamps_ns
        if rig.spec.moves_arm:
            span = find_trial(
                trial.goal_id, model, stamps_ns=stamps_ns, clock_offset_ns=offset_ns, interfaces=interfaces
            )
        else:
            span = model.trials.get(trial.goal_id) or span_of_stamps(
                trial.goal_id, scenario=scenario, index=trial.index, stamps_ns=stamps_ns, clock_offset_ns=offset_ns
            )
        if span is None and trial.outcome is OutcomeClass.STACK_DIED:
            unknown = Measurement(Missing("the stack died before the goal was sent"))
            measured.append(replace(trial, measurements=dict.fromkeys(catalogue, unknown)))
            continue
        found = extract_trial(
            span,
            model,
            stamps_ns=stamps_ns,
            nominal_period_ns=period_ns,
            interfaces=interfaces,
            catalogue=catalogue,
            trace_flow=trace_flow,
            outside=replace((outside or {}).get(trial.goal_id, NOTHING_OUTSIDE), numbers=trial.numbers),
        )
        segments_ns = {} if found.trial is None else segments.of(found.trial)
        kept = {} if found.trial is None else kept_deadlines(found.trial, deadlines, paths, trace_flow)
        parts = {T1.name: splits.of(found.trial), T1_MEAN.name: splits.of_plans(found.trial)}
        made = replace(
            trial,
            measurements=_with_parts(found.measurements, parts),
            segments_ns={**segments_ns, RECEPTION: found.reception_ns} if found.reception_ns else segments_ns,
            deadlines=kept,
            cpu_work_ns=found.cpu_work_ns,
            placed=None if found.trial is None else find_placed(found.trial),
        )
        measured.append(made)
    return measured


def _with_parts(
    measurements: Mapping[str, Measurement], parts: Mapping[str, Mapping[str, float]]
) -> Mapping[str, Measurement]:
    """Adds parts of metrics, by name, to the details of their measurements."""
    return {
        name: replace(found, details={**found.details, **parts[name]})
        if name in parts and found.number is not None
        else found
        for name, found in measurements.items()
    }


class OutsideMeter:
    """Measures trials outside the trace, as far as the catalogue's metrics need it; `found` is by goal id."""

    def __init__(self, rig: Rig, catalogue: Catalogue) -> None:
        self._rig = rig
        asked = declared_in(catalogue.values())
        self._of_processes = [spec for spec in asked if spec.process]
        self._of_loops = [spec for spec in asked if spec.kind.is_of_loop]
        self._topics = sorted({spec.subject for spec in asked if spec.kind is MetricKind.TOPIC})
        self._of_places = [spec for spec in asked if spec.place]
        self._of_events = [spec for spec in asked if spec.events and not spec.place]
        self.found: dict[str, OutsideTrace] = {}

    def begin(self, *, is_under_test: bool) -> None:
        """Prepares for trials of the warm stack.

        Raises `ConfigurationError` if a stack under test, not a base, lacks a metric's process, node, loop or event,
        and lists those that it has. Raises `Unavailable` or `BringUpFailed` if the controller manager does not answer.
        """
        loops, topics = self._loops() or {}, self._numbers()
        if self._of_places:  # what they do is recorded from now on, when the stack is warm
            model = build_execution(self._read_so_far(NEEDED_EVENTS), pids=self._rig.stack.pids())
            self._rig.recorder.follow(pids_of(self._of_places, model, is_required=is_under_test))
        if not is_under_test:
            return
        refuse_unknown_loops(self._of_loops, loops)
        for subject, found in topics.items():
            reason = f"metric 'topic:{subject}': {found}"
            require(not isinstance(found, str), reason, remedy="correct it in [tool.ldos] metrics")
        if self._of_processes:
            refuse_absent(self._of_processes, list(self._rig.stack.processes().values()))
        if any(spec.node for spec in self._of_processes):
            model = build_execution(self._read_so_far({Ros2.NODE_INIT}), pids=self._rig.stack.pids())
            refuse_absent_nodes(self._of_processes, sorted(set(model.nodes["name"].drop_nulls())))
        if names := own_events(self._of_events):
            refuse_unknown_events(self._of_events, OwnEvents(self._read_so_far(names), names))

    def _read_so_far(self, events: Collection[str]) -> DecodedTrace:
        """The trace of the start; raises `TraceUnreadable`."""
        self._rig.recorder.pause()
        try:
            return read_trace(self._rig.recorder.directory, events=events)
        finally:
            self._rig.recorder.resume()

    @contextmanager
    def measured(self, goal_id: str) -> Iterator[None]:
        stack = self._rig.stack
        before, _ = self._loops(), self._numbers()
        meter = ResourceMeter(stack.processes, stack.all_processes) if self._of_processes else None
        with meter or nullcontext():
            yield
            used = None if meter is None else meter.measure()
        topics = self._numbers()
        loops = None if before is None else since(self._loops() or {}, before)
        self.found[goal_id] = OutsideTrace(resources=used, loops=loops, topics=topics)

    def _loops(self) -> Mapping[str, Moments] | None:
        """Statistics of the control loops so far; ``None`` if no metric needs them."""
        return self._rig.stack.loop_statistics() if self._of_loops else None

    def _numbers(self) -> Mapping[str, list[float] | str]:
        return self._rig.stack.topic_numbers(self._topics) if self._topics else {}
