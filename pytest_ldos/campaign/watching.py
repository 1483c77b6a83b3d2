"""Watches processes during a measurement and keeps the results: samples, system calls, context switches.

Anything that cannot be watched is noted with its reason and its remedy; the measurement goes on.
"""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pytest_ldos.base.errors import LdosError, ProfilingFailed, TraceUnreadable, Unavailable
from pytest_ldos.campaign.watched_switches import PROC, Switches, with_trace
from pytest_ldos.host.context_switches import OwnSwitchCounter, SwitchCounter
from pytest_ldos.host.process_names import process_names
from pytest_ldos.measure.trial.rig import Rig
from pytest_ldos.record.choose_profiler import choose_profiler, resolve_profiler
from pytest_ldos.record.profiler import Profiler
from pytest_ldos.record.profiles.folded import FoldedStacks, merge
from pytest_ldos.record.profiles.syscalls import SyscallCount, add_syscalls
from pytest_ldos.record.strace import SyscallCounter, strace_available
from pytest_ldos.scenario.watching import WatchSpec
from pytest_ldos.scenario.words import ProfilerKind

DISTORTION: Final = (
    "system calls were counted with strace, which stops processes at each: such times compare with nothing"
)


@dataclass
class Seen:
    """Results of one watched period.

    Attributes:
        start: identifies the start of the processes, which may be watched several times.
        began_ns, ended_ns: since the epoch.
    """

    start: Path
    began_ns: int = 0
    ended_ns: int = 0
    profile: FoldedStacks = field(default_factory=lambda: FoldedStacks({}))
    syscalls: tuple[SyscallCount, ...] = ()
    switches: Switches | None = None


