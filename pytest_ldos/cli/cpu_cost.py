"""``ldos cpu-cost``: what a message costs in CPU time, layer by layer."""

from __future__ import annotations

from pytest_ldos.cli.instrument_options import takes_settings
from pytest_ldos.cli.studies import Outputs, run_instrument
from pytest_ldos.instruments.cpu_cost.instrument import INSTRUMENT
from pytest_ldos.instruments.cpu_cost.spec import CpuCostSpec


@takes_settings(CpuCostSpec)
def cpu_cost(spec: CpuCostSpec, outputs: Outputs) -> None:
    """Measure the CPU time of a message, layer by layer.

    Context switches, too.

    The same traffic is exchanged as plain calls, over DDS alone, in one node, in many, and in many with a participant
    each, beside nodes that publish nothing. Every rung is a process of its own, and rungs take turns.

    Exit code: 0 there are results, 11 it could not be measured, 130 interrupted.
    """
    run_instrument(INSTRUMENT, spec, outputs)
