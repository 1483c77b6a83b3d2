"""stress-ng with its workers: start, end, and their measured work."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

import psutil

from pytest_ldos.base.errors import LoadFailed
from pytest_ldos.base.text import NS_PER_S
from pytest_ldos.host.availability import Availability, find_programs
from pytest_ldos.host.cpu import Cpus, describe_cpus, read_affinities
from pytest_ldos.host.processes import Child
from pytest_ldos.host.temporary import temporary_folder
from pytest_ldos.measure.load.cpu_limit import find_escaped
from pytest_ldos.measure.load.protocol import (
    NOT_READ,
    GroupedProof,
    GroupReading,
    LoadSite,
    load_processes,
    read_group,
    watched,
)
from pytest_ldos.scenario.loads import CacheLoadSpec, CpuLoadSpec, IoLoadSpec, MemoryLoadSpec

LONGEST_S: Final = 1800  # time limit of stress-ng, in case its owner disappears
_READY_TIMEOUT_S: Final = 30.0
_REPLACED_S: Final = 1.0  # time in which stress-ng may replace a dead worker
_POLL_S: Final = 0.02

StressSpec = CpuLoadSpec | MemoryLoadSpec | CacheLoadSpec | IoLoadSpec


def stress_ng_available() -> Availability:
    return find_programs(("stress-ng", "taskset"), package="stress-ng util-linux")


@dataclass(frozen=True)
class Effort:
    """The work of one worker so far."""

    cpu_s: float = 0.0
    waited_s: float = 0.0  # time runnable but not running, s
    resident: int = 0  # private memory beyond that of the parent, bytes
    written: int = 0  # data written to storage, bytes


@dataclass(frozen=True)
class Stress:
    """The work of all workers during the measurement.

    Attributes:
        used_percent, waited_percent: percentage of a CPU for which all workers together ran, or were runnable
            but not running.
        resident: smallest total memory of the workers, bytes.
        written: data written to storage, bytes, by worker.
    """

    seconds: float
    used_percent: float
    waited_percent: float
    resident: int
    written: tuple[int, ...]
    group: GroupReading
    shortfall: str

    def shared_fields(self, spec: StressSpec, shortfall: str) -> dict[str, Any]:
        """Fields that the proofs of all these loads have; a failure of stress-ng comes before `shortfall`."""
        return {
            "kind": spec.KIND,
            "seconds": self.seconds,
            "shortfall": self.shortfall or shortfall,
            "group": spec.group,
            "group_found": self.group.found,
            "workers": spec.workers,
            "used_percent": self.used_percent,
        }


Proof = TypeVar("Proof", bound=GroupedProof)


class RunningStressor(Generic[Proof]):
    """A running stress-ng on `cpus`, or all of this process; a dead worker's work counts up to its last check."""

    def __init__(
        self, spec: StressSpec, site: LoadSite, child: Child, prove: Callable[[Stress], Proof], cpus: Cpus | None
    ) -> None:
        self.spec = spec
        self._site = site
        self._child = child
        self._prove = prove
        self._cpus = cpus
        self._lock = threading.RLock()
        self._efforts: dict[int, Effort] = {}
        self._at_begin: dict[int, Effort] = {}
        self._began_s = self._last_s = 0.0
        self._least_resident: int | None = None
        self._group = NOT_READ
        self._trouble = ""

    @property
    def proof(self) -> Proof:
        return self._prove(self._measure())

    def _measure(self) -> Stress:
        with self._lock:
            self.look()
            seconds = self._last_s - self._began_s
            spans = [(self._at_begin.get(pid, Effort()), now) for pid, now in self._efforts.items()]
            to_percent = 100 / seconds if seconds > 0 else 0.0
            return Stress(
                seconds=seconds,
                used_percent=to_percent * sum(now.cpu_s - begun.cpu_s for begun, now in spans),
                waited_percent=to_percent * sum(now.waited_s - begun.waited_s for begun, now in spans),
                resident=self._least_resident or 0,
                written=tuple(now.written - begun.written for begun, now in spans),
                group=self._group,
                shortfall=self._trouble or self._group.shortfall,
            )

    def look(self) -> None:
        with self._lock:
            if self._trouble or self._child.process.returncode is not None:
                return
            workers = self._complete_workers()
            if workers is None:
                return
            self._note(workers)
            pids = [self._child.pid, *workers]
            if self._cpus is not None:
                self._trouble = find_escaped(read_affinities(pids), self._cpus)
            self._group = read_group(self.spec.group, pids, self._site) or self._group

    def _note(self, workers: Mapping[int, Effort]) -> None:
        self._efforts.update(workers)
        self._last_s = time.monotonic()
        resident = sum(each.resident for each in workers.values())
        self._least_resident = resident if self._least_resident is None else min(resident, self._least_resident)

    def _complete_workers(self) -> Mapping[int, Effort] | None:
        """Returns all workers, once dead ones are replaced; otherwise records the failure and returns ``None``."""
        deadline = time.monotonic() + _REPLACED_S
        while len(workers := _workers(self._child.pid)) < self.spec.workers:
            if self._child.exit_code is not None:
                self._trouble = f"{self._child.describe_end()} while it was measured"
                return None
            if time.monotonic() > deadline:
                self._trouble = f"{len(workers)} of {self.spec.workers} workers of stress-ng are left"
                return None
            time.sleep(_POLL_S)
        return workers

    def await_work(self, is_working: Callable[[Effort], bool]) -> None:
        """Begins the measurement when every worker is working; raises `LoadFailed` if one does not start."""
        deadline = time.monotonic() + _READY_TIMEOUT_S
        while time.monotonic() < deadline and self._child.exit_code is None:
            workers = _workers(self._child.pid)
            if sum(is_working(each) for each in workers.values()) >= self.spec.workers:
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
def run_stressor(
    spec: StressSpec,
    site: LoadSite,
    *,
    arguments: Sequence[str],
    prove: Callable[[Stress], Proof],
    is_working: Callable[[Effort], bool] = lambda effort: effort.cpu_s > 0,
    cpus: Cpus | None = None,
) -> Iterator[RunningStressor[Proof]]:
    """Runs stress-ng inside the ``with`` block; its temporary files are private and removed at the end."""
    stress_ng_available().demand()
    with (
        temporary_folder(f"{spec.KIND}-", within=site.log_directory) as folder,
        load_processes(spec.group, site) as group,
    ):
        confined = [] if cpus is None else ["taskset", "--cpu-list", describe_cpus(cpus)]
        bounds = ["--timeout", f"{LONGEST_S}s", "--temp-path", str(folder)]
        child = group.start(f"stress-ng-{spec.KIND}", [*confined, "stress-ng", *arguments, *bounds])
        running = RunningStressor(spec, site, child, prove, cpus)
        running.await_work(is_working)
        with watched(running.look):
            yield running


def _workers(pid: int) -> dict[int, Effort]:
    """Returns the worker processes by pid; some stressors have a process between stress-ng and each worker."""
    try:
        processes = psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return {}
    between = set()
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            between.add(process.ppid())
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
    own, parents = (each.memory_info() for each in (process, psutil.Process(process.ppid())))
    return Effort(
        cpu_s=cpu_s,
        waited_s=waited_s,
        resident=int((own.rss - own.shared) - (parents.rss - parents.shared)),
        written=process.io_counters().write_bytes,
    )


def _run_and_waited(process: psutil.Process) -> tuple[float, float]:
    """Run and wait times of a single-threaded process, s; the wait is 0 if the kernel lacks CONFIG_SCHED_INFO."""
    try:
        ran_ns, waited_ns, _ = Path(f"/proc/{process.pid}/schedstat").read_text("ascii").split()
    except FileNotFoundError:
        times = process.cpu_times()
        return times.user + times.system, 0.0
    return int(ran_ns) / NS_PER_S, int(waited_ns) / NS_PER_S
