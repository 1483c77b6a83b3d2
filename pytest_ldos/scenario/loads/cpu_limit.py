"""Limit of the CPUs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from pytest_ldos.base.requirements import require
from pytest_ldos.scenario.loads.spec import Cpus, LoadSpec, require_cpus


@dataclass(frozen=True, kw_only=True)
class CpuLimitSpec(LoadSpec):
    """Limits the CPUs that the stack may use.

    Attributes:
        cpus: on which all its threads run.
        quota_percent: of one CPU, for all its processes together (cgroup); ``0`` for no quota.
    """

    KIND: ClassVar[str] = "cpu_limit"
    LESS_IS_HARSHER: ClassVar[frozenset[str]] = frozenset({"cpus", "quota_percent"})

    cpus: Cpus = 1
    quota_percent: float = 0.0

    def __post_init__(self) -> None:
        require_cpus(self.cpus, "cpus", least=1)
        require(
            self.quota_percent == 0 or 1 <= self.quota_percent <= 102_400,
            f"a quota of {self.quota_percent:g} % of a CPU; between 1 and 102400 are possible, and 0 for none",
        )


SPEC: Final = CpuLimitSpec
