"""Checks that a trace contains the action that identifies goals."""

from __future__ import annotations

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.measure.metrics.model import Interfaces
from pytest_ldos.trace.execution.action_goals import STATUS
from pytest_ldos.trace.execution.model import ExecutionModel


def require_action(model: ExecutionModel, interfaces: Interfaces, usual: Interfaces) -> None:
    """Requires an action other than the usual one to be in the trace.

    Raises:
        ConfigurationError: no node serves it in the trace.
    """
    served = [topic.removesuffix(STATUS) for topic in model.publishers["topic"].drop_nulls() if topic.endswith(STATUS)]
    if interfaces.action not in {usual.action, *served}:
        there = f"served are: {', '.join(sorted(served))}" if served else "none is served in it"
        raise ConfigurationError(f"no action {interfaces.action} in the trace", remedy=there)
