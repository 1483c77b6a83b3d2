"""A stack and a recorder that need no time: motions are made up, and so is their trace.

The trace is a real CTF trace that the real decoder reads.
"""

from __future__ import annotations

import hashlib
import os
import random
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from unittest import mock

from pytest_ldos.base.ros2 import Phase
from pytest_ldos.base.series import Moments
from pytest_ldos.host.cpu import kept_off
from pytest_ldos.host.interference import Interference, InterferenceMeter
from pytest_ldos.measure.trial.artifacts import ScenarioFolder
from pytest_ldos.measure.trial.rig import Rig
from pytest_ldos.record.protocol import RecordingReport
from pytest_ldos.robot.stack.cpus import find_placement
from pytest_ldos.robot.stack.goals import PANDA_GOALS, ErrorCode, Goal, GoalBook, OutcomeClass, classify
from pytest_ldos.robot.stack.lines import MotionOutcome, TrialTag
from pytest_ldos.robot.stack.protocol import OURS, Installation, StackInfo
from pytest_ldos.robot.stack.senders import ArmStimulus
from pytest_ldos.scenario.model import StackSpec
from tests.builders.ctf import Event, Int, Packet, Record, Text, TraceBuilder

MS = 1_000_000
EPOCH_NS = 1_700_000_000_000_000_000
PID = 2**22 - 1
"""The last one that Linux gives: of no process on a machine that has not given four million."""

BEGIN = Event("ldos:trial_begin", 1, {"_goal_id": Text(), "_scenario": Text(), "_index": Int(32)})
PHASE = Event("ldos:phase", 2, {"_goal_id": Text(), "_phase": Text()})
PLAN = Event("ldos:plan", 3, {"_goal_id": Text(), "_duration_ns": Int(64, signed=True), "_points": Int(32)})
END = Event("ldos:trial_end", 4, {"_goal_id": Text(), "_error_code": Int(32, signed=True)})
CYCLE = Event(
    "ldos:control_cycle",
    5,
    {"_cycle": Int(64), "_sim_time_ns": Int(64, signed=True), "_period_ns": Int(64, signed=True)},
)
STEP = Event("ldos:sim_step", 6, {"_step": Int(64), "_sim_time_ns": Int(64, signed=True)})
SPEED = Event("ldos:cpu_speed", 7, {"_work_ns": Int(64, signed=True)})
SOLVE = Event("arm:solve", 8, {})
SOLVED = Event("arm:solved", 9, {"_cost": Int(32)})
CONTEXT = {"_vpid": Int(32, signed=True), "_vtid": Int(32, signed=True)}


@dataclass(frozen=True)
class Motion:
    """Course of one simulated motion.

    Attributes:
        settle_ms: from the end of the plan to the result (T2x).
        jitter_ms: by which every second control cycle and simulator step is late.
        stamp_shift_ms: by which the client's result stamp is wrong.
        is_sent: false if the stack dies before the goal is sent.
        solve_ms: duration of each of five spans between own tracepoints; 0 for a stack without them.
    """

    planning_ms: float = 12.0
    planned_ms: float = 60.0
    settle_ms: float = 20.0
    jitter_ms: float = 0.1
    error_code: int | None = ErrorCode.SUCCESS
    message: str = ""
    stamp_shift_ms: float = 0.0
    is_sent: bool = True
    solve_ms: float = 0.0


Script = Callable[[int], Motion]
"""The motion of a trial by its index."""


def noisy(
    seed: int,
    *,
    planning: float = 1.0,
    settle: float = 1.0,
    jitter: float = 1.0,
    spread: float = 0.05,
    solve_ms: float = 0.0,
) -> Script:
    """Motions with noise of a few per cent; factors make them slower or less regular."""

    def motion(index: int) -> Motion:
        rng = random.Random(f"{seed}-{index}")

        def vary(value: float) -> float:
            return value * rng.lognormvariate(0, spread)

        usual = Motion(vary(12.0 * planning), 60.0, vary(20.0 * settle), vary(0.1 * jitter))
        return replace(usual, solve_ms=vary(solve_ms)) if solve_ms else usual

    motion.version = f"{planning}-{settle}-{jitter}-{solve_ms}"  # type: ignore[attr-defined]
    return motion


