"""Profiles processes during a measurement: samples, system calls, context switches.

Failed tools are noted with reason and remedy; the measurement continues.
"""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Final

import numpy as np

from pytest_ldos.base.errors import LdosError, ProfilingFailed, TraceUnreadable, Unavailable
from pytest_ldos.base.files import write_atomically, writing
from pytest_ldos.base.ros2 import Ros2
from pytest_ldos.base.series import SwitchCounts
from pytest_ldos.base.text import one_line
from pytest_ldos.host.checkout import commit_of
from pytest_ldos.host.counters import OwnSwitchCounter, SwitchCounter
from pytest_ldos.host.fingerprint import find_influences, find_settings, find_withheld, take_fingerprint
from pytest_ldos.host.processes import process_names
from pytest_ldos.instruments.study import Column, Study, Table
from pytest_ldos.measure.metrics.model import Measurement
from pytest_ldos.measure.trial.record import RoundTrial, TrialKind, TrialSet
from pytest_ldos.measure.trial.rig import Rig, Watch
from pytest_ldos.record.choose import choose_profiler, divide_processes, resolve_profiler
from pytest_ldos.record.profiles import (
    Difference,
    Evidence,
    FoldedStacks,
    compare_profiles,
    find_grown,
    merge,
    render_folded,
    render_speedscope,
)
from pytest_ldos.record.protocol import Profiler
from pytest_ldos.record.strace import SyscallCount, SyscallCounter, add_syscalls, render_syscalls, strace_available
from pytest_ldos.robot.stack.goals import OutcomeClass
from pytest_ldos.scenario.model import ScenarioSpec, WatchSpec
from pytest_ldos.scenario.words import ProfilerKind
from pytest_ldos.trace.ctf.read import read_trace
from pytest_ldos.trace.execution.scheduling import SCHEDULING_EVENTS, build_thread_states, count_switches


@dataclass(frozen=True)
class Switches:
    """Context switches of watched processes; messages and trials of the same time if they are known."""

    counts: SwitchCounts
    seconds: float
    source: str
    messages: int | None = None
    trials: int | None = None


def with_trace(found: Switches, directory: Path, window: tuple[int, int], pids: Sequence[int]) -> Switches:
    """Adds the number of published messages, and counts switches from kernel events if recorded.

    Only those of `pids` count; if the trace does not contain process ids, the messages of all do. The window is in
    nanoseconds since the epoch. Raises as `read_trace`.
    """
    trace = read_trace(directory, events={Ros2.RMW_PUBLISH, *SCHEDULING_EVENTS}, window=window)
    if (published := trace.events.get(Ros2.RMW_PUBLISH)) is not None:
        messages = int(np.isin(published["vpid"], pids).sum()) if "vpid" in published.columns else len(published)
        found = dataclasses.replace(found, messages=messages)
    states = build_thread_states(trace)
    if not len(states):
        return found
    tids: list[int] = []
    for pid in pids:
        with suppress(OSError):
            tids += [int(thread.name) for thread in Path(f"/proc/{pid}/task").iterdir()]
    counts = count_switches(states, begin_ns=window[0], end_ns=window[1], tids=tids)
    return dataclasses.replace(found, counts=counts, source="kernel events")


def describe_switches(counted: Sequence[Switches]) -> str:
    """Context switches and migrations: total, per trial and per message; empty if none were counted."""
    if not counted:
        return ""
    total = counted[0].counts
    for each in counted[1:]:
        total += each.counts
    seconds = sum(each.seconds for each in counted)
    moved = "unknown migrations" if total.migrations is None else f"{total.migrations} migrations"
    shown = f"{total.voluntary} voluntary / {total.involuntary} involuntary context switches / {moved}"
    sums = [total.voluntary, total.involuntary, *([] if total.migrations is None else [total.migrations])]
    rates = []
    for what, values in (
        ("trial", [each.trials for each in counted]),
        ("message", [each.messages for each in counted]),
    ):
        known = [value for value in values if value is not None]
        if len(known) == len(counted) and (number := sum(known)):
            each_one = (value / number for value in sums)
            shares = " / ".join(f"{value:.0f}" if value >= 100 else f"{value:.3g}" for value in each_one)
            rates.append(f"{shares} a {what} ({number})")
    return "; ".join([f"{shown} in {seconds:.1f} s ({counted[0].source})", *rates])


