"""``ldos tracing-cost``: how much later messages come when they are recorded."""

from __future__ import annotations

from typing import Annotated

import typer

from pytest_ldos.cli.output import FormatOption, OutputOption
from pytest_ldos.cli.studies import Outputs, ParquetOption, RecordOption, run_instrument
from pytest_ldos.instruments.cost_layers import Layers
from pytest_ldos.instruments.tracing_cost.instrument import INSTRUMENT
from pytest_ldos.instruments.tracing_cost.spec import TracingCostSpec

_DEFAULT = TracingCostSpec()


def tracing_cost(  # noqa: PLR0913 - one a command-line option
    *,
    layer: Annotated[
        Layers, typer.Option(help="Layer of the nodes; auto: embedded, and rclcpp where ROS 2 is sourced.")
    ] = _DEFAULT.layer,
    rmw: Annotated[
        str, typer.Option(help="Middlewares of rclcpp, with commas between them. [default: all that are sourced]")
    ] = _DEFAULT.rmw,
    sizes: Annotated[
        str, typer.Option(help="Sizes of messages in KiB, with commas between them.")
    ] = _DEFAULT.sizes_kib,
    rates: Annotated[str, typer.Option(help="Rates in Hz, likewise; each size is sent at each.")] = _DEFAULT.rates_hz,
    full: Annotated[
        bool, typer.Option("--full", help="1, 32, 64, 256 KiB at 100, 500, 1000, 2000 Hz, whatever else is given.")
    ] = _DEFAULT.full,
    seconds: Annotated[float, typer.Option(help="Seconds of each size and rate in a start.")] = _DEFAULT.seconds,
    starts: Annotated[
        int, typer.Option(help="Starts of processes without tracing, and as many with.")
    ] = _DEFAULT.starts,
    ebpf: Annotated[
        bool, typer.Option(help="Record the same calls with eBPF (bpftrace) too, where that is permitted.")
    ] = _DEFAULT.ebpf,
    calls: Annotated[int, typer.Option(help="Calls of a tracepoint in a loop that times them.")] = _DEFAULT.calls,
    output: OutputOption = None,
    output_format: FormatOption = None,
    parquet: ParquetOption = None,
    record: RecordOption = None,
) -> None:
    """Measure what tracing itself costs.

    Publish → callback with and without it, and nanoseconds a tracepoint.

    Processes are started afresh without tracing, under LTTng and under eBPF, in turns; overheads are means over such
    turns, with intervals.

    Exit code: 0 there are results, 11 it could not be measured, 130 interrupted.
    """
    outputs = Outputs.of(output_format, output, parquet, record)
    spec = TracingCostSpec(
        layer=layer,
        rmw=rmw,
        sizes_kib=sizes,
        rates_hz=rates,
        full=full,
        seconds=seconds,
        starts=starts,
        ebpf=ebpf,
        calls=calls,
    )
    run_instrument(INSTRUMENT, spec, outputs)