def version_of(script: Script) -> str:
    """Digest of the sources of a fake stack."""
    code = getattr(script, "__code__", None)
    source = (code.co_code.hex(), repr(code.co_consts)) if code else repr(script)
    return str(getattr(script, "version", None) or hashlib.sha256(repr(source).encode()).hexdigest()[:8])


TYPICAL = noisy(1)


class FakeRecorder:
    """See `Recorder`. Writes what it was given when it is paused."""

    name = "fake tracer 1.0"
    prefix: Sequence[str] = ()
    environment: Mapping[str, str] = {}
    open_environment: Mapping[str, str] = {}
    processes: Mapping[int, str] = {}

    def __init__(self, directory: Path, *, discarded: int = 0, cpu: int = 0) -> None:
        self.directory = directory
        self.cpu = cpu  # on which all events occur
        self.discarded = discarded
        self.records: list[Record] = []
        self.is_recording = False

    def emit(self, event: Event, time_ns: int, **values: object) -> None:
        record = Record(
            event, time_ns, {f"_{name}": value for name, value in values.items()}, {"_vpid": PID, "_vtid": PID}
        )
        self.records.append(record)

    def start(self) -> None:
        self.is_recording = True

    def pause(self) -> RecordingReport:
        own = [SOLVE, SOLVED] if any(record.event is SOLVE for record in self.records) else []
        events = [BEGIN, PHASE, PLAN, END, CYCLE, STEP, SPEED, *own]
        builder = TraceBuilder(events, context=CONTEXT, clock_offset=EPOCH_NS)
        records = sorted(self.records, key=lambda record: record.time)
        builder.write(self.directory, {"ch_0": [Packet(records, discarded=self.discarded, cpu=self.cpu)]})
        return RecordingReport(self.discarded, 0)

    def follow(self, pids: Collection[int]) -> None: ...

    def resume(self) -> None: ...

    def rotate(self) -> Path:
        self.pause()
        return self.directory

    def stop(self) -> None:
        self.is_recording = False