class Watching:
    """Implements `trial.watch.Watch`. Keeps the results for one version, start by start.

    Attributes:
        seen: one entry per watched period, in order.
        notes: what could not be watched, and why; remarks that a reader must know.
    """

    def __init__(self, spec: WatchSpec) -> None:
        self.seen: list[Seen] = []
        self.notes: list[str] = []
        self._rate_hz = spec.rate_hz
        self._kind = self._resolve(spec.profiler) if spec.profile else None
        self._counts = spec.syscalls and self._can_count()
        self._has_sampled = self._has_counted = False

    def _resolve(self, kind: ProfilerKind) -> ProfilerKind | None:
        try:
            return resolve_profiler(kind)
        except Unavailable as error:
            self.note(f"no profile: {_in_words(error)}")
            return None

    def _can_count(self) -> bool:
        able = strace_available()
        if not able.ok:
            self.note(f"system calls are not counted: {able.reason} → {able.remedy}")
        return able.ok

    def note(self, text: str) -> None:
        """Adds a note, unless it is already there."""
        if text not in self.notes:
            self.notes.append(text)

    @property
    def tools(self) -> str:
        """Tools to be used, afterwards those that were, as in ``perf at 199 Hz and strace``; empty for none."""
        samples = self._kind is not None and (self._has_sampled or not self.seen)
        return " and ".join([*([f"{self._kind} at {self._rate_hz} Hz"] if samples else []), *self._counters()])

    @property
    def distortion(self) -> str:
        return DISTORTION if self._counters() else ""

    def _counters(self) -> list[str]:
        return ["strace"] if self._counts and (self._has_counted or not self.seen) else []

    @property
    def profile(self) -> FoldedStacks:
        return merge(each.profile for each in self.seen)

    @property
    def profiles(self) -> list[FoldedStacks]:
        """Profile of each start that has samples."""
        starts: dict[Path, list[FoldedStacks]] = {}
        for each in self.seen:
            starts.setdefault(each.start, []).append(each.profile)
        merged = [merge(of_start) for of_start in starts.values()]
        return [each for each in merged if each]

    @property
    def switches(self) -> list[Switches]:
        """Context switches of each period in which they were counted."""
        return [each.switches for each in self.seen if each.switches is not None]

    @property
    def syscalls(self) -> tuple[SyscallCount, ...]:
        return add_syscalls(each.syscalls for each in self.seen)

    @contextmanager
    def beside(self, rig: Rig) -> Iterator[None]:
        pids = rig.stack.pids()
        with self._watched(process_names(pids), rig.folder.path, rig.folder.logs) as seen:
            with _switches_counted(SwitchCounter(pids), seen):
                yield
            if not process_names(pids):
                seen.switches = None

    @contextmanager
    def beside_own(self, logs: Path) -> Iterator[None]:
        """Watches this process and all that it starts."""
        with self._watched({os.getpid(): "ldos"}, logs, logs) as seen, _switches_counted(OwnSwitchCounter(), seen):
            yield

    def read(self, rig: Rig, trials: int) -> None:
        seen = self.seen[-1] if self.seen else None
        if seen is None or seen.switches is None:
            return
        found = dataclasses.replace(seen.switches, trials=trials)
        try:
            window = seen.began_ns, seen.ended_ns
            seen.switches = with_trace(found, rig.recorder.directory, window, rig.stack.pids())
        except TraceUnreadable as error:
            seen.switches = found
            self.note(f"messages were not counted: {error.message}")

    @contextmanager
    def _watched(self, processes: Mapping[int, str], start: Path, logs: Path) -> Iterator[Seen]:
        """Runs the tools around a measurement; keeps their results, even if it failed."""
        seen = Seen(start)
        self.seen.append(seen)
        with ExitStack() as ends:
            profiler = self._started_profiler(processes, logs)
            if profiler is not None:
                ends.callback(self._take_profile, profiler, seen)
            counter = self._started_counter(processes, logs)
            if counter is not None:
                ends.callback(self._take_syscalls, counter, seen)
            seen.began_ns = time.time_ns()
            try:
                yield seen
            finally:
                seen.ended_ns = time.time_ns()

    def _started_profiler(self, processes: Mapping[int, str], logs: Path) -> Profiler | None:
        if self._kind is None:
            return None
        try:
            _require_processes(processes)
            profiler = choose_profiler(self._kind, logs, rate_hz=self._rate_hz)
            profiler.start(processes)
        except (LdosError, OSError) as error:
            self.note(f"no profile: {_in_words(error)}")
            return None
        self._has_sampled = True
        self.note(f"sampled by {profiler.name}")
        return profiler

    def _take_profile(self, profiler: Profiler, seen: Seen) -> None:
        try:
            sampled = profiler.stop()
        except (LdosError, OSError) as error:
            self.note(f"no profile: {_in_words(error)}")
            return
        seen.profile = sampled.profile
        for note in sampled.notes:
            self.note(f"profile: {note}")
        if not sampled.profile:
            self.note("no profile: there are no samples, for nothing ran → profile for longer, or at a higher rate")

    def _started_counter(self, processes: Mapping[int, str], logs: Path) -> SyscallCounter | None:
        if not self._counts:
            return None
        counter = SyscallCounter(logs)
        try:
            _require_processes(processes)
            counter.start(processes)
        except (LdosError, OSError) as error:
            self.note(f"system calls are not counted: {_in_words(error)}")
            return None
        self._has_counted = True
        return counter

    def _take_syscalls(self, counter: SyscallCounter, seen: Seen) -> None:
        try:
            seen.syscalls = counter.stop()
        except (LdosError, OSError) as error:
            self.note(f"system calls are not counted: {_in_words(error)}")


@contextmanager
def _switches_counted(counter: SwitchCounter | OwnSwitchCounter, seen: Seen) -> Iterator[None]:
    began_s = time.monotonic()
    try:
        yield
    finally:
        seen.switches = Switches(counter.counts(), time.monotonic() - began_s, PROC)


def _require_processes(processes: Mapping[int, str]) -> None:
    if not processes:
        raise ProfilingFailed("none of the processes runs any more")


def _in_words(error: LdosError | OSError) -> str:
    if isinstance(error, OSError):
        return f"{error.filename}: {error.strerror} → make room there, or let it be written to"
    return f"{error.message} → {error.remedy}" if error.remedy else error.message
