"""Common part of all stress-ng loads: start, end, and the measured work of the workers."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

from pytest_ldos.base.errors import LoadFailed
from pytest_ldos.host.availability import Availability, find_programs
from pytest_ldos.host.cpu import Cpus, describe_cpus, read_affinities
from pytest_ldos.host.processes import Child, ProcessGroup
from pytest_ldos.host.temporary import temporary_folder
from pytest_ldos.measure.load.protocol import NOT_READ, GroupReading, LoadSite, read_group, watched
from pytest_ldos.scenario.loads.spec import SchedulerGroup

LONGEST_S: Final = 1800
"""Time limit of stress-ng, in case its owner disappears."""

WHOLE_CPU: Final = 100.0
MB: Final = 10**6

_READY_TIMEOUT_S: Final = 30.0
_REPLACED_S: Final = 1.0
"""Time in which stress-ng may replace a dead worker."""

_POLL_S: Final = 0.02
_NS_PER_S: Final = 1e9


def stress_ng_available() -> Availability:
    return find_programs(("stress-ng", "taskset"), package="stress-ng util-linux")


@dataclass(frozen=True)
class Stressor:
    """A task for stress-ng.

    Attributes:
        arguments: its options.
        workers: number of worker processes.
        cpus: CPUs that they may use; ``None`` for all of this process.
    """

    kind: str
    arguments: tuple[str, ...]
    workers: int
    group: SchedulerGroup
    cpus: Cpus | None = None


@dataclass(frozen=True)
class Effort:
    """The work of one worker so far.

    Attributes:
        cpu_s: CPU time used, s.
        waited_s: time runnable but not running, s.
        resident: private memory of a worker beyond that of its parent, bytes.
        written: data written to storage, bytes.
    """

    cpu_s: float = 0.0
    waited_s: float = 0.0
    resident: int = 0
    written: int = 0


@dataclass(frozen=True)
class Stress:
    """The work of all workers during the measurement.

    Attributes:
        seconds: duration of the measurement.
        used_percent, waited_percent: percentage of a CPU for which all workers together ran, or were runnable
            but not running.
        resident: smallest total memory of the workers, bytes.
        written: data written to storage, bytes, by worker.
        shortfall: failure of stress-ng; empty if there is none.
    """

    seconds: float
    used_percent: float
    waited_percent: float
    resident: int
    written: tuple[int, ...]
    group: GroupReading
    shortfall: str


Readiness = Callable[[Effort], bool]
"""Predicate: True if a worker is working."""


class RunningStressor:
    """A running stress-ng, checked periodically.

    The work of a dead worker counts up to its last check.
    """

    def __init__(self, stressor: Stressor, child: Child, site: LoadSite) -> None:
        self._stressor = stressor
        self._child = child
        self._site = site
        self._lock = threading.RLock()
        self._efforts: dict[int, Effort] = {}
        self._at_begin: dict[int, Effort] = {}
        self._began_s = self._last_s = 0.0
        self._least_resident: int | None = None
        self._group = NOT_READ
        self._trouble = ""

    def measure(self) -> Stress:
        """Returns the work done since `await_work`."""
        with self._lock:
            self.look()
            seconds = self._last_s - self._began_s
            done = {pid: _since(effort, self._at_begin.get(pid, Effort())) for pid, effort in self._efforts.items()}
            to_percent = WHOLE_CPU / seconds if seconds > 0 else 0.0
            return Stress(
                seconds=seconds,
                used_percent=to_percent * sum(each.cpu_s for each in done.values()),
                waited_percent=to_percent * sum(each.waited_s for each in done.values()),
                resident=self._least_resident or 0,
                written=tuple(each.written for each in done.values()),
                group=self._group,
                shortfall=self._trouble or self._group.shortfall,
            )

    def look(self) -> None:
        """Records the workers' effort so far, or their failure."""
        with self._lock:
            if self._trouble or self._child.process.returncode is not None:
                return
            workers = self._complete_workers()
            if workers is None:
                return
            self._note(workers)
            pids = [self._child.pid, *workers]
            self._trouble = self._outside(pids)
            self._group = read_group(self._stressor.group, pids, self._site) or self._group

    def _note(self, workers: Mapping[int, Effort]) -> None:
        self._efforts.update(workers)
        self._last_s = time.monotonic()
        resident = sum(each.resident for each in workers.values())
        self._least_resident = resident if self._least_resident is None else min(resident, self._least_resident)

    def _complete_workers(self) -> Mapping[int, Effort] | None:
        """Returns all workers, once dead ones are replaced; otherwise records the failure and returns ``None``."""
        deadline = time.monotonic() + _REPLACED_S
        while len(workers := _workers(self._child.pid)) < self._stressor.workers:
            if self._child.exit_code is not None:
                self._trouble = f"{self._child.describe_end()} while it was measured"
                return None
            if time.monotonic() > deadline:
                self._trouble = f"{len(workers)} of {self._stressor.workers} workers of stress-ng are left"
                return None
            time.sleep(_POLL_S)
        return workers

    def _outside(self, pids: list[int]) -> str:
        """Returns a thread that may run on a forbidden CPU; empty if there is none."""
        cpus = self._stressor.cpus
        if cpus is None:
            return ""
        for thread, allowed in read_affinities(pids).items():
            if not allowed <= cpus:
                return f"{thread.describe()} may run on CPUs {describe_cpus(allowed)}, not only {describe_cpus(cpus)}"
        return ""

    def await_work(self, is_working: Readiness) -> None:
        """Waits until every worker is working, then begins the measurement.

        Raises:
            LoadFailed: some worker does not start.
        """
        deadline = time.monotonic() + _READY_TIMEOUT_S
        while time.monotonic() < deadline and self._child.exit_code is None:
            workers = _workers(self._child.pid)
            if sum(is_working(each) for each in workers.values()) >= self._stressor.workers:
                self._at_begin = dict(workers)
                self._note(workers)
                self._began_s = self._last_s
                return
            time.sleep(_POLL_S)
        raise LoadFailed(
            f"stress-ng did not begin to work ({self._child.describe_end()})",
            details=self._child.last_lines(),
            remedy="look at what stress-ng says, and at the load of this machine",
        )

    def worker_pids(self) -> list[int]:
        return list(_workers(self._child.pid))


