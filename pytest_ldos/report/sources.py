"""Where numbers come from, in words."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from pytest_ldos.metrics.sources import OWN, Source

APPROXIMATELY: Final = "≈"


def qualified(number: str, sources: Collection[Source]) -> str:
    """A number as text, with a sign before it where a source of it is approximate."""
    return f"{APPROXIMATELY} {number}" if any(source.is_approximate for source in sources) else number


def describe_sources(by_metric: Mapping[str, Collection[Source]]) -> tuple[str, ...]:
    """A line for each source that is not what the metrics are defined by; none where all are."""
    metrics: dict[Source, list[str]] = {}
    for name, sources in by_metric.items():
        for source in sorted(sources, key=lambda source: source.name):
            metrics.setdefault(source, []).append(name)
    return tuple(_describe(source, names) for source, names in metrics.items() if source not in OWN)


def _describe(source: Source, metrics: Collection[str]) -> str:
    sentence = f"{', '.join(metrics)} from {source.name}"
    return f"{APPROXIMATELY} {sentence}: {source.caveat}" if source.is_approximate else sentence
