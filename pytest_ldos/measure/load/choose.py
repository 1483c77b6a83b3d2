"""The load that a spec stands for: the one place that knows all loads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Final

from pytest_ldos.host.availability import Availability
from pytest_ldos.measure.load.cache_load import cache_load_available, run_cache_load
from pytest_ldos.measure.load.cpu_limit import cpu_limit_available, run_cpu_limit
from pytest_ldos.measure.load.cpu_load import cpu_load_available, run_cpu_load
from pytest_ldos.measure.load.dds_flood import dds_flood_available, run_dds_flood
from pytest_ldos.measure.load.guard import guard_available, run_guard
from pytest_ldos.measure.load.io_load import io_load_available, run_io_load
from pytest_ldos.measure.load.memory_load import memory_load_available, run_memory_load
from pytest_ldos.measure.load.neighbour import neighbour_available, run_neighbour
from pytest_ldos.measure.load.network_impairment import network_impairment_available, run_network_impairment
from pytest_ldos.measure.load.protocol import LoadSite, RunningLoad
from pytest_ldos.scenario.loads import (
    CacheLoadSpec,
    CpuLimitSpec,
    CpuLoadSpec,
    DdsFloodSpec,
    GuardSpec,
    IoLoadSpec,
    LoadSpec,
    MemoryLoadSpec,
    NetworkImpairmentSpec,
    NoisyNeighbourSpec,
)
from pytest_ldos.scenario.model import StackSpec


def _always(spec: LoadSpec, stack: StackSpec) -> Availability:
    return Availability(True)


@dataclass(frozen=True)
class _Load:
    """The implementation of a kind of load.

    Attributes:
        run: applies it for as long as its context lasts.
        available: reports if it can be applied on this machine, given the stack.
    """

    run: Callable[[Any, LoadSite], AbstractContextManager[RunningLoad]]
    available: Callable[[Any, StackSpec], Availability] = _always


_LOADS: Final[Mapping[str, _Load]] = {
    CacheLoadSpec.KIND: _Load(run_cache_load, cache_load_available),
    CpuLimitSpec.KIND: _Load(run_cpu_limit, cpu_limit_available),
    CpuLoadSpec.KIND: _Load(run_cpu_load, cpu_load_available),
    DdsFloodSpec.KIND: _Load(run_dds_flood, dds_flood_available),
    GuardSpec.KIND: _Load(run_guard, guard_available),
    IoLoadSpec.KIND: _Load(run_io_load, io_load_available),
    MemoryLoadSpec.KIND: _Load(run_memory_load, memory_load_available),
    NetworkImpairmentSpec.KIND: _Load(run_network_impairment, network_impairment_available),
    NoisyNeighbourSpec.KIND: _Load(run_neighbour, neighbour_available),
}


def run_load(spec: LoadSpec, site: LoadSite) -> AbstractContextManager[RunningLoad]:
    """Applies a load for as long as the context lasts.

    Raises:
        Unavailable: it cannot be applied on this machine.
        LoadFailed: it was not reached.
    """
    return _LOADS[spec.KIND].run(spec, site)


def load_available(spec: LoadSpec, stack: StackSpec) -> Availability:
    """Reports if a load can be applied on this machine, given the stack, as far as that is known in advance."""
    return _LOADS[spec.KIND].available(spec, stack)
