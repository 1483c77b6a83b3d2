"""Sources of measurements in a trace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Source:
    """Origin of a number. Numbers of different sources are not compared.

    Attributes:
        name: short, as reports show it.
        caveat: difference between the number and the metric's definition; empty if there is none.
    """

    name: str
    caveat: str = ""

    @property
    def is_approximate(self) -> bool:
        return bool(self.caveat)


MARKERS: Final = Source("markers")
"""``ldos:phase``, ``ldos:plan``: phases as the goal client entered them."""

CONTROL_PROBE: Final = Source("control probe")
"""``ldos:control_cycle``."""

SIMULATOR_PROBE: Final = Source("simulator probe")
"""``ldos:sim_step``."""

STAMPS: Final = Source("stimulus' stamps")
"""Stamps of a program that sends goals of its own kind and marks nothing in the trace; of the trace's clock, too."""

STIMULUS: Final = Source("stimulus' numbers")
"""Numbers that such a program reports with the end of a trial."""

OWN: Final = frozenset({MARKERS, STAMPS, STIMULUS, CONTROL_PROBE, SIMULATOR_PROBE})
"""Sources in the definitions of the metrics."""

FEEDBACK: Final = Source("feedback publications")
"""Feedback of the planner's action: as T1 is defined, without the transport of the feedback to its client."""

FEEDBACK_AND_STATUS: Final = Source("feedback and status publications")
"""Feedback of the planner's action for the begin, its status for the end, without the transport of either."""

STATUS: Final = Source("status publications", "begins when the goal was accepted, 1 to 4 ms after it was sent")
"""Status of the planner's action for both ends."""

PUBLICATIONS: Final = Source("publications")
"""Publications on a topic, of all its publishers."""

PASSAGES: Final = Source("passages")
"""Passages of messages along a path, or of goals through its phases."""

KERNEL_COUNTERS: Final = Source("kernel's counters")
"""Counters of the kernel for each process or thread, read before and after a trial."""

PEAK_MEMORY: Final = Source("peak of memory")
"""Peak of resident memory, which is reset before each trial, without pages of files and shared memory."""

MEMORY_AT_ENDS: Final = Source("memory before and after", "a peak within the trial is not seen")
"""Resident memory where the kernel's peak cannot be reset."""

CONTROLLER_MANAGER: Final = Source("controller manager")
"""Statistics that ros2_control's controller manager keeps of each loop."""

MANAGERS_RATES: Final = Source("controller manager's rates", "a single long gap counts for less than it lasts")
"""Spread of the rates (inverse periods) that it keeps, as one of periods."""

DECLARED: Final = frozenset({PUBLICATIONS, PASSAGES, KERNEL_COUNTERS, PEAK_MEMORY, CONTROLLER_MANAGER})
"""Sources in the definitions of metrics of paths, topics, processes and loops."""


def published_states(topic: str) -> Source:
    """Joint states in place of control cycles."""
    return Source(f"{topic} publications", "when the publisher sent them, not when the control loop ran")


def published_clock(topic: str) -> Source:
    """The simulator's clock topic in place of its steps."""
    return Source(f"{topic} publications", "when the clock was published, not when the simulator stepped")
