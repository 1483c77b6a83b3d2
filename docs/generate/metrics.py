"""The page of metrics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from docs.generate.attributes import constants_of
from docs.generate.text import code, flowing, table
from pytest_ldos.base.ros2 import PathSpec
from pytest_ldos.measure.metrics import model as sources
from pytest_ldos.measure.metrics.catalogue import METRICS, OF_CALLS
from pytest_ldos.measure.metrics.declared import declare
from pytest_ldos.measure.metrics.latency import EXECUTION, REACTION, WHOLE
from pytest_ldos.measure.metrics.model import MeasuredMetric, Source
from pytest_ldos.scenario.metrics import MetricKind, MetricSpec, Statistic, parse_metrics


def _examples() -> Iterator[MetricSpec]:
    """A metric of each kind that can be asked for, and of each statistic."""
    path = PathSpec(name="NAME", via=("/a", "/b"), deadline_ms=1)
    others = [f"{kind}:{kind.example}" for kind in MetricKind if kind is not MetricKind.PATH]
    yield from parse_metrics([*(f"path:{path.name}:{each}" for each in Statistic), *others], (path,))


def _built_in(metrics: Iterable[MeasuredMetric]) -> Iterator[str]:
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
            for each in metrics
        ],
    )


def metrics_page() -> Iterator[str]:
    """Every built-in metric, and the sources of numbers."""
    yield from (
        "# Metrics",
        "",
        "What they mean: [what T1 to T5 are](../explanation/metrics.md). The largest minimum detectable effect (MDE)",
        "is that with which a metric still counts as judged; the weight is that in the overall score.",
        "",
    )
    yield from _built_in(METRICS.values())
    yield from (
        "",
        "## Metrics of other stimuli",
        "",
        "Of an action, a service or a program, [in place of an arm's motion](../how-to/choose-a-stimulus.md).",
        "The control loop's and the simulator's are as above.",
        "",
    )
    yield from _built_in((REACTION, EXECUTION, WHOLE, *OF_CALLS.values()))
    yield from (
        "",
        "## Metrics of paths, topics, processes and own tracepoints",
        "",
        "Named in `metrics` under `[tool.ldos]`; see",
        "[gate paths, rates and resources](../how-to/gate-paths-rates-resources.md).",
        "",
    )
    yield from table(
        ("in `metrics`", "what is measured", "in", "better", "usual floor", "largest MDE"),
        [
            (
                code(str(spec)),
                metric.definition,
                metric.unit or "count",
                metric.description.better.value,
                f"{100 * metric.usual_floor:.0f} %",
                f"{100 * metric.largest_tolerable_mde:.0f} %",
            )
            for spec, metric in ((spec, declare(spec)) for spec in _examples())
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
