"""Registry of instruments by name, imported on first use."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final, cast

if TYPE_CHECKING:
    from pytest_ldos.instruments.study import Instrument

MODULES: Final[dict[str, str]] = {
    "latency": "pytest_ldos.instruments.latency.instrument",
    "topology": "pytest_ldos.instruments.topology.instrument",
    "cpu_cost": "pytest_ldos.instruments.cpu_cost.instrument",
    "tracing_cost": "pytest_ldos.instruments.tracing_cost.instrument",
}
"""Module by name of the instrument; each defines `INSTRUMENT`, and ``cli.instruments`` its command ``NAME``."""


def find_instrument(name: str) -> Instrument:
    return cast("Instrument", import_module(MODULES[name]).INSTRUMENT)
