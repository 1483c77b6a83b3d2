"""Loads by stress-ng's workers: on CPUs, memory, the CPUs' caches and storage."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Final

import psutil

from pytest_ldos.base.errors import ConfigurationError, LoadFailed, suggest
from pytest_ldos.host.availability import Availability
from pytest_ldos.host.counters import Counters, Event
from pytest_ldos.host.cpu import Cpus, describe_cpus, our_cpus
from pytest_ldos.measure.load.cpu_limit import choose_cpus
from pytest_ldos.measure.load.protocol import GroupedProof, Load, LoadSite
from pytest_ldos.measure.load.stress_ng import RunningStressor, Stress, run_stressor, stress_ng_available
from pytest_ldos.record.protocol import run_tool
from pytest_ldos.scenario.loads import CacheLoadSpec, CpuLoadSpec, IoLoadSpec, MemoryLoadSpec
from pytest_ldos.scenario.model import StackSpec

_MB: Final = 10**6


REACHED_FRACTION: Final = 0.8  # smallest fraction of the requested load during which workers ran or were runnable


def lacking_effort(stress: Stress, asked_percent: float) -> str:
    """Reason why the requested load was not reached; time waiting for a busy CPU counts as load."""
    if stress.used_percent > 0 and stress.used_percent + stress.waited_percent >= REACHED_FRACTION * asked_percent:
        return ""
    return (
        f"the workers used {stress.used_percent:.0f} % of a CPU and waited {stress.waited_percent:.0f} % for one; "
        f"{asked_percent:.0f} % were asked for"
    )


_METHODS_FOLLOW: Final = "must be one of:"
_ASK_LIMIT_S: Final = 10
_SLICE_MS: Final = "10"  # load slice: stress-ng's default of whole iterations misses small percentages by half


@dataclass(frozen=True, kw_only=True)
class CpuLoadProof(GroupedProof):
    """Proof of a CPU load.

    Attributes:
        used_percent: percentage of a CPU used by all workers together.
        waited_percent: percentage of a CPU for which they were ready to run while others ran.
        cpus: CPUs that the workers may use, read back from each; the others are reserved.
    """

    workers: int
    percent: int
    method: str
    cpus: str
    used_percent: float
    waited_percent: float

    @property
    def applied(self) -> float:
        return self.used_percent

    def describe(self) -> str:
        waited = f", {self.waited_percent:.0f} % waited for one" if self.waited_percent >= 1 else ""
        used = f"{self.used_percent:.0f} % of a CPU used{waited}"
        return (
            f"CPU load: {self.workers} workers × {self.percent} % asked, {used} "
            f"({self.method} on CPUs {self.cpus}; {self.group_found})"
        )


def cpu_load_available(spec: CpuLoadSpec, stack: StackSpec) -> Availability:
    """Reports if stress-ng is installed; raises `ConfigurationError` for a method or CPUs that do not exist."""
    available = stress_ng_available()
    if available.ok:
        known = cpu_methods()
        if known and spec.method not in known:
            raise ConfigurationError(f"stress-ng has no CPU method {spec.method!r}", remedy=suggest(spec.method, known))
        _cpus_of_workers(spec, stack)
    return available


def _cpus_of_workers(spec: CpuLoadSpec, stack: StackSpec) -> Cpus:
    """Returns all CPUs of this process except the reserved ones; raises `ConfigurationError` if none is left."""
    reserved = choose_cpus(spec.reserved, "cpu_load reserved", stack)
    left = our_cpus() - reserved
    if not left:
        raise ConfigurationError(
            f"cpu_load reserves CPUs {describe_cpus(reserved)}, which leaves none for its workers",
            remedy="reserve fewer",
        )
    return left


@cache
def cpu_methods() -> tuple[str, ...]:
    """CPU methods of the installed stress-ng; empty if it does not list them in time."""
    answer = run_tool(["stress-ng", "--cpu", "1", "--cpu-method", "list"], limit_s=_ASK_LIMIT_S)
    if answer is None:
        return ()
    _, _, methods = (answer.stderr + answer.stdout).partition(_METHODS_FOLLOW)
    return tuple(methods.split())


def run_cpu_load(spec: CpuLoadSpec, site: LoadSite) -> AbstractContextManager[RunningStressor[CpuLoadProof]]:
    cpu_load_available(spec, site.stack).demand()
    cpus = _cpus_of_workers(spec, site.stack)

    def prove(stress: Stress) -> CpuLoadProof:
        return CpuLoadProof(
            **stress.shared_fields(spec, lacking_effort(stress, spec.workers * spec.percent)),
            percent=spec.percent,
            method=spec.method,
            cpus=describe_cpus(cpus),
            waited_percent=stress.waited_percent,
        )

    load = ("--cpu-load", str(spec.percent), "--cpu-load-slice", _SLICE_MS)
    arguments = ("--cpu", str(spec.workers), *load, "--cpu-method", spec.method)
    return run_stressor(spec, site, arguments=arguments, prove=prove, cpus=cpus)


RESIDENT_FRACTION: Final = 0.95  # smallest accepted fraction of the requested memory


@dataclass(frozen=True, kw_only=True)
class MemoryLoadProof(GroupedProof):
    """Proof of a memory load.

    Attributes:
        resident_mb: smallest total resident memory of the workers, 10^6 bytes.
        used_percent: percentage of a CPU used by all workers together.
    """

    workers: int
    size_mb: int
    resident_mb: float
    used_percent: float

    @property
    def applied(self) -> float:
        return self.resident_mb

    def describe(self) -> str:
        return (
            f"memory load: {self.workers} workers × {self.size_mb} MB asked, {self.resident_mb:.0f} MB resident, "
            f"{self.used_percent:.0f} % of a CPU used ({self.group_found})"
        )


def prove_memory_load(spec: MemoryLoadSpec, stress: Stress) -> MemoryLoadProof:
    asked_mb, resident_mb = spec.workers * spec.size_mb, stress.resident / _MB
    shortfall = "" if stress.used_percent > 0 else "the workers did not touch what they held"
    if resident_mb < RESIDENT_FRACTION * asked_mb:
        shortfall = f"the workers held {resident_mb:.0f} of {asked_mb} MB"
    return MemoryLoadProof(**stress.shared_fields(spec, shortfall), size_mb=spec.size_mb, resident_mb=resident_mb)


def memory_load_available(spec: MemoryLoadSpec, stack: StackSpec) -> Availability:
    """Reports if so much memory is free; otherwise the kernel would kill a process."""
    free_mb = psutil.virtual_memory().available / _MB
    if spec.workers * spec.size_mb > free_mb:
        reason = f"memory_load asks for {spec.workers} × {spec.size_mb} MB, {free_mb:.0f} MB are available"
        return Availability(False, reason, "ask for less")
    return stress_ng_available()


def run_memory_load(spec: MemoryLoadSpec, site: LoadSite) -> AbstractContextManager[RunningStressor[MemoryLoadProof]]:
    memory_load_available(spec, site.stack).demand()
    total = f"{spec.workers * spec.size_mb * _MB}b"  # stress-ng divides it between its workers
    return run_stressor(
        spec,
        site,
        arguments=("--vm", str(spec.workers), "--vm-bytes", total, "--vm-keep", "--vm-populate"),
        is_working=lambda effort: effort.resident >= RESIDENT_FRACTION * spec.size_mb * _MB,
        prove=lambda stress: prove_memory_load(spec, stress),
    )


COUNTED: Final = Event.CACHE_MISSES


@dataclass(frozen=True, kw_only=True)
class CacheLoadProof(GroupedProof):
    """Proof of a cache load.

    Attributes:
        used_percent: percentage of a CPU used by all workers together.
        waited_percent: percentage of a CPU for which they were ready to run while others ran.
        misses: last-level cache misses of the workers; ``None`` if they cannot be counted.
        uncounted: why they cannot be counted.
    """

    workers: int
    used_percent: float
    waited_percent: float
    misses: int | None
    uncounted: str

    @property
    def applied(self) -> float:
        return self.used_percent

    def describe(self) -> str:
        counted = f"cache misses not counted: {self.uncounted}"
        if self.misses is not None:
            counted = f"{self.misses / 1e6:.1f} million cache misses"
        return (
            f"cache load: {self.workers} workers, {self.used_percent:.0f} % of a CPU used, {counted} "
            f"({self.group_found})"
        )


@contextmanager
def run_cache_load(spec: CacheLoadSpec, site: LoadSite) -> Iterator[RunningStressor[CacheLoadProof]]:
    misses: int | None = None

    def count() -> int | None:  # the last number after the counters are closed
        nonlocal misses
        now = counters.read()
        misses = misses if now is None else now
        return misses

    def prove(stress: Stress) -> CacheLoadProof:
        return CacheLoadProof(
            **stress.shared_fields(spec, lacking_effort(stress, 100 * spec.workers)),
            waited_percent=stress.waited_percent,
            misses=count(),
            uncounted=counters.reason,
        )

    arguments = ("--cache", str(spec.workers))
    with (
        run_stressor(spec, site, arguments=arguments, prove=prove) as running,
        closing(Counters(COUNTED, running.worker_pids())) as counters,
    ):
        count()
        try:
            yield running
        finally:
            count()


@dataclass(frozen=True, kw_only=True)
class IoLoadProof(GroupedProof):
    """Proof of an I/O load.

    Attributes:
        written_mb: 10^6 bytes that the workers wrote to storage, by the kernel's count per process.
        used_percent: percentage of a CPU used by all workers together.
    """

    workers: int
    size_mb: int
    written_mb: float
    used_percent: float

    @property
    def rate_mbps(self) -> float:
        """10^6 bytes per second."""
        return self.written_mb / self.seconds if self.seconds > 0 else 0.0

    @property
    def applied(self) -> float:
        return self.rate_mbps

    def describe(self) -> str:
        return (
            f"I/O load: {self.workers} workers, {self.written_mb:.0f} MB written and synced "
            f"({self.rate_mbps:.0f} MB/s, files of {self.size_mb} MB; {self.group_found})"
        )


def run_io_load(spec: IoLoadSpec, site: LoadSite) -> AbstractContextManager[RunningStressor[IoLoadProof]]:
    """Writes to the log folder; see `run_load`."""
    free_mb = shutil.disk_usage(site.log_directory).free / _MB
    if spec.workers * spec.size_mb > free_mb:
        raise LoadFailed(
            f"io_load writes {spec.workers} files of {spec.size_mb} MB, {free_mb:.0f} MB are free "
            f"where {site.log_directory} is",
            remedy="ask for less, or make room",
        )

    def prove(stress: Stress) -> IoLoadProof:
        writers = sum(each > 0 for each in stress.written)
        hint = "" if writers else f"; is {site.log_directory} in memory (tmpfs)?"
        lacking = f"{writers} of {spec.workers} workers wrote to storage{hint}" if writers < spec.workers else ""
        shared = stress.shared_fields(spec, lacking)
        return IoLoadProof(**shared, size_mb=spec.size_mb, written_mb=sum(stress.written) / _MB)

    total = f"{spec.workers * spec.size_mb * _MB}b"  # stress-ng divides it between its workers
    arguments = ("--hdd", str(spec.workers), "--hdd-bytes", total, "--hdd-opts", "fsync")
    return run_stressor(spec, site, arguments=arguments, prove=prove)


LOADS: Final = {
    CpuLoadSpec.KIND: Load(run=run_cpu_load, available=cpu_load_available, proof=CpuLoadProof),
    MemoryLoadSpec.KIND: Load(run=run_memory_load, available=memory_load_available, proof=MemoryLoadProof),
    CacheLoadSpec.KIND: Load(run=run_cache_load, available=lambda *_: stress_ng_available(), proof=CacheLoadProof),
    IoLoadSpec.KIND: Load(run=run_io_load, available=lambda *_: stress_ng_available(), proof=IoLoadProof),
}
