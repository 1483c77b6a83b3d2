"""Load on storage: stress-ng's workers write files and sync them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from pytest_ldos.base.errors import LoadFailed
from pytest_ldos.host.availability import Availability
from pytest_ldos.measure.load.cpu_load import is_at_work
from pytest_ldos.measure.load.protocol import GroupedProof, Load, LoadSite
from pytest_ldos.measure.load.stress_ng import MB, RunningStressor, Stressor, run_stressor, stress_ng_available
from pytest_ldos.scenario.loads.spec import IoLoadSpec
from pytest_ldos.scenario.model import StackSpec


@dataclass(frozen=True, kw_only=True)
class IoLoadProof(GroupedProof):
    """See `LoadProof`.

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


class RunningIoLoad:
    """See `RunningLoad`."""

    def __init__(self, spec: IoLoadSpec, stressor: RunningStressor, folder: str) -> None:
        self.spec = spec
        self._stressor = stressor
        self._folder = folder

    @property
    def proof(self) -> IoLoadProof:
        stress = self._stressor.measure()
        return IoLoadProof(
            kind=self.spec.KIND,
            seconds=stress.seconds,
            shortfall=stress.shortfall or self._shortfall(stress.written),
            group=self.spec.group,
            group_found=stress.group.found,
            workers=self.spec.workers,
            size_mb=self.spec.size_mb,
            written_mb=sum(stress.written) / MB,
            used_percent=stress.used_percent,
        )

    def _shortfall(self, written: tuple[int, ...]) -> str:
        writers = sum(each > 0 for each in written)
        if writers >= self.spec.workers:
            return ""
        hint = "" if writers else f"; is {self._folder} in memory (tmpfs)?"
        return f"{writers} of {self.spec.workers} workers wrote to storage{hint}"


def io_load_available(spec: IoLoadSpec, stack: StackSpec) -> Availability:
    return stress_ng_available()


@contextmanager
def run_io_load(spec: IoLoadSpec, site: LoadSite) -> Iterator[RunningIoLoad]:
    """Writes to the log folder inside the ``with`` block.

    Raises:
        Unavailable: stress-ng is not installed.
        LoadFailed: there is not enough disk space, or its workers did not start.
    """
    _demand_room(spec, site)
    # stress-ng divides the given size between its workers.
    total = f"{spec.workers * spec.size_mb * MB}b"
    arguments = ("--hdd", str(spec.workers), "--hdd-bytes", total, "--hdd-opts", "fsync")
    with run_stressor(Stressor(spec.KIND, arguments, spec.workers, spec.group), site, is_at_work) as running:
        yield RunningIoLoad(spec, running, str(site.log_directory))


def _demand_room(spec: IoLoadSpec, site: LoadSite) -> None:
    free_mb = shutil.disk_usage(site.log_directory).free / MB
    if spec.workers * spec.size_mb > free_mb:
        raise LoadFailed(
            f"io_load writes {spec.workers} files of {spec.size_mb} MB, {free_mb:.0f} MB are free "
            f"where {site.log_directory} is",
            remedy="ask for less, or make room",
        )


LOAD: Final = Load(run=run_io_load, available=io_load_available, proof=IoLoadProof)
