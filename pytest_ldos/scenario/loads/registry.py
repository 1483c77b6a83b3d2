"""Registry of the loads' specs."""

from __future__ import annotations

from typing import Final

from pytest_ldos.scenario.loads.flood import DdsFloodSpec, GuardSpec
from pytest_ldos.scenario.loads.spec import (
    CacheLoadSpec,
    CpuLimitSpec,
    CpuLoadSpec,
    IoLoadSpec,
    LoadSpec,
    MemoryLoadSpec,
    NetworkImpairmentSpec,
    NoisyNeighbourSpec,
)

LOAD_SPECS: Final[dict[str, type[LoadSpec]]] = {
    each.KIND: each
    for each in (
        CpuLimitSpec,
        NetworkImpairmentSpec,
        GuardSpec,
        NoisyNeighbourSpec,
        MemoryLoadSpec,
        CacheLoadSpec,
        IoLoadSpec,
        CpuLoadSpec,
        DdsFloodSpec,
    )
}
"""Specs by kind of load, in the order in which several are applied: limits first, floods last."""