DISTORTION: Final = (
    "system calls were counted with strace, which stops processes at each: such times compare with nothing"
)


@dataclass
class Seen:
    """Results of one profiled period; times are since the epoch. Processes of one `start` may have several periods."""

    start: Path
    began_ns: int = 0
    ended_ns: int = 0
    profile: FoldedStacks = field(default_factory=lambda: FoldedStacks({}))
    syscalls: tuple[SyscallCount, ...] = ()
    switches: Switches | None = None


class Watching:
    """Implements `trial.rig.Watch`; collects the results of one version, one entry per profiled period."""

    def __init__(self, spec: WatchSpec) -> None:
        self.seen: list[Seen] = []
        self.notes: list[str] = []
        self._rate_hz = spec.rate_hz
        self._kind: ProfilerKind | None = None
        self._counts = spec.syscalls
        self._has_sampled = self._has_counted = False
        if spec.profile:
            try:
                self._kind = resolve_profiler(spec.profiler)
            except Unavailable as error:
                self.note(f"no profile: {in_words(error)}")
        if self._counts and not (able := strace_available()).ok:
            self._counts = False
            self.note(f"system calls are not counted: {able.reason} → {able.remedy}")

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    @contextmanager
    def _noting(self, what: str) -> Iterator[None]:
        try:
            yield
        except (LdosError, OSError) as error:
            self.note(f"{what}: {in_words(error)}")

    @property
    def tools(self) -> str:
        """Requested tools, afterwards the used ones, as in ``perf at 199 Hz and strace``; empty for none."""
        samples = self._kind is not None and (self._has_sampled or not self.seen)
        sampler = [f"{self._kind} at {self._rate_hz} Hz"] if samples else []
        return " and ".join([*sampler, *(["strace"] if self._is_slowed else [])])

    @property
    def distortion(self) -> str:
        return DISTORTION if self._is_slowed else ""

    @property
    def _is_slowed(self) -> bool:
        return self._counts and (self._has_counted or not self.seen)

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
        return [each.switches for each in self.seen if each.switches is not None]

    @property
    def syscalls(self) -> tuple[SyscallCount, ...]:
        return add_syscalls(each.syscalls for each in self.seen)

    @contextmanager
    def attached_to(self, rig: Rig) -> Iterator[None]:
        pids = rig.stack.pids()
        with self._watched(process_names(pids), rig.folder.path, rig.folder.logs) as seen:
            with _switches_counted(SwitchCounter(pids), seen):
                yield
            if not process_names(pids):
                seen.switches = None

    @contextmanager
    def attached_to_self(self, logs: Path) -> Iterator[None]:
        """Profiles this process and its children in the ``with`` block."""
        with self._watched({os.getpid(): "ldos"}, logs, logs) as seen, _switches_counted(OwnSwitchCounter(), seen):
            yield

    def read(self, rig: Rig, trials: int) -> None:
        seen = self.seen[-1] if self.seen else None
        if seen is None or seen.switches is None:
            return
        found = dataclasses.replace(seen.switches, trials=trials)
        try:
            seen.switches = with_trace(found, rig.recorder.directory, (seen.began_ns, seen.ended_ns), rig.stack.pids())
        except TraceUnreadable as error:
            seen.switches = found
            self.note(f"messages were not counted: {error.message}")

    @contextmanager
    def _watched(self, processes: Mapping[int, str], start: Path, logs: Path) -> Iterator[Seen]:
        """Runs the tools during a measurement; keeps their results even if it fails."""
        seen = Seen(start)
        self.seen.append(seen)
        with ExitStack() as ends:
            if self._kind is not None:
                with self._noting("no profile"):
                    _require_processes(processes)
                    profilers: list[Profiler] = []
                    for kind, own in divide_processes(self._kind, processes).items():
                        profilers.append(choose_profiler(kind, logs, rate_hz=self._rate_hz))
                        ends.callback(profilers[-1].cancel)
                        profilers[-1].start(own)
                        self.note(f"sampled by {profilers[-1].name}")
                    self._has_sampled = True
                    ends.callback(self._take_profile, profilers, seen)
            if self._counts:
                with self._noting("system calls are not counted"):
                    _require_processes(processes)
                    counter = SyscallCounter(logs)
                    counter.start(processes)
                    self._has_counted = True
                    ends.callback(self._take_syscalls, counter, seen)
            seen.began_ns = time.time_ns()
            try:
                yield seen
            finally:
                seen.ended_ns = time.time_ns()

    def _take_profile(self, profilers: Sequence[Profiler], seen: Seen) -> None:
        with self._noting("no profile"):
            sampled = [each.stop() for each in profilers]
            seen.profile = merge(each.profile for each in sampled)
            for note in (note for each in sampled for note in each.notes):
                self.note(f"profile: {note}")
            if not seen.profile:
                self.note("no profile: there are no samples, for nothing ran → profile for longer, or at a higher rate")

    def _take_syscalls(self, counter: SyscallCounter, seen: Seen) -> None:
        with self._noting("system calls are not counted"):
            seen.syscalls = counter.stop()


