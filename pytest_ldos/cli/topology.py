"""``ldos topology``: a declared graph of nodes under observation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from pytest_ldos.base import exit_codes
from pytest_ldos.cli.output import FormatOption, OutputOption
from pytest_ldos.cli.say import say
from pytest_ldos.cli.studies import Outputs, ParquetOption, RecordOption, run_instrument
from pytest_ldos.instruments.topology.instrument import INSTRUMENT, read_asked
from pytest_ldos.instruments.topology.spec import Layer, Processes, TopologySpec

_USUAL: Final = TopologySpec(file="pick_cell")


def topology(  # noqa: PLR0913 - one a command-line option
    *,
    file: Annotated[
        str, typer.Argument(help="JSON, or the name of one of ours: pick_cell (10 nodes), packing_hall (20).")
    ],
    seconds: Annotated[
        float, typer.Option("--time", "-t", help="Seconds that messages are sent, in each start.")
    ] = 60.0,
    starts: Annotated[int, typer.Option(help="Starts of all processes.")] = _USUAL.starts,
    rounds: Annotated[int, typer.Option(help="Parts of each start that are gated.")] = _USUAL.rounds,
    processes: Annotated[Processes, typer.Option(help="One for all nodes, or one a node.")] = _USUAL.processes,
    layer: Annotated[Layer, typer.Option(help="Our node layer over Cyclone DDS, or rclcpp.")] = _USUAL.layer,
    rmw: Annotated[str, typer.Option(help="Middleware of rclcpp. [default: that of the environment]")] = _USUAL.rmw,
    ipc: Annotated[bool, typer.Option("--ipc/--no-ipc", help="rclcpp hands messages over within a process.")] = False,
    sampling: Annotated[
        float, typer.Option(help="Seconds between two looks at CPU time and memory.")
    ] = _USUAL.sampling,
    late_percentage: Annotated[
        float, typer.Option(help="A message is late above this share of its period, in %, …")
    ] = _USUAL.late_percentage,
    late_absolute: Annotated[float, typer.Option(help="… or above this, in µs.")] = _USUAL.late_absolute,
    too_late_percentage: Annotated[
        float, typer.Option(help="It is too late above this share of its period, in %, …")
    ] = _USUAL.too_late_percentage,
    too_late_absolute: Annotated[float, typer.Option(help="… or above this, in µs.")] = _USUAL.too_late_absolute,
    target: Annotated[Path | None, typer.Option(help="Performance to be reached: JSON with limits.")] = None,
    log: Annotated[
        Path | None, typer.Option(help="Folder for latency_all.txt, latency_total.txt, resources.txt and events.txt.")
    ] = None,
    output: OutputOption = None,
    output_format: FormatOption = None,
    parquet: ParquetOption = None,
    record: RecordOption = None,
) -> None:
    """Run the nodes of a topology file; find late messages.

    Messages are late above the lesser of 20 % of their period and 5 ms, too late above the lesser of their
    period and 50 ms, lost where a number is passed over.

    Exit code: 0 it was measured, and the target, if there is one, was met; 10 the target was missed; 11 it could
    not be measured whole; 2 a file makes no sense; 130 interrupted.
    """
    spec = TopologySpec(
        file=file,
        seconds=seconds,
        starts=starts,
        rounds=rounds,
        processes=processes,
        layer=layer,
        rmw=rmw,
        intra_process=ipc,
        sampling=sampling,
        late_percentage=late_percentage,
        late_absolute=late_absolute,
        too_late_percentage=too_late_percentage,
        too_late_absolute=too_late_absolute,
        target="" if target is None else str(target),
        log="" if log is None else str(log),
    )
    read_asked(spec)  # a file that makes no sense is refused before the machine is waited for
    study = run_instrument(INSTRUMENT, spec, Outputs.of(output_format, output, parquet, record))
    if any(each.failure for each in study.rounds):
        raise typer.Exit(exit_codes.INVALID)
    if study.missed:
        say(f"ldos: the target was missed: {', '.join(study.missed)}", err=True)
        raise typer.Exit(exit_codes.REGRESSED)
