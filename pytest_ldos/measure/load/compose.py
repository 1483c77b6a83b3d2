"""Several loads at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from pytest_ldos.measure.load.choose import run_load
from pytest_ldos.measure.load.protocol import LoadSite, RunningLoad
from pytest_ldos.scenario.loads.registry import LOAD_SPECS
from pytest_ldos.scenario.loads.spec import LoadSpec


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
