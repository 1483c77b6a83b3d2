"""The implementation of the load that a spec stands for."""

from __future__ import annotations

from contextlib import AbstractContextManager
from importlib import import_module
from typing import Final, cast

from pytest_ldos.host.availability import Availability
from pytest_ldos.measure.load.protocol import Load, LoadSite, RunningLoad
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


def load_available(spec: LoadSpec, stack: StackSpec) -> Availability:
    """Reports if a load can be applied on this machine, given the stack, as far as that is known in advance."""
    return IMPLEMENTATIONS[spec.KIND].available(spec, stack)
