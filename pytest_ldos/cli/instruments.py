"""``ldos latency | cpu-cost | tracing-cost | topology``: instruments that measure the middleware."""

from __future__ import annotations

import typer

from pytest_ldos.base import exit_codes
from pytest_ldos.campaign.instruments import find_instrument
from pytest_ldos.cli.say import say
from pytest_ldos.cli.studies import Outputs, run_instrument, takes_settings
from pytest_ldos.instruments.cpu_cost.spec import CpuCostSpec
from pytest_ldos.instruments.latency.spec import LatencySpec
from pytest_ldos.instruments.topology.spec import TopologySpec
from pytest_ldos.instruments.tracing_cost.spec import TracingCostSpec


@takes_settings(CpuCostSpec)
def cpu_cost(spec: CpuCostSpec, outputs: Outputs) -> None:
    """Measure the CPU time of a message, layer by layer.

    Includes context switches.

    The same traffic is exchanged as plain calls, over DDS only, in one node, in many nodes, and in many with a
    participant each; nodes that publish nothing are measured as well. Every rung is a separate process, and rungs are
    interleaved.

    Exit code: 0 there are results, 11 it could not be measured, 130 interrupted.
    """
    run_instrument(find_instrument("cpu_cost"), spec, outputs)


@takes_settings(LatencySpec)
def latency(spec: LatencySpec, outputs: Outputs) -> None:
    """Measure DDS latencies of a message and its answer.

    Round-trip and one-way times of every size, reliability and transport, interleaved with Cyclone DDS's ddsperf if it
    is installed, and with rclcpp over each middleware if ROS 2 is sourced. Lost messages and failed discovery are
    results.

    Exit code: 0, or 11 if no round gave a number.
    """
    run_instrument(find_instrument("latency"), spec, outputs)


@takes_settings(TopologySpec)
def topology(spec: TopologySpec, outputs: Outputs) -> None:
    """Run the nodes of a topology file, and count late messages.

    Messages are late above the lesser of 20 % of their period and 5 ms, too late above the lesser of their period and
    50 ms, and lost if their number is skipped.

    Exit code: 0 it was measured, and any target was met; 10 the target was missed; 11 it could not be measured
    completely; 2 a file is invalid; 130 interrupted.
    """
    from pytest_ldos.instruments.topology.instrument import read_asked  # noqa: PLC0415 - of this instrument alone

    read_asked(spec)  # refuses an invalid file before waiting for the machine
    study = run_instrument(find_instrument("topology"), spec, outputs)
    if any(each.failure for each in study.rounds):
        raise typer.Exit(exit_codes.INVALID)
    if study.missed:
        say(f"ldos: the target was missed: {', '.join(study.missed)}", err=True)
        raise typer.Exit(exit_codes.REGRESSED)


@takes_settings(TracingCostSpec)
def tracing_cost(spec: TracingCostSpec, outputs: Outputs) -> None:
    """Measure the overhead of tracing.

    The time from publication to callback with and without it, and nanoseconds per tracepoint.

    New processes run without tracing, under LTTng and under eBPF, interleaved; overheads are means over rounds, with
    intervals.

    Exit code: 0 there are results, 11 it could not be measured, 130 interrupted.
    """
    run_instrument(find_instrument("tracing_cost"), spec, outputs)
