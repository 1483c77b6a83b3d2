"""JUnit properties for the test of a scenario."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain, count

from pytest_ldos.base.text import one_line
from pytest_ldos.show.report.document import Document, MetricReport, Section


def render(document: Document) -> Mapping[str, str]:
    """Properties by name; for several verdicts in one test, names include the scenario, and a number if needed."""
    prefixes: list[str] = []
    for section in document.sections:
        named = f"ldos.{section.scenario}"
        candidates = chain(["ldos", named], (f"{named}-{number}" for number in count(len(prefixes) + 1)))
        prefixes.append(next(each for each in candidates if each not in prefixes))
    sections = zip(prefixes, document.sections, strict=True)
    properties = ((f"{prefix}.{name}", value) for prefix, section in sections for name, value in _describe(section))
    return {one_line(name): one_line(value) for name, value in properties}


def _describe(section: Section) -> Iterator[tuple[str, str]]:
    yield "scenario", section.scenario
    if section.verdict is not None:
        yield "verdict", section.verdict.value
    if section.head is not None:
        yield "successes", f"{section.head.successes}/{section.head.trials}"
        yield "commit", section.head.commit
    if section.base is not None:
        yield "base", section.base.commit or section.base.label
    for metric in section.metrics:
        yield from ((f"{metric.name}.{name}", value) for name, value in _describe_metric(metric))


def _describe_metric(metric: MetricReport) -> Iterator[tuple[str, str]]:
    if metric.verdict is not None:
        yield "verdict", metric.verdict.value
    sample, change = metric.head, metric.change
    if sample is not None and sample.median is not None:
        in_unit = f"_{metric.unit}" if metric.unit else ""
        yield f"median{in_unit}", _number(sample.median)
        yield "cv", _number(sample.cv)
        yield f"values{in_unit}", " ".join(_number(point.value) for point in sample.points)
    if change is not None and change.has_ratio:
        yield "ratio", _number(change.ratio)
        yield "ratio_low", "0" if change.low is None and not change.is_endless else _number(change.low)
        yield "ratio_high", _number(change.high)
        yield "mde", _number(change.mde)
    yield from ((f"{each.name}.p_value", _number(each.p_value)) for each in metric.aspects)


def _number(value: float | None) -> str:
    """A number as text; an unbounded one is ``inf``."""
    return "inf" if value is None else f"{value:.6g}"