@dataclass
class FakeStack:
    """See `RunningStack`. Trials follow the script; other motions succeed at once.

    Attributes:
        ways_home: outcomes of the first ways home.
    """

    recorder: FakeRecorder
    script: Script
    domain: int = 7
    now_ns: int = 1_000 * MS
    environment: Mapping[str, str] = field(default_factory=dict)
    goals: list[str] = field(default_factory=list)
    ways_home: list[OutcomeClass] = field(default_factory=list)
    goal_book: GoalBook = PANDA_GOALS
    is_repeatable: bool = True
    warms_up_by_planning: bool = False
    seeds: list[int | None] = field(default_factory=list)
    motion_s: float = 0.0
    can_plan_only: bool = True
    settled_after: list[int] = field(default_factory=list)
    plan_requests: int = 0
    planning_ns: int = MS
    info: StackInfo = field(default_factory=lambda: StackInfo("embedded", "fake stack", "fakedds", {"fake": "1.0"}))

    @property
    def stimulus(self) -> ArmStimulus:
        return ArmStimulus(self)

    def pids(self) -> list[int]:
        return [PID]

    def processes(self) -> Mapping[int, str]:
        """This process, which is no robot, but can be measured."""
        return {os.getpid(): "planner"}

    def all_processes(self) -> Mapping[int, str]:
        """Those, and the process that wrote the events and has ended."""
        return {os.getpid(): "planner", PID: "planner"}

    def loop_statistics(self) -> Mapping[str, Moments]:
        return {}

    def topic_numbers(self, subjects: Sequence[str]) -> Mapping[str, list[float] | str]:
        return dict.fromkeys(subjects, "messages are read on stacks of ROS 2 only")

    def settle(self) -> None:
        self.settled_after.append(len(self.goals))

    def move(
        self,
        goal: Goal,
        *,
        goal_id: str,
        seed: int | None,
        trial: TrialTag | None,
        start: Mapping[str, float] | None = None,
        plan_only: bool = False,
    ) -> MotionOutcome:
        if plan_only:
            return self._plan_only(goal_id)
        self.goals.append(goal.name)
        self.seeds.append(seed)
        time.sleep(self.motion_s)
        if trial is None:
            outcome = self.ways_home.pop(0) if goal.name == "home" and self.ways_home else OutcomeClass.SUCCESS
            message = "" if outcome is OutcomeClass.SUCCESS else "it stood still"
            return MotionOutcome(goal_id=goal_id, outcome=outcome, error_code=None, message=message, stamps_ns={})
        return self._trial(goal_id, trial, self.script(trial.index))

    def _plan_only(self, goal_id: str) -> MotionOutcome:
        """Plans as long as the last trial did, on a CPU that is as fast."""
        self.plan_requests += 1
        times = {
            Phase.GOAL_SENT: self.now_ns,
            Phase.PLANNING: self.now_ns + MS,
            Phase.RESULT: self.now_ns + MS + self.planning_ns,
        }
        for phase, time_ns in times.items():
            self.recorder.emit(PHASE, time_ns, goal_id=goal_id, phase=phase.value)
        self.recorder.emit(PLAN, times[Phase.RESULT] + 1000, goal_id=goal_id, duration_ns=MS, points=10)
        self.now_ns = times[Phase.RESULT] + MS
        return MotionOutcome(
            goal_id=goal_id, outcome=OutcomeClass.SUCCESS, error_code=ErrorCode.SUCCESS, message="", stamps_ns={}
        )

    def _trial(self, goal_id: str, trial: TrialTag, motion: Motion) -> MotionOutcome:
        times = self._times(motion)
        if not motion.is_sent:
            return MotionOutcome(goal_id=goal_id, outcome=OutcomeClass.STACK_DIED, message=motion.message)
        self.recorder.emit(BEGIN, self.now_ns, goal_id=goal_id, scenario=trial.scenario, index=trial.index)
        for phase, time_ns in times.items():
            self.recorder.emit(PHASE, time_ns, goal_id=goal_id, phase=phase.value)
        self._loops(motion, self.now_ns, max(times.values()) + 5 * MS)
        executed = Phase.EXECUTING in times
        if motion.solve_ms:
            self._solve(motion, times[Phase.GOAL_SENT] + MS)
        if executed:
            self.planning_ns = times[Phase.EXECUTING] - times[Phase.PLANNING]
        planned_ns = round(motion.planned_ms * MS) if executed else None
        if motion.error_code is None:
            return MotionOutcome(
                goal_id=goal_id, outcome=OutcomeClass.STACK_DIED, error_code=None, message=motion.message, stamps_ns={}
            )
        if planned_ns is not None:
            self.recorder.emit(PLAN, times[Phase.RESULT] + 1000, goal_id=goal_id, duration_ns=planned_ns, points=10)
        self.recorder.emit(END, times[Phase.RESULT] + 2000, goal_id=goal_id, error_code=motion.error_code)
        stamps = {phase.value: time_ns for phase, time_ns in times.items()}
        stamps[Phase.RESULT] += round(motion.stamp_shift_ms * MS)
        self.now_ns = times[Phase.RESULT] + 10 * MS
        return MotionOutcome(
            goal_id=goal_id,
            outcome=classify(motion.error_code, executed=executed),
            error_code=motion.error_code,
            message=motion.message,
            stamps_ns=stamps,
            plan_duration_ns=planned_ns,
            plan_points=10 if executed else 0,
            position_error_m=0.001,
            rotation_error_rad=0.001,
        )

    def _solve(self, motion: Motion, from_ns: int) -> None:
        """Five spans, and the begin of another one without an end."""
        length_ns = round(motion.solve_ms * MS)
        for number in range(5):
            begin_ns = from_ns + number * (length_ns + MS)
            self.recorder.emit(SOLVE, begin_ns)
            self.recorder.emit(SOLVED, begin_ns + length_ns, cost=10 + number)
        self.recorder.emit(SOLVE, from_ns + 5 * (length_ns + MS))

    def _times(self, motion: Motion) -> dict[Phase, int]:
        sent = self.now_ns + 1 * MS
        times = {Phase.GOAL_SENT: sent, Phase.GOAL_ACCEPTED: sent + MS, Phase.PLANNING: sent + 2 * MS}
        planned = sent + 2 * MS + round(motion.planning_ms * MS)
        if motion.error_code in {ErrorCode.NO_IK_SOLUTION, ErrorCode.PLANNING_FAILED}:
            times[Phase.RESULT] = planned
            return times
        times[Phase.EXECUTING] = planned
        if motion.error_code is not None:
            times[Phase.RESULT] = planned + round((motion.planned_ms + motion.settle_ms) * MS)
        return times

    def _loops(self, motion: Motion, from_ns: int, to_ns: int) -> None:
        late = round(motion.jitter_ms * MS)
        for number, time_ns in enumerate(range(from_ns, to_ns, MS)):
            shift = late if number % 2 else 0
            self.recorder.emit(STEP, time_ns + shift, step=number, sim_time_ns=number * MS)
        for number, time_ns in enumerate(range(from_ns, to_ns, 2 * MS)):
            shift = late if number % 2 else 0
            self.recorder.emit(CYCLE, time_ns + shift, cycle=number, sim_time_ns=2 * number * MS, period_ns=2 * MS)


