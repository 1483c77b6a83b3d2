"""Load on memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from pytest_ldos.scenario.loads.spec import LoadSpec, SchedulerGroup, require_size, require_workers


@dataclass(frozen=True, kw_only=True)
class MemoryLoadSpec(LoadSpec):
    """stress-ng's workers that write and read memory.

    Attributes:
        workers: processes.
        size_mb: of each worker, in units of 10^6 bytes.
        group: as of `cpu_load`.
    """

    KIND: ClassVar[str] = "memory_load"

    workers: int = 1
    size_mb: int = 256
    group: SchedulerGroup = SchedulerGroup.STACK

    def __post_init__(self) -> None:
        require_workers(self.workers)
        require_size(self.size_mb)


SPEC: Final = MemoryLoadSpec
