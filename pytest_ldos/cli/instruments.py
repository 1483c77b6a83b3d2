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

    Context switches, too.

    The same traffic is exchanged as plain calls, over DDS alone, in one node, in many, and in many with a participant
    each, beside nodes that publish nothing. Every rung is a process of its own, and rungs take turns.

    Exit code: 0 there are results, 11 it could not be measured, 130 interrupted.
    """
    run_instrument(find_instrument("cpu_cost"), spec, outputs)


@takes_settings(LatencySpec)
def latency(spec: LatencySpec, outputs: Outputs) -> None:
    """Measure how long DDS takes for a message and its answer.

    Round trips and one-way times of every size, reliability and transport, interleaved with Cyclone DDS's own
    ddsperf where it is installed, and with rclcpp over each middleware where ROS 2 is sourced. Lost messages
    and sides that never meet are results.

    Exit code: 0, or 11 where no round gave a number.
    """
    run_instrument(find_instrument("latency"), spec, outputs)


@takes_settings(TopologySpec)
def topology(spec: TopologySpec, outputs: Outputs) -> None:
    """Run the nodes of a topology file; find late messages.

    Messages are late above the lesser of 20 % of their period and 5 ms, too late above the lesser of their
    period and 50 ms, lost where a number is passed over.

    Exit code: 0 it was measured, and the target, if there is one, was met; 10 the target was missed; 11 it could
    not be measured whole; 2 a file makes no sense; 130 interrupted.
    """
    from pytest_ldos.instruments.topology.instrument import read_asked  # noqa: PLC0415 - of this instrument alone

    read_asked(spec)  # a file that makes no sense is refused before the machine is waited for
    study = run_instrument(find_instrument("topology"), spec, outputs)
    if any(each.failure for each in study.rounds):
        raise typer.Exit(exit_codes.INVALID)
    if study.missed:
        say(f"ldos: the target was missed: {', '.join(study.missed)}", err=True)
        raise typer.Exit(exit_codes.REGRESSED)


@takes_settings(TracingCostSpec)
def tracing_cost(spec: TracingCostSpec, outputs: Outputs) -> None:
    """Measure what tracing itself costs.

    Publish → callback with and without it, and nanoseconds a tracepoint.

    Processes are started afresh without tracing, under LTTng and under eBPF, interleaved; overheads are means over such
    turns, with intervals.

    Exit code: 0 there are results, 11 it could not be measured, 130 interrupted.
    """
    run_instrument(find_instrument("tracing_cost"), spec, outputs)
