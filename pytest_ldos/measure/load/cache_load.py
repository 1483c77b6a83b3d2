"""Load on the CPU's caches: stress-ng's workers evict other processes' cache lines."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Final

from pytest_ldos.host.availability import Availability
from pytest_ldos.host.hardware_counters import Counters, Event
from pytest_ldos.measure.load.cpu_load import is_at_work, lacking_effort
from pytest_ldos.measure.load.protocol import GroupedProof, Load, LoadSite
from pytest_ldos.measure.load.stress_ng import WHOLE_CPU, RunningStressor, Stressor, run_stressor, stress_ng_available
from pytest_ldos.scenario.loads.spec import CacheLoadSpec
from pytest_ldos.scenario.model import StackSpec

COUNTED: Final = Event.CACHE_MISSES

_MILLION: Final = 1e6


@dataclass(frozen=True, kw_only=True)
class CacheLoadProof(GroupedProof):
    """See `LoadProof`.

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
        counted = (
            f"cache misses not counted: {self.uncounted}"
            if self.misses is None
            else f"{self.misses / _MILLION:.1f} million cache misses"
        )
        return (
            f"cache load: {self.workers} workers, {self.used_percent:.0f} % of a CPU used, {counted} "
            f"({self.group_found})"
        )


class RunningCacheLoad:
    """See `RunningLoad`."""

    def __init__(self, spec: CacheLoadSpec, stressor: RunningStressor, counters: Counters) -> None:
        self.spec = spec
        self._stressor = stressor
        self._counters = counters
        self._misses = counters.read()

    def count(self) -> None:
        """Records the misses so far; must be called before the counters are closed."""
        misses = self._counters.read()
        self._misses = self._misses if misses is None else misses

    @property
    def proof(self) -> CacheLoadProof:
        self.count()
        stress = self._stressor.measure()
        return CacheLoadProof(
            kind=self.spec.KIND,
            seconds=stress.seconds,
            shortfall=stress.shortfall or lacking_effort(stress, WHOLE_CPU * self.spec.workers),
            group=self.spec.group,
            group_found=stress.group.found,
            workers=self.spec.workers,
            used_percent=stress.used_percent,
            waited_percent=stress.waited_percent,
            misses=self._misses,
            uncounted=self._counters.reason,
        )


def cache_load_available(spec: CacheLoadSpec, stack: StackSpec) -> Availability:
    return stress_ng_available()


@contextmanager
def run_cache_load(spec: CacheLoadSpec, site: LoadSite) -> Iterator[RunningCacheLoad]:
    """Loads the caches inside the ``with`` block.

    Raises:
        Unavailable: stress-ng is not installed.
        LoadFailed: its workers did not start.
    """
    stressor = Stressor(spec.KIND, ("--cache", str(spec.workers)), spec.workers, spec.group)
    with (
        run_stressor(stressor, site, is_at_work) as running,
        closing(Counters(COUNTED, running.worker_pids())) as counters,
    ):
        load = RunningCacheLoad(spec, running, counters)
        try:
            yield load
        finally:
            load.count()


LOAD: Final = Load(run=run_cache_load, available=cache_load_available, proof=CacheLoadProof)
