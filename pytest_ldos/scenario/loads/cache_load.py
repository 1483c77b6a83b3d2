"""Load on the CPU's caches."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Final

from pytest_ldos.scenario.loads.spec import LoadSpec, SchedulerGroup, one_a_cpu, require_workers


@dataclass(frozen=True, kw_only=True)
class CacheLoadSpec(LoadSpec):
    """stress-ng's workers that throw others' data out of the CPU's caches.

    Attributes:
        workers: processes; one a CPU by default.
        group: as of `cpu_load`.
    """

    KIND: ClassVar[str] = "cache_load"

    workers: int = field(default_factory=one_a_cpu)
    group: SchedulerGroup = SchedulerGroup.STACK

    def __post_init__(self) -> None:
        require_workers(self.workers)


SPEC: Final = CacheLoadSpec
