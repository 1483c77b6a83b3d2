"""``ldos tracing-cost``: how much later messages come when they are recorded."""

from __future__ import annotations

from pytest_ldos.cli.instrument_options import takes_settings
from pytest_ldos.cli.studies import Outputs, run_instrument
from pytest_ldos.instruments.tracing_cost.instrument import INSTRUMENT
from pytest_ldos.instruments.tracing_cost.spec import TracingCostSpec


@takes_settings(TracingCostSpec)
def tracing_cost(spec: TracingCostSpec, outputs: Outputs) -> None:
    """Measure what tracing itself costs.

    Publish → callback with and without it, and nanoseconds a tracepoint.

    Processes are started afresh without tracing, under LTTng and under eBPF, interleaved; overheads are means over such
    turns, with intervals.

    Exit code: 0 there are results, 11 it could not be measured, 130 interrupted.
    """
    run_instrument(INSTRUMENT, spec, outputs)
