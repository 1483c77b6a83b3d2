"""Applies the loads that specs stand for, one or several at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from importlib import import_module
from typing import Final, cast

from pytest_ldos.host.availability import Availability
from pytest_ldos.measure.load.programs import programs_available
from pytest_ldos.measure.load.protocol import Load, LoadSite, RunningLoad
from pytest_ldos.scenario.loads.registry import LOAD_SPECS
from pytest_ldos.scenario.loads.spec import LoadSpec
from pytest_ldos.scenario.model import StackSpec


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