@contextmanager
def run_stressor(stressor: Stressor, site: LoadSite, is_working: Readiness) -> Iterator[RunningStressor]:
    """Runs stress-ng inside the ``with`` block; its temporary files are private and removed at the end.

    Raises:
        Unavailable: stress-ng is not installed.
        LoadFailed: its workers did not start.
    """
    stress_ng_available().demand()
    with ExitStack() as resources:
        folder = resources.enter_context(temporary_folder(f"{stressor.kind}-", within=site.log_directory))
        group = ProcessGroup(log_directory=site.log_directory, own_session=stressor.group == SchedulerGroup.OWN)
        resources.callback(group.stop)
        running = RunningStressor(stressor, group.start(f"stress-ng-{stressor.kind}", _command(stressor, folder)), site)
        running.await_work(is_working)
        with watched(running.look):
            yield running
        running.look()


def _command(stressor: Stressor, folder: Path) -> list[str]:
    confined = [] if stressor.cpus is None else ["taskset", "--cpu-list", describe_cpus(stressor.cpus)]
    bounds = ["--timeout", f"{LONGEST_S}s", "--temp-path", str(folder)]
    return [*confined, "stress-ng", *stressor.arguments, *bounds]


def _workers(pid: int) -> dict[int, Effort]:
    """Returns the worker processes by pid; some stressors have a process between stress-ng and each worker."""
    processes = _descendants(pid)
    between = {_parent(process) for process in processes}
    workers = {}
    for process in processes:
        if process.pid not in between:
            with contextlib.suppress(psutil.NoSuchProcess, OSError):
                workers[process.pid] = _effort(process)
    return workers


def _effort(process: psutil.Process) -> Effort:
    if process.status() == psutil.STATUS_ZOMBIE:
        raise psutil.ZombieProcess(process.pid)
    cpu_s, waited_s = _run_and_waited(process)
    return Effort(
        cpu_s=cpu_s,
        waited_s=waited_s,
        resident=_private_memory(process) - _private_memory(psutil.Process(process.ppid())),
        written=process.io_counters().write_bytes,
    )


def _private_memory(process: psutil.Process) -> int:
    """Bytes of private memory, without the program and memory shared with others."""
    memory = process.memory_info()
    return int(memory.rss - memory.shared)


def _run_and_waited(process: psutil.Process) -> tuple[float, float]:
    """Run and wait times of a single-threaded process, s; wait is 0 if the kernel lacks CONFIG_SCHED_INFO."""
    try:
        ran_ns, waited_ns, _ = Path(f"/proc/{process.pid}/schedstat").read_text("ascii").split()
    except FileNotFoundError:
        times = process.cpu_times()
        return times.user + times.system, 0.0
    return int(ran_ns) / _NS_PER_S, int(waited_ns) / _NS_PER_S


def _since(effort: Effort, earlier: Effort) -> Effort:
    return Effort(
        effort.cpu_s - earlier.cpu_s,
        effort.waited_s - earlier.waited_s,
        effort.resident,
        effort.written - earlier.written,
    )


def _descendants(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def _parent(process: psutil.Process) -> int:
    try:
        return process.ppid()
    except psutil.NoSuchProcess:
        return -1