class Undisturbed(InterferenceMeter):
    """Reads no processes, which takes longer than these trials, and measures no time: no trial is disturbed."""

    def __init__(self) -> None:
        self.own_pids = {os.getpid()}

    def measure(self) -> Interference:
        return Interference(seconds=0.0, cpus=2, others_s=0.0)

    lap = measure


def undisturbed() -> AbstractContextManager[object]:
    """Trials have this meter, unless a test has chosen another one."""
    from pytest_ldos.measure.trial import conduct

    chosen = vars(conduct)["InterferenceMeter"]
    return mock.patch.object(conduct, "InterferenceMeter", Undisturbed if chosen is InterferenceMeter else chosen)


@contextmanager
def open_fake_rig(
    spec: StackSpec,
    folder: ScenarioFolder,
    *,
    on_waiting: Callable[[str], None] | None = None,
    installation: Installation = OURS,
    events: Sequence[str] = (),
    script: Script = TYPICAL,
    base: Script | None = None,
    discarded: int = 0,
    motion_s: float = 0.0,
    is_disturbed: bool = False,
) -> Iterator[Rig]:
    """Another installation than ours follows the script `base`, if there is one; motions last for `motion_s`.

    Other processes disturb it only if motions last, or if it `is_disturbed`.
    """
    placement = find_placement(spec)
    with kept_off(placement.whole) as others:
        recorder = FakeRecorder(folder.trace, discarded=discarded, cpu=min(placement.whole, default=0))
        recorder.start()
        chosen = script if base is None or installation.is_ours else base
        stack = FakeStack(recorder, chosen, motion_s=motion_s)
        stack.info = replace(stack.info, versions={"fake": version_of(chosen)})
        try:
            if motion_s or is_disturbed:
                yield Rig(stack, spec, recorder, folder, placement=placement, other_cpus=others)
                return
            with undisturbed():
                yield Rig(stack, spec, recorder, folder, Undisturbed(), placement, others)
        finally:
            recorder.stop()


def install(script: Script = TYPICAL, *, base: Script | None = None, discarded: int = 0, motion_s: float = 0.0) -> None:
    """Makes the plugin of this process use fakes; for conftest files of inner test runs.

    Without `motion_s`, trials take no time, in which others of a busy machine take nothing from them.
    """
    import functools

    from pytest_ldos.host import interference
    from pytest_ldos.measure.trial import rig

    if not motion_s:
        vars(interference)["InterferenceMeter"] = Undisturbed
    rig.open_rig = functools.partial(open_fake_rig, script=script, base=base, discarded=discarded, motion_s=motion_s)
