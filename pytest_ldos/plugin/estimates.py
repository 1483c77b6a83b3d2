"""The estimate that a session prints before it measures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.plugin.settings import Settings
from pytest_ldos.plugin.sweep_cells import in_cell

if TYPE_CHECKING:
    from pytest_ldos.campaign.cost import Cost
    from pytest_ldos.campaign.estimate import Expected
    from pytest_ldos.scenario.model import ScenarioSpec


def estimate_lines(settings: Settings, scenarios: Sequence[pytest.Item], *, stack: str, beside: str = "") -> list[str]:
    """One line on the duration of the trials of some tests; none if there are no trials. Builds are not counted.

    Args:
        stack: name of the stack under test, or the beginning of it.
        beside: words about what else takes time.
    """
    from pytest_ldos.campaign.estimate import describe_expected, duration_files, measured_cost

    files = duration_files(settings.output)
    expected = [
        _expected(settings, spec, measured_cost(files, stack=stack, scenario=spec.name))
        for spec in _specs(settings, scenarios)
    ]
    return [f"ldos: {beside}{describe_expected(expected)}"] if expected else []


def _specs(settings: Settings, scenarios: Sequence[pytest.Item]) -> Iterator[ScenarioSpec]:
    """Scenarios of tests; a test without a valid one says so itself when it runs."""
    for item in scenarios:
        with suppress(ConfigurationError):
            yield in_cell(item, settings.scenario_of(item))


def _expected(settings: Settings, spec: ScenarioSpec, cost: Cost | None) -> Expected:
    from pytest_ldos.campaign.estimate import Expected, amount_alone, amount_interleaved

    counts = (spec.trials, max(spec.trials, spec.max_trials))
    amount = amount_interleaved if settings.value("base") else amount_alone
    least, most = (amount(spec, trials, size=settings.value("block")) for trials in counts)
    return Expected(least, most, cost)
