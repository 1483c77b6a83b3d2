"""Sources of numbers in words."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from pytest_ldos.measure.metrics.sources import DECLARED, OWN, Source
from pytest_ldos.show.report.document import Origin

APPROXIMATELY: Final = "≈"


def report_origins(sources: Collection[Source]) -> tuple[Origin, ...]:
    """Sources in the order of their names."""
    found = sorted(sources, key=lambda source: source.name)
    return tuple(Origin(name=each.name, caveat=each.caveat, is_usual=each in OWN | DECLARED) for each in found)


def qualified(number: str, origins: Collection[Origin]) -> str:
    """A number as text, with a sign before it where a source of it is approximate."""
    return f"{APPROXIMATELY} {number}" if any(origin.caveat for origin in origins) else number


def describe_origins(by_metric: Mapping[str, Collection[Origin]]) -> tuple[str, ...]:
    """A line for each source that is not what the metrics are defined by; none where all are."""
    metrics: dict[Origin, list[str]] = {}
    for name, origins in by_metric.items():
        for origin in origins:
            metrics.setdefault(origin, []).append(name)
    return tuple(_describe(origin, names) for origin, names in metrics.items() if not origin.is_usual)


def _describe(origin: Origin, metrics: Collection[str]) -> str:
    sentence = f"{', '.join(metrics)} from {origin.name}"
    return f"{APPROXIMATELY} {sentence}: {origin.caveat}" if origin.caveat else sentence
