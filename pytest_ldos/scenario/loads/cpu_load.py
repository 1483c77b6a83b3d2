"""CPU load."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Final

from pytest_ldos.base.requirements import require
from pytest_ldos.scenario.loads.spec import Cpus, LoadSpec, SchedulerGroup, one_a_cpu, require_cpus, require_workers


@dataclass(frozen=True, kw_only=True)
class CpuLoadSpec(LoadSpec):
    """stress-ng's CPU stressor.

    Attributes:
        workers: processes; one a CPU by default.
        percent: of a CPU, for each worker.
        method: one of stress-ng's (``--cpu-method``).
        reserved: CPUs that the workers leave to the stack; ``0`` for none.
        group: whom the workers compete with: the stack's processes one by one, or the stack as a whole.
    """

    KIND: ClassVar[str] = "cpu_load"
    LESS_IS_HARSHER: ClassVar[frozenset[str]] = frozenset({"reserved"})

    workers: int = field(default_factory=one_a_cpu)
    percent: int = 80
    method: str = "matrixprod"
    reserved: Cpus = 0
    group: SchedulerGroup = SchedulerGroup.STACK

    def __post_init__(self) -> None:
        require_workers(self.workers)
        require(1 <= self.percent <= 100, f"a CPU load of {self.percent} %; between 1 and 100 are possible")
        require_cpus(self.reserved, "reserved", least=0)


SPEC: Final = CpuLoadSpec
