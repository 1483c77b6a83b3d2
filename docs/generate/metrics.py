"""The page of metrics."""

from __future__ import annotations

from collections.abc import Iterator

from docs.generate.attributes import constants_of
from docs.generate.text import code, flowing, table
from pytest_ldos.measure.metrics import sources
from pytest_ldos.measure.metrics.catalogue import METRICS
from pytest_ldos.measure.metrics.sources import Source


def metrics_page() -> Iterator[str]:
    """Every built-in metric, and the sources of numbers."""
    yield from (
        "# Metrics",
        "",
        "What they mean: [what T1 to T5 are](../explanation/metrics.md). The largest minimum detectable effect (MDE)",
        "is that with which a metric still counts as judged; the weight is that in the overall score.",
        "",
    )
    yield from table(
        ("metric", "from → to", "in", "better", "largest MDE", "weight"),
        [
            (
                f"**{each.name}** {each.title}",
                each.definition,
                each.unit,
                each.description.better.value,
                f"{100 * each.largest_tolerable_mde:.0f} %",
                f"{each.description.score_weight:g}",
            )
            for each in METRICS.values()
        ],
    )
    yield from ("", "## Sources", "", "Numbers of different sources are not compared.", "")
    yield from table(
        ("source", "what it is", "caveat"),
        [
            (code(value.name), flowing(text), value.caveat)
            for value, text in constants_of(sources)
            if isinstance(value, Source)
        ],
    )
    yield ""