@contextmanager
def _switches_counted(counter: SwitchCounter | OwnSwitchCounter, seen: Seen) -> Iterator[None]:
    began_s = time.monotonic()
    try:
        yield
    finally:
        seen.switches = Switches(counter.counts(), time.monotonic() - began_s, "/proc")


def _require_processes(processes: Mapping[int, str]) -> None:
    if not processes:
        raise ProfilingFailed("none of the processes runs any more")


def in_words(error: LdosError | OSError) -> str:
    if isinstance(error, OSError):
        return f"{error.filename}: {error.strerror} → make room there, or let it be written to"
    return f"{error.message} → {error.remedy}" if error.remedy else error.message


FOLDER: Final = "profile"


@dataclass(frozen=True)
class Drawings:
    flame: Callable[[FoldedStacks, str, Sequence[str]], str]
    difference: Callable[[Difference, str], str]


def write_watched(watching: Watching, folder: Path, drawings: Drawings, *, title: str) -> Iterator[str]:
    """Writes the results of one version; yields notes for its report: failures and paths of the files."""
    yield from watching.notes
    if watching.profiles:
        whole = watching.profile
        yield f"profile of {whole.samples} samples ({watching.tools}): {folder}"
        for number, profile in enumerate(watching.profiles, 1):
            yield from _written(folder / f"start-{number}.folded", partial(render_folded, profile))
        yield from _written(folder / "profile.speedscope.json", lambda: render_speedscope(whole, title))
        yield from _written(folder / "flame.svg", lambda: drawings.flame(whole, title, [watching.tools]))
    if watching.syscalls:
        file = folder / "syscalls.txt"
        yield f"system calls: {file}"
        yield from _written(file, lambda: render_syscalls(watching.syscalls))
    if described := describe_switches(watching.switches):
        yield f"{described}{' (under strace)' if watching.syscalls else ''}"


def write_watched_difference(
    base: Watching, head: Watching, folder: Path, drawings: Drawings, *, title: str
) -> Iterator[str]:
    if not (base.profiles and head.profiles):
        return
    difference, file = compare_profiles(base.profiles, head.profiles), folder / "difference.svg"
    yield f"profiles compared: {len(difference.certain())} frames changed for certain, see {file}"
    yield from _written(file, lambda: drawings.difference(difference, title))


_LEAST_RATE_HZ: Final = 499  # these trials are not judged: the profiler may slow them
_MOST_FILES: Final = 8
_NO_PACKAGES: Final = frozenset({"lib", "bin", "build", "install", "src"})


def spec_of_evidence(asked: WatchSpec) -> WatchSpec:
    """The profile of a regression, by the requested profiler, if any; raises as `resolve_profiler`."""
    kind = ProfilerKind.BOTH if asked.profiler is ProfilerKind.AUTO else asked.profiler
    return WatchSpec(profile=True, profiler=resolve_profiler(kind), rate_hz=max(asked.rate_hz, _LEAST_RATE_HZ))


