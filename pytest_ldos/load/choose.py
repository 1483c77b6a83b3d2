"""Which load a spec stands for: the one place that knows all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Final

from pytest_ldos.errors import Unavailable
from pytest_ldos.host.availability import Availability
from pytest_ldos.load.cpu_load import run_cpu_load, stress_ng_available
from pytest_ldos.load.dds_flood import run_flood
from pytest_ldos.load.protocol import LoadSite, RunningLoad
from pytest_ldos.scenario.loads import CpuLoadSpec, DdsFloodSpec, LoadSpec
from pytest_ldos.scenario.model import StackSpec


def _always(spec: LoadSpec, stack: StackSpec) -> Availability:
    return Availability(True)


def _with_stress_ng(spec: LoadSpec, stack: StackSpec) -> Availability:
    return stress_ng_available()


@dataclass(frozen=True)
class _Load:
    """How a kind of load is applied.

    Attributes:
        run: applies it for as long as its context lasts.
        available: whether it can be, on this machine, beside a stack.
    """

    run: Callable[[Any, LoadSite], AbstractContextManager[RunningLoad]]
    available: Callable[[Any, StackSpec], Availability] = _always


_LOADS: Final[Mapping[str, _Load]] = {
    CpuLoadSpec.KIND: _Load(run_cpu_load, _with_stress_ng),
    DdsFloodSpec.KIND: _Load(run_flood),
}


def run_load(spec: LoadSpec, site: LoadSite) -> AbstractContextManager[RunningLoad]:
    """Applies a load for as long as the context lasts.

    Raises:
        Unavailable: it cannot be applied on this machine.
        LoadFailed: it was not reached.
    """
    if spec.KIND not in _LOADS:
        raise Unavailable(f"there is no load {spec.KIND} yet")
    return _LOADS[spec.KIND].run(spec, site)


def load_available(spec: LoadSpec, stack: StackSpec) -> Availability:
    """Whether a load can be applied on this machine beside a stack, as far as can be known before it is."""
    if spec.KIND not in _LOADS:
        return Availability(False, f"there is no load {spec.KIND} yet")
    return _LOADS[spec.KIND].available(spec, stack)
