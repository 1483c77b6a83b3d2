"""Load on memory: stress-ng's workers allocate, write and read memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import psutil

from pytest_ldos.host.availability import Availability
from pytest_ldos.measure.load.protocol import GroupedProof, Load, LoadSite
from pytest_ldos.measure.load.stress_ng import MB, Effort, RunningStressor, Stressor, run_stressor, stress_ng_available
from pytest_ldos.scenario.loads.spec import MemoryLoadSpec
from pytest_ldos.scenario.model import StackSpec

RESIDENT_FRACTION: Final = 0.95
"""Smallest accepted fraction of the requested memory."""


@dataclass(frozen=True, kw_only=True)
class MemoryLoadProof(GroupedProof):
    """See `LoadProof`.

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


class RunningMemoryLoad:
    """See `RunningLoad`."""

    def __init__(self, spec: MemoryLoadSpec, stressor: RunningStressor) -> None:
        self.spec = spec
        self._stressor = stressor

    @property
    def proof(self) -> MemoryLoadProof:
        stress = self._stressor.measure()
        resident_mb = stress.resident / MB
        return MemoryLoadProof(
            kind=self.spec.KIND,
            seconds=stress.seconds,
            shortfall=stress.shortfall or self._shortfall(resident_mb, stress.used_percent),
            group=self.spec.group,
            group_found=stress.group.found,
            workers=self.spec.workers,
            size_mb=self.spec.size_mb,
            resident_mb=resident_mb,
            used_percent=stress.used_percent,
        )

    def _shortfall(self, resident_mb: float, used_percent: float) -> str:
        asked_mb = self.spec.workers * self.spec.size_mb
        if resident_mb < RESIDENT_FRACTION * asked_mb:
            return f"the workers held {resident_mb:.0f} of {asked_mb} MB"
        return "" if used_percent > 0 else "the workers did not touch what they held"


def memory_load_available(spec: MemoryLoadSpec, stack: StackSpec) -> Availability:
    """Reports if the memory is available; otherwise the kernel would kill a process."""
    asked_mb = spec.workers * spec.size_mb
    free_mb = psutil.virtual_memory().available / MB
    if asked_mb > free_mb:
        reason = f"memory_load asks for {spec.workers} × {spec.size_mb} MB, {free_mb:.0f} MB are available"
        return Availability(False, reason, "ask for less")
    return stress_ng_available()


@contextmanager
def run_memory_load(spec: MemoryLoadSpec, site: LoadSite) -> Iterator[RunningMemoryLoad]:
    """Holds memory and works in it inside the ``with`` block.

    Raises:
        Unavailable: stress-ng is not installed, or there is not enough memory.
        LoadFailed: its workers did not start.
    """
    memory_load_available(spec, site.stack).demand()
    # stress-ng divides the given size between its workers.
    total = f"{spec.workers * spec.size_mb * MB}b"
    arguments = ("--vm", str(spec.workers), "--vm-bytes", total, "--vm-keep", "--vm-populate")

    def holds_all(effort: Effort) -> bool:
        return effort.resident >= RESIDENT_FRACTION * spec.size_mb * MB

    with run_stressor(Stressor(spec.KIND, arguments, spec.workers, spec.group), site, holds_all) as running:
        yield RunningMemoryLoad(spec, running)


LOAD: Final = Load(run=run_memory_load, available=memory_load_available, proof=MemoryLoadProof)