def find_evidence(base: Watch | None, head: Watch | None, changes: Mapping[str, str]) -> Evidence | None:
    """Compares profiles after a regression; ``None`` if a version has none. `changes` are as of `read_changes`."""
    if not (isinstance(base, Watching) and isinstance(head, Watching) and base.profiles and head.profiles):
        return None
    found = find_grown(base.profiles, head.profiles, tools=head.tools)
    near = [file for file in changes if any(is_near(file, each.file) for each in found.grown)]
    files = [f"{one_line(file)} {changes[file]}" for file in near or changes]
    more = [f"{len(files) - _MOST_FILES} more"] if len(files) > _MOST_FILES else []
    return dataclasses.replace(found, files=(*files[:_MOST_FILES], *more))


def is_near(file: str, known: str) -> bool:
    """True if a file of the repository is in the package of a Python module or library, as far as its path shows it."""
    place, source = PurePosixPath(file), PurePosixPath(known)
    folder = source.parent.parts
    if source.suffix == ".py":  # py-spy's path begins with the outermost package
        return place.parent.parts[-len(folder) :] == folder if folder else place.name == source.name
    names = {source.name.partition(".")[0].removeprefix("lib"), *folder[-2:]} - _NO_PACKAGES
    return bool(names.intersection(place.parts))


def _written(file: Path, render: Callable[[], str]) -> Iterator[str]:
    """Writes a file; yields a note instead of an error if it cannot be written."""
    try:
        write_atomically(file, render())
    except LdosError as error:
        yield f"{file.name} is not there: {error.message} → {error.remedy}"


def to_trials(study: Study, *, name: str = "", commit: str | None = None) -> TrialSet:
    """Converts each round to a trial with its case as the goal, so that rounds of one case are compared.

    Their baselines have a separate folder, ``middleware-<layer>``, to avoid clashes with scenarios of arms. All metrics
    get an equal share of the error probability, unless the instrument sets shares.

    Args:
        name: name of their scenario, hence of their baseline; by default the study's own.
        commit: commit of the project under test; by default that of the current checkout.
    """
    known, unknown = commit_of(Path.cwd()) if commit is None else (commit, "")
    metrics = study.quantities
    if not any(each.error_share for each in metrics):
        metrics = tuple(dataclasses.replace(each, error_share=1 / len(metrics)) for each in metrics)
    trials = (
        RoundTrial(
            index=index,
            goal=each.case,
            block=each.block,
            outcome=OutcomeClass.ABORTED if each.failure else OutcomeClass.SUCCESS,
            message=each.failure,
            measurements={metric: Measurement(value, each.details) for metric, value in each.values.items()},
        )
        for index, each in enumerate(study.rounds)
    )
    return TrialSet(
        spec=ScenarioSpec(name=name or study.name, trials=max(1, len(study.rounds)), warmup=0),
        started_at=study.started_at,
        commit=known,
        commit_unknown=unknown,
        influences=find_influences(os.environ),
        withheld=find_withheld(os.environ),
        environment=find_settings(os.environ),
        stack_kind=f"middleware-{study.layer}",
        stack=f"{study.layer}: {study.middleware}",
        recorder="none",
        fingerprint=take_fingerprint(rmw=study.middleware, versions=study.versions),
        trials=tuple(trials),
        metrics=metrics,
        watched=study.watched,
        distortion=study.distortion,
        trial_kind=TrialKind.ROUND,
    )


def measure_watched(spec: WatchSpec, folder: Path, drawings: Drawings, measure: Callable[[], Study]) -> Study:
    """Measures a study; adds a table of system calls, and notes with the profile's path."""
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    watching = Watching(spec)
    with watching.attached_to_self(folder):
        study = measure()
    warnings = [watching.distortion] if watching.distortion else []
    return dataclasses.replace(
        study,
        notes=(*warnings, *study.notes, *write_watched(watching, folder, drawings, title=f"ldos {study.instrument}")),
        tables=(*study.tables, *([syscall_table(watching.syscalls)] if watching.syscalls else [])),
        watched=watching.tools,
        distortion=watching.distortion,
    )


def syscall_table(counts: tuple[SyscallCount, ...]) -> Table:
    columns = (
        Column(name="call", title="system call"),
        Column(name="calls"),
        Column(name="errors"),
        Column(name="time", unit="s"),
        Column(name="share", unit="%"),
    )
    rows = tuple((each.name, each.calls, each.errors, each.seconds, 100 * each.share) for each in counts)
    return Table(name="system_calls", title="System calls, as strace counts them", columns=columns, rows=rows)
