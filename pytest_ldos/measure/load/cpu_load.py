"""Load on the CPUs: stress-ng's workers run alongside the stack."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Final

from pytest_ldos.base.errors import ConfigurationError, suggest
from pytest_ldos.host.availability import Availability
from pytest_ldos.host.cpu import Cpus, describe_cpus, our_cpus
from pytest_ldos.measure.load.cpu_choice import choose_cpus
from pytest_ldos.measure.load.protocol import GroupedProof, Load, LoadSite
from pytest_ldos.measure.load.stress_ng import (
    Effort,
    RunningStressor,
    Stress,
    Stressor,
    run_stressor,
    stress_ng_available,
)
from pytest_ldos.scenario.loads.spec import CpuLoadSpec
from pytest_ldos.scenario.model import StackSpec

REACHED_FRACTION: Final = 0.8
"""Smallest fraction of the requested load during which workers ran or were runnable."""

_METHODS_FOLLOW: Final = "must be one of:"
_ASK_LIMIT_S: Final = 10

_SLICE_MS: Final = "10"
"""Load slice: stress-ng's default of whole iterations misses small percentages by half."""


@dataclass(frozen=True, kw_only=True)
class CpuLoadProof(GroupedProof):
    """See `LoadProof`.

    Attributes:
        used_percent: percentage of a CPU used by all workers together.
        waited_percent: percentage of a CPU for which they were ready to run while others ran.
        cpus: CPUs that the workers may use, read back from each; the others are reserved.
    """

    workers: int
    percent: int
    method: str
    cpus: str
    used_percent: float
    waited_percent: float

    @property
    def applied(self) -> float:
        return self.used_percent

    def describe(self) -> str:
        waited = f", {self.waited_percent:.0f} % waited for one" if self.waited_percent >= 1 else ""
        used = f"{self.used_percent:.0f} % of a CPU used{waited}"
        return (
            f"CPU load: {self.workers} workers × {self.percent} % asked, {used} "
            f"({self.method} on CPUs {self.cpus}; {self.group_found})"
        )


class RunningCpuLoad:
    """See `RunningLoad`."""

    def __init__(self, spec: CpuLoadSpec, stressor: RunningStressor, cpus: Cpus) -> None:
        self.spec = spec
        self._stressor = stressor
        self._cpus = cpus

    @property
    def proof(self) -> CpuLoadProof:
        stress = self._stressor.measure()
        asked = self.spec.workers * self.spec.percent
        return CpuLoadProof(
            kind=self.spec.KIND,
            seconds=stress.seconds,
            shortfall=stress.shortfall or lacking_effort(stress, asked),
            group=self.spec.group,
            group_found=stress.group.found,
            workers=self.spec.workers,
            percent=self.spec.percent,
            method=self.spec.method,
            cpus=describe_cpus(self._cpus),
            used_percent=stress.used_percent,
            waited_percent=stress.waited_percent,
        )


def lacking_effort(stress: Stress, asked_percent: float) -> str:
    """Returns the reason why the requested load was not reached; time waiting for a busy CPU counts as load."""
    if stress.used_percent > 0 and stress.used_percent + stress.waited_percent >= REACHED_FRACTION * asked_percent:
        return ""
    return (
        f"the workers used {stress.used_percent:.0f} % of a CPU and waited {stress.waited_percent:.0f} % for one; "
        f"{asked_percent:.0f} % were asked for"
    )


def cpu_load_available(spec: CpuLoadSpec, stack: StackSpec) -> Availability:
    """Reports if stress-ng is installed; raises `ConfigurationError` for a method or CPUs that do not exist."""
    available = stress_ng_available()
    if available.ok:
        _refuse_unknown_method(spec.method)
        cpus_of_workers(spec)
    return available


def cpus_of_workers(spec: CpuLoadSpec) -> Cpus:
    """Returns all CPUs of this process except the reserved ones.

    Raises:
        ConfigurationError: reserved CPUs do not exist, or no CPU is left.
    """
    reserved = choose_cpus(spec.reserved, "cpu_load reserved")
    left = our_cpus() - reserved
    if not left:
        raise ConfigurationError(
            f"cpu_load reserves CPUs {describe_cpus(reserved)}, which leaves none for its workers",
            remedy="reserve fewer",
        )
    return left


def is_at_work(effort: Effort) -> bool:
    return effort.cpu_s > 0


@contextmanager
def run_cpu_load(spec: CpuLoadSpec, site: LoadSite) -> Iterator[RunningCpuLoad]:
    """Loads the CPUs inside the ``with`` block.

    Raises:
        Unavailable: stress-ng is not installed.
        ConfigurationError: its method or CPUs do not exist.
        LoadFailed: its workers did not start.
    """
    cpu_load_available(spec, site.stack).demand()
    cpus = cpus_of_workers(spec)
    what = ("--cpu", str(spec.workers), "--cpu-load", str(spec.percent), "--cpu-load-slice", _SLICE_MS)
    arguments = (*what, "--cpu-method", spec.method)
    stressor = Stressor(spec.KIND, arguments, spec.workers, spec.group, cpus)
    with run_stressor(stressor, site, is_at_work) as running:
        yield RunningCpuLoad(spec, running, cpus)


@cache
def cpu_methods() -> tuple[str, ...]:
    """Returns the CPU methods of the installed stress-ng; empty if it does not list them in time."""
    try:
        answer = subprocess.run(
            ["stress-ng", "--cpu", "1", "--cpu-method", "list"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=_ASK_LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return ()
    _, _, methods = (answer.stderr + answer.stdout).partition(_METHODS_FOLLOW)
    return tuple(methods.split())


def _refuse_unknown_method(method: str) -> None:
    known = cpu_methods()
    if known and method not in known:
        raise ConfigurationError(f"stress-ng has no CPU method {method!r}", remedy=suggest(method, known))


LOAD: Final = Load(run=run_cpu_load, available=cpu_load_available, proof=CpuLoadProof)
