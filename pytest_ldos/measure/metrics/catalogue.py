"""Catalogue of metrics: built-in, declared and user-defined ones."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import count
from typing import Final

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.measure.metrics.context import MeasuredMetric, TrialContext
from pytest_ldos.measure.metrics.declared import declare
from pytest_ldos.measure.metrics.latency import CALL, CALL_P99, EXECUTION, REACTION, T1, T1_MEAN, T2, T2X, T4, WHOLE
from pytest_ldos.measure.metrics.model import OWN_SHARES
from pytest_ldos.measure.metrics.own import OwnMetric, require_own
from pytest_ldos.measure.metrics.regularity import T3, T3_MEAN, T3_P90, T3_P99, T5, T5_MEAN, T5_P99
from pytest_ldos.scenario.metrics import MetricSpec
from pytest_ldos.scenario.model import StackSpec
from pytest_ldos.scenario.words import Simulation

Catalogue = Mapping[str, MeasuredMetric]
"""Metrics by name, in display order."""

_BUILT_IN: Final = (T1, T1_MEAN, T2, T2X, T3, T3_MEAN, T3_P90, T3_P99, T4, T5, T5_MEAN, T5_P99)

METRICS: Final[Catalogue] = {metric.name: metric for metric in _BUILT_IN}
"""Built-in metrics. Each record describes its own metrics (`TrialSet.metrics`)."""


OF_CALLS: Final[Catalogue] = {metric.name: metric for metric in (CALL, CALL_P99)}
"""Built-in metrics of the stimulus ``service``."""

_OF_STIMULI: Final[Catalogue] = {metric.name: metric for metric in (REACTION, EXECUTION, WHOLE, CALL, CALL_P99)}
"""Metrics of `StimulusSpec.latencies` where no arm moves."""

_LOOP: Final[tuple[MeasuredMetric, ...]] = (T3, T3_MEAN, T3_P90, T3_P99)
_SIMULATOR: Final = (T5, T5_MEAN, T5_P99)


def built_in_of(stack: StackSpec) -> Catalogue:
    """Built-in metrics of a stack, by its stimulus.

    Metrics of the control loop need named controllers, those of the simulator need Gazebo. If the begin of execution is
    unknown, the loop is measured over the whole trial.
    """
    if stack.moves_arm:
        return METRICS
    loop = _LOOP if stack.ros2.controllers else ()
    latencies = tuple(_OF_STIMULI[name] for name in stack.driver.latencies)
    if EXECUTION not in latencies:
        loop = tuple(replace(metric, window=TrialContext.trial_window) for metric in loop)
    simulator = _SIMULATOR if stack.ros2.sim is Simulation.GZ else ()
    found = (*latencies, *loop, *simulator)
    return {metric.name: metric for metric in found}


def catalogue_of(
    own: Iterable[OwnMetric], declared: Iterable[MetricSpec] = (), *, built_in: Catalogue = METRICS
) -> Catalogue:
    """Combines built-in, declared and user-defined metrics.

    Args:
        built_in: built-in metrics of the stack.

    Raises:
        ConfigurationError: an element is no `OwnMetric`, or a name is taken.
    """
    ours: Catalogue = {**built_in, **{spec.name: declare(spec) for spec in declared}}
    taken: Catalogue = {**METRICS, **OF_CALLS, **ours}
    registered: dict[str, OwnMetric] = {}
    for metric in require_own(own):
        if metric.name in taken:
            raise ConfigurationError(
                f"metric '{metric.name}' ({metric.origin}) cannot be called so: "
                f"it is our name of {taken[metric.name].title}",
                remedy="give it another name",
            )
        other = registered.setdefault(metric.name, metric)
        if other is not metric:
            raise ConfigurationError(
                f"two metrics are called '{metric.name}' ({other.origin}, {metric.origin})",
                remedy="give one of them another name",
            )
    shares = (OWN_SHARES * 6 / (math.pi * number) ** 2 for number in count(1))
    numbered = zip(registered.items(), shares, strict=False)
    return {**ours, **{name: metric.to_measured(error_share=share) for (name, metric), share in numbered}}
