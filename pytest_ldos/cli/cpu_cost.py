"""``ldos cpu-cost``: what a message costs in CPU time, layer by layer."""

from __future__ import annotations

from typing import Annotated

import typer

from pytest_ldos.cli.output import FormatOption, OutputOption
from pytest_ldos.cli.studies import Outputs, ParquetOption, RecordOption, run_instrument
from pytest_ldos.instruments.cost_layers import Layers
from pytest_ldos.instruments.cpu_cost.instrument import INSTRUMENT
from pytest_ldos.instruments.cpu_cost.spec import CpuCostSpec

_DEFAULT = CpuCostSpec()


def cpu_cost(  # noqa: PLR0913 - one a command-line option
    *,
    layer: Annotated[
        Layers, typer.Option(help="Layer of the nodes; auto: embedded, and rclcpp where ROS 2 is sourced.")
    ] = _DEFAULT.layer,
    rmw: Annotated[
        str, typer.Option(help="Middlewares of rclcpp, with commas between them. [default: all that are sourced]")
    ] = _DEFAULT.rmw,
    rungs: Annotated[
        str,
        typer.Option(help="in_process, no_publishing, dds, one_node, many_nodes, many_participants. [default: all]"),
    ] = _DEFAULT.rungs,
    topics: Annotated[int, typer.Option(help="Topics, each with one publisher.")] = _DEFAULT.topics,
    subscribers: Annotated[int, typer.Option(help="Subscribers of each topic.")] = _DEFAULT.subscribers,
    nodes: Annotated[int, typer.Option(help="Nodes of the rungs that have many.")] = _DEFAULT.nodes,
    rate: Annotated[float, typer.Option(help="Messages a second of each topic.")] = _DEFAULT.rate_hz,
    size: Annotated[int, typer.Option(help="Bytes of a message's text.")] = _DEFAULT.size_bytes,
    seconds: Annotated[float, typer.Option(help="Length of a round.")] = _DEFAULT.seconds,
    rounds: Annotated[int, typer.Option(help="Rounds of each rung in a start; rungs take turns.")] = _DEFAULT.rounds,
    starts: Annotated[int, typer.Option(help="Starts of the processes.")] = _DEFAULT.starts,
    output: OutputOption = None,
    output_format: FormatOption = None,
    parquet: ParquetOption = None,
    record: RecordOption = None,
) -> None:
    """Measure the CPU time of a message, layer by layer.

    Context switches, too.

    The same traffic is exchanged as plain calls, over DDS alone, in one node, in many, and in many with a participant
    each, beside nodes that publish nothing. Every rung is a process of its own, and rungs take turns.

    Exit code: 0 there are results, 11 it could not be measured, 130 interrupted.
    """
    outputs = Outputs.of(output_format, output, parquet, record)
    spec = CpuCostSpec(
        layer=layer,
        rmw=rmw,
        rungs=rungs,
        topics=topics,
        subscribers=subscribers,
        nodes=nodes,
        rate_hz=rate,
        size_bytes=size,
        seconds=seconds,
        rounds=rounds,
        starts=starts,
    )
    run_instrument(INSTRUMENT, spec, outputs)
