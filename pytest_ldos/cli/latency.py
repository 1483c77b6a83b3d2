"""``ldos latency``: how long the middleware takes for a message and its answer."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pytest_ldos.campaign.instruments import find_instrument
from pytest_ldos.cli.studies import Outputs, ParquetOption, RecordOption, run_instrument
from pytest_ldos.instruments.latency.spec import LatencySpec, Trigger
from pytest_ldos.show.page.formats import Format

_DEFAULT = LatencySpec()


def latency(  # noqa: PLR0913 - one a command-line option
    *,
    sizes: Annotated[str, typer.Option(help="Sizes of a message's data: 1 to 1MiB, several with commas.")] = (
        _DEFAULT.sizes
    ),
    reliability: Annotated[str, typer.Option(help="reliable, best_effort, or both with a comma.")] = (
        _DEFAULT.reliability
    ),
    transports: Annotated[str, typer.Option(help="one_process, loopback, shared_memory; several with commas.")] = (
        _DEFAULT.transports
    ),
    trigger: Annotated[
        Trigger, typer.Option(help="Takes messages on the middleware's thread, or on a waiting one.")
    ] = _DEFAULT.trigger,
    fragment_sizes: Annotated[
        str, typer.Option("--fragment-sizes", help="Cyclone DDS's FragmentSize, in bytes; several with commas.")
    ] = _DEFAULT.fragment_sizes,
    max_message_sizes: Annotated[
        str, typer.Option("--max-message-sizes", help="Cyclone DDS's MaxMessageSize, in bytes; several with commas.")
    ] = _DEFAULT.max_message_sizes,
    seconds: Annotated[float, typer.Option(help="Seconds of a round.")] = _DEFAULT.seconds,
    rounds: Annotated[int, typer.Option(help="Rounds of each case; cases take turns.")] = _DEFAULT.rounds,
    rate: Annotated[
        float, typer.Option(help="Messages a second; 0 sends the next when the answer is there.")
    ] = _DEFAULT.rate_hz,
    ping_cpu: Annotated[int, typer.Option(help="CPU of the side that asks; -1 for any.")] = _DEFAULT.ping_cpu,
    pong_cpu: Annotated[int, typer.Option(help="CPU of the side that answers; -1 for any.")] = _DEFAULT.pong_cpu,
    priority: Annotated[int, typer.Option(help="SCHED_FIFO priority of both sides; 0 for none.")] = _DEFAULT.priority,
    patience: Annotated[float, typer.Option(help="Milliseconds after which an answer is lost.")] = _DEFAULT.patience_ms,
    match_timeout: Annotated[
        float, typer.Option(help="Seconds that both sides have to find each other.")
    ] = _DEFAULT.match_timeout_s,
    ddsperf: Annotated[
        bool, typer.Option("--ddsperf/--no-ddsperf", help="Measure Cyclone DDS's own benchmark in turns with ours.")
    ] = _DEFAULT.ddsperf,
    ros: Annotated[
        bool, typer.Option("--ros/--no-ros", help="Measure rclcpp with each middleware, where ROS 2 is sourced.")
    ] = _DEFAULT.ros,
    output_format: Annotated[
        Format | None, typer.Option("--format", help="How the result is shown; a file's name tells by itself.")
    ] = None,
    output: Annotated[Path | None, typer.Option(help="File for the result: .html, .md or .json.")] = None,
    parquet: ParquetOption = None,
    record: RecordOption = None,
) -> None:
    """Measure how long DDS takes for a message and its answer.

    Round trips and one-way times of every size, reliability and transport, in turns with Cyclone DDS's own
    ddsperf where it is installed, and with rclcpp over each middleware where ROS 2 is sourced. Lost messages
    and sides that never meet are results.

    Exit code: 0, or 11 where no round gave a number.
    """
    outputs = Outputs.of(output_format, output, parquet, record)
    spec = LatencySpec(
        sizes=sizes,
        reliability=reliability,
        transports=transports,
        trigger=trigger,
        fragment_sizes=fragment_sizes,
        max_message_sizes=max_message_sizes,
        seconds=seconds,
        rounds=rounds,
        rate_hz=rate,
        ping_cpu=ping_cpu,
        pong_cpu=pong_cpu,
        priority=priority,
        patience_ms=patience,
        match_timeout_s=match_timeout,
        ddsperf=ddsperf,
        ros=ros,
    )
    run_instrument(find_instrument("latency"), spec, outputs)
