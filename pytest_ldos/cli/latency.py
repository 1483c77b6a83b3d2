"""``ldos latency``: how long the middleware takes for a message and its answer."""

from __future__ import annotations

from pytest_ldos.campaign.instruments import find_instrument
from pytest_ldos.cli.instrument_options import takes_settings
from pytest_ldos.cli.studies import Outputs, run_instrument
from pytest_ldos.instruments.latency.spec import LatencySpec


@takes_settings(LatencySpec)
def latency(spec: LatencySpec, outputs: Outputs) -> None:
    """Measure how long DDS takes for a message and its answer.

    Round trips and one-way times of every size, reliability and transport, interleaved with Cyclone DDS's own
    ddsperf where it is installed, and with rclcpp over each middleware where ROS 2 is sourced. Lost messages
    and sides that never meet are results.

    Exit code: 0, or 11 where no round gave a number.
    """
    run_instrument(find_instrument("latency"), spec, outputs)
