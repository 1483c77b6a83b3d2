"""Metrics that commands measure: ours, those in the settings, and a user's own, given by an option."""

from __future__ import annotations

from typing import Annotated

import typer

from pytest_ldos.measure.metrics.catalogue import Catalogue, built_in_of, catalogue_of
from pytest_ldos.measure.metrics.load_own import load_metrics
from pytest_ldos.measure.metrics.own import HOOK
from pytest_ldos.scenario.settings import Sources

MetricsOption = Annotated[
    str | None,
    typer.Option(
        "--metrics", metavar="FILE_OR_MODULE", help=f"Metrics of your own: a conftest.py or module with {HOOK}()."
    ),
]


def chosen_metrics(given: str | None, sources: Sources) -> Catalogue:
    """Every metric to measure.

    Args:
        given: value of the option.

    Raises:
        ConfigurationError: see `load_own` and `catalogue_of`.
    """
    built_in = built_in_of(sources.stack_spec())
    return catalogue_of(load_metrics(given), sources.toml.metrics, built_in=built_in)
