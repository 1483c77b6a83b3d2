"""Applies loads from their specs, to one stack or to each of several."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from importlib import import_module
from typing import Final, cast

from pytest_ldos.base.errors import LoadFailed
from pytest_ldos.host.availability import Availability, find_modules, find_ros_packages
from pytest_ldos.measure.load.protocol import Load, LoadProof, LoadSite, RunningLoad
from pytest_ldos.robot.stack.choose import resolve_kind
from pytest_ldos.scenario.loads import LOAD_SPECS, LoadSpec
from pytest_ldos.scenario.model import StackSpec
from pytest_ldos.scenario.words import StackKind

_EMBEDDED_PARTS: Final = ("cyclonedds", "rosbags")
_MODULES: Final = dict.fromkeys(("cpu_load", "memory_load", "cache_load", "io_load"), "stress_loads")
"""Modules of loads that share one."""


class _Loads(dict[str, Load]):
    """Implementations by kind, imported on first use; the module ``measure.load.KIND`` defines `LOADS`."""

    def __missing__(self, kind: str) -> Load:
        module = import_module(f"pytest_ldos.measure.load.{_MODULES.get(kind, kind)}")
        return self.setdefault(kind, cast("Load", module.LOADS[kind]))


IMPLEMENTATIONS: Final = _Loads()


def run_load(spec: LoadSpec, site: LoadSite) -> AbstractContextManager[RunningLoad]:
    """Applies a load inside the ``with`` block.

    Raises:
        Unavailable: it cannot be applied on this machine.
        ConfigurationError: its settings cannot be met here: a method, CPUs, a path or publishers that do not exist.
        LoadFailed: it does not start, or the requested load was not reached.
    """
    return IMPLEMENTATIONS[spec.KIND].run(spec, site)


def load_available(spec: LoadSpec, stack: StackSpec, environment: Mapping[str, str] | None = None) -> Availability:
    """Reports if a load can be applied to a stack on this machine, as far as known in advance.

    Args:
        environment: environment of the stack's sourced workspace; by default that of this process.
    """
    load = IMPLEMENTATIONS[spec.KIND]
    programs = Availability(True)
    if load.package and resolve_kind(stack) is StackKind.ROS2:
        programs = find_ros_packages([load.package], environment=environment)
    elif load.package:
        programs = find_modules(_EMBEDDED_PARTS, extra="embedded")
    return load.available(spec, stack) if programs.ok else programs


def in_order(specs: Sequence[LoadSpec]) -> list[LoadSpec]:
    """Sorts loads: limits first, floods last; each load must fit in what the previous ones leave."""
    return sorted(specs, key=lambda spec: list(LOAD_SPECS).index(spec.KIND))


@contextmanager
def apply_loads(specs: Sequence[LoadSpec], site: LoadSite) -> Iterator[list[RunningLoad]]:
    """Applies all loads inside the ``with`` block; they end in reverse order.

    Raises:
        Unavailable, LoadFailed: see `run_load`; loads that were already running have ended.
    """
    together = replace(site, loads=tuple(specs))
    with ExitStack() as resources:
        yield [resources.enter_context(run_load(spec, together)) for spec in in_order(specs)]


RunLoad = Callable[[LoadSpec, LoadSite], AbstractContextManager[RunningLoad]]
"""See `run_load`."""


class RepeatedLoad:
    """A load that is applied to every stack started in a run; see `RunningLoad`.

    Args:
        spec: the load to apply to each stack.
        run: applies it to one stack.
    """

    def __init__(self, spec: LoadSpec, run: RunLoad = run_load) -> None:
        self.spec = spec
        self._run = run
        self._proofs: list[LoadProof] = []

    @contextmanager
    def applied_to(self, site: LoadSite) -> Iterator[RunningLoad]:
        """Applies the load at a site inside the ``with`` block; raises as `run_load`."""
        with self._run(self.spec, site) as running:
            yield running
        self._proofs.append(running.proof)

    @property
    def proof(self) -> LoadProof:
        """The proof of the site with the lowest applied load; raises `LoadFailed` before the first one."""
        if not self._proofs:
            raise LoadFailed(
                "there is no proof of this load yet: each version gets it while its trials are made",
                remedy="ask for the proof after ldos_trials(…)",
            )
        return min(self._proofs, key=lambda proof: (not proof.shortfall, proof.applied))
