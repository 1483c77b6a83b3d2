"""Applies the loads that specs stand for, once or for each of several stacks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from importlib import import_module
from typing import Final, cast

from pytest_ldos.base.errors import LoadFailed
from pytest_ldos.host.availability import Availability, find_modules
from pytest_ldos.host.ros import find_ros_packages
from pytest_ldos.measure.load.protocol import Load, LoadProof, LoadSite, RunningLoad
from pytest_ldos.robot.stack.choose import resolve_kind
from pytest_ldos.scenario.loads.registry import LOAD_SPECS
from pytest_ldos.scenario.loads.spec import LoadSpec
from pytest_ldos.scenario.model import StackSpec
from pytest_ldos.scenario.words import StackKind

_EMBEDDED_PARTS: Final = ("cyclonedds", "rosbags")


def programs_available(stack: StackSpec, package: str, environment: Mapping[str, str] | None = None) -> Availability:
    """Checks Python's over Cyclone DDS for the embedded stack, those of a package of the ROS workspace for ROS 2."""
    if resolve_kind(stack) is StackKind.ROS2:
        return find_ros_packages([package], environment=environment)
    return find_modules(_EMBEDDED_PARTS, extra="embedded")


class _Loads(dict[str, Load]):
    """Implementations by kind, imported on first use; the module ``measure.load.KIND`` defines `LOAD`."""

    def __missing__(self, kind: str) -> Load:
        return self.setdefault(kind, cast("Load", import_module(f"pytest_ldos.measure.load.{kind}").LOAD))


IMPLEMENTATIONS: Final = _Loads()


def run_load(spec: LoadSpec, site: LoadSite) -> AbstractContextManager[RunningLoad]:
    """Applies a load for as long as the context lasts.

    Raises:
        Unavailable: it cannot be applied on this machine.
        LoadFailed: it was not reached.
    """
    return IMPLEMENTATIONS[spec.KIND].run(spec, site)


def load_available(spec: LoadSpec, stack: StackSpec, environment: Mapping[str, str] | None = None) -> Availability:
    """Reports if a load can be applied on this machine, given the stack, as far as that is known in advance.

    Args:
        environment: environment made by sourcing the stack's workspace; ours by default.
    """
    load = IMPLEMENTATIONS[spec.KIND]
    programs = programs_available(stack, load.package, environment) if load.package else Availability(True)
    return load.available(spec, stack) if programs.ok else programs


def in_order(specs: Sequence[LoadSpec]) -> list[LoadSpec]:
    """Sorts limits first and floods last, so that each load applies to what those before it left."""
    return sorted(specs, key=lambda spec: list(LOAD_SPECS).index(spec.KIND))


@contextmanager
def apply_loads(specs: Sequence[LoadSpec], site: LoadSite) -> Iterator[list[RunningLoad]]:
    """Applies all loads for as long as the context lasts; they end in reverse order.

    Raises:
        Unavailable, LoadFailed: see `run_load`; loads that were already running have ended.
    """
    together = replace(site, beside=tuple(specs))
    with ExitStack() as resources:
        yield [resources.enter_context(run_load(spec, together)) for spec in in_order(specs)]


RunLoad = Callable[[LoadSpec, LoadSite], AbstractContextManager[RunningLoad]]
"""See `run_load`."""


class RepeatedLoad:
    """See `RunningLoad`: a load that runs wherever it is applied.

    Args:
        spec: the load to apply for each stack.
        run: applies it for one stack.
    """

    def __init__(self, spec: LoadSpec, run: RunLoad = run_load) -> None:
        self.spec = spec
        self._run = run
        self._proofs: list[LoadProof] = []

    @contextmanager
    def beside(self, site: LoadSite) -> Iterator[RunningLoad]:
        """Applies it for as long as the context lasts.

        Raises:
            LoadFailed, Unavailable: it could not be applied.
        """
        with self._run(self.spec, site) as running:
            yield running
        self._proofs.append(running.proof)

    @property
    def proof(self) -> LoadProof:
        """The proof of the place where the least was applied.

        Raises:
            LoadFailed: it has not been applied anywhere yet.
        """
        if not self._proofs:
            raise LoadFailed(
                "there is no proof of this load yet: each version gets it while its trials are made",
                remedy="ask for the proof after ldos_trials(…)",
            )
        return min(self._proofs, key=lambda proof: (not proof.shortfall, proof.applied))
