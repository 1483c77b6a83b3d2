"""Load on the CPUs: stress-ng's workers beside the stack, in its scheduler group."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import psutil

from pytest_ldos.errors import LoadFailed
from pytest_ldos.host.availability import Availability, find_programs
from pytest_ldos.host.processes import Child, ProcessGroup
from pytest_ldos.load.protocol import LoadProof, LoadSite
from pytest_ldos.scenario.loads import CpuLoadSpec

REACHED_FRACTION: Final = 0.8
"""Of what the CPUs can give; workers share them with the stack."""

LONGEST_S: Final = 1800
"""stress-ng ends by itself after this time, whatever happens to us."""

_READY_TIMEOUT_S: Final = 10.0
_POLL_S: Final = 0.02
_WHOLE_CPU: Final = 100.0


def stress_ng_available() -> Availability:
    return find_programs(("stress-ng",), package="stress-ng")


def attainable_percent(spec: CpuLoadSpec) -> float:
    """Of a CPU, for all workers together: they cannot have more than there is."""
    return min(spec.workers * spec.percent, (os.cpu_count() or 1) * _WHOLE_CPU)


@dataclass(frozen=True, kw_only=True)
class CpuLoadProof(LoadProof):
    """See `LoadProof`.

    Attributes:
        used_percent: of a CPU, by all workers together.
    """

    workers: int
    percent: int
    used_percent: float

    @property
    def applied(self) -> float:
        return self.used_percent

    def describe(self) -> str:
        return f"CPU load: {self.workers} workers × {self.percent} % asked, {self.used_percent:.0f} % of a CPU used"


class RunningCpuLoad:
    """See `RunningLoad`."""

    def __init__(self, spec: CpuLoadSpec, stressor: Child) -> None:
        self.spec = spec
        self._stressor = stressor
        self._began: tuple[float, float] = (0.0, 0.0)
        self._last: tuple[float, float] = (0.0, 0.0)
        self._died = ""

    @property
    def proof(self) -> CpuLoadProof:
        self.observe()
        seconds = self._last[0] - self._began[0]
        used = _WHOLE_CPU * (self._last[1] - self._began[1]) / seconds if seconds > 0 else 0.0
        return CpuLoadProof(
            kind="cpu_load",
            seconds=seconds,
            shortfall=self._died or self._shortfall(used),
            workers=self.spec.workers,
            percent=self.spec.percent,
            used_percent=used,
        )

    def _shortfall(self, used_percent: float) -> str:
        if used_percent >= REACHED_FRACTION * attainable_percent(self.spec):
            return ""
        return f"the workers used {used_percent:.0f} % of a CPU, {attainable_percent(self.spec):.0f} % were possible"

    def observe(self) -> None:
        """Notes the CPU time used so far, or that the stressor has ended."""
        if self._died or self._stressor.process.returncode is not None:
            return
        if self._stressor.exit_code is not None:
            self._died = self._stressor.describe_end()
            return
        # A worker that has died takes its CPU time with it: what was seen used stays used.
        self._last = (time.monotonic(), max(self._last[1], _cpu_seconds(self._stressor.pid)))

    def await_work(self) -> None:
        """Returns when every worker has used some CPU time; measuring begins then."""
        deadline = time.monotonic() + _READY_TIMEOUT_S
        while time.monotonic() < deadline and self._stressor.exit_code is None:
            if len(_busy_workers(self._stressor.pid)) >= self.spec.workers:
                self._began = self._last = (time.monotonic(), _cpu_seconds(self._stressor.pid))
                return
            time.sleep(_POLL_S)
        raise LoadFailed(
            f"stress-ng did not begin to work ({self._stressor.describe_end()})\n{self._stressor.last_lines()}"
        )


@contextmanager
def run_cpu_load(spec: CpuLoadSpec, site: LoadSite) -> Iterator[RunningCpuLoad]:
    """Loads the CPUs for as long as the context lasts.

    Raises:
        Unavailable: stress-ng is not installed.
        LoadFailed: it did not begin to work.
    """
    stress_ng_available().demand()
    group = ProcessGroup(log_directory=site.log_directory)
    command = ["stress-ng", "--cpu", str(spec.workers), "--cpu-load", str(spec.percent)]
    command += ["--cpu-method", spec.method, "--timeout", f"{LONGEST_S}s", "--temp-path", str(site.log_directory)]
    try:
        load = RunningCpuLoad(spec, group.start("stress-ng", command))
        load.await_work()
        yield load
        load.observe()
    finally:
        group.stop()


def _descendants(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def _busy_workers(pid: int) -> list[psutil.Process]:
    busy = []
    for process in _descendants(pid):
        with contextlib.suppress(psutil.NoSuchProcess):
            if process.cpu_times().user > 0:
                busy.append(process)
    return busy


def _cpu_seconds(pid: int) -> float:
    total = 0.0
    for process in _descendants(pid):
        with contextlib.suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            total += times.user + times.system
    return total
