"""Numbers that the stimulus reports at the end of each trial, such as the distance that a robot has driven.

Source: ``numbers`` of the line protocol (`robot.stack.stimulus.lines`).
"""

from __future__ import annotations

from collections.abc import Callable

from pytest_ldos.base.nearest import suggest
from pytest_ldos.base.series import Missing
from pytest_ldos.measure.metrics.context import TrialContext
from pytest_ldos.measure.metrics.model import Measurement, Window
from pytest_ldos.measure.metrics.sources import STIMULUS


def number_of(name: str) -> Callable[[TrialContext, Window], Measurement]:
    """Takes the number of that name."""

    def measure(context: TrialContext, _: Window) -> Measurement:
        numbers = context.outside.numbers
        if name in numbers:
            return Measurement(numbers[name], {}, STIMULUS)
        known = suggest(name, numbers) if numbers else "it reported none of this trial"
        return Measurement(Missing(f"the stimulus reported no number '{name}': {known}"))

    return measure
