"""A running stack with its recording, and the time of each phase of a run, also of earlier runs."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final, Protocol, TypeVar

from pytest_ldos.base.files import read_plain, write_atomically
from pytest_ldos.host.interference import InterferenceMeter
from pytest_ldos.measure.load.protocol import LoadSite
from pytest_ldos.measure.trial.artifacts import ScenarioFolder
from pytest_ldos.record.choose import choose_recorder
from pytest_ldos.record.protocol import Recorder
from pytest_ldos.robot.stack.choose import choose_backend
from pytest_ldos.robot.stack.protocol import OURS, Installation, RunningStack
from pytest_ldos.scenario.model import StackSpec

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
) -> Iterator[Rig]:
    """Starts the recording, then the stack, because events during the start name the entities.

    Args:
        on_waiting: called periodically with the conditions that the stack still waits for.

    Raises:
        Unavailable: a requirement is not installed.
        RecordingFailed: the tracer failed.
        BringUpFailed: the stack did not become ready.
    """
    surroundings = InterferenceMeter()
    with ExitStack() as resources:
        recorder = choose_recorder(folder.trace, folder.logs, switches=True)
        resources.callback(recorder.stop)
        recorder.start()
        backend = choose_backend(spec, recorder=recorder, log_directory=folder.logs, installation=installation)
        resources.callback(backend.stop)
        yield Rig(backend.start(on_waiting=on_waiting), spec, recorder, folder, surroundings)


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
