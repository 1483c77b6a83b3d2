"""The values of a metric in the order in which they were measured, with stack starts and versions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, groupby
from typing import Final

from htpy import Node

from pytest_ldos.base.text import one_line
from pytest_ldos.base.units import format_quantity
from pytest_ldos.show.report.document import MetricReport, Point, Sample
from pytest_ldos.show.report.html.marks import failed, trials
from pytest_ldos.show.report.plots.chart import Axis, Chart, Field, Mark, Rule, Series
from pytest_ldos.show.report.plots.svg import draw

_LETTER: Final = 7.5
"""Pixels that a letter of a label takes, at most."""

_ABOVE: Final = 9.0
"""Pixels from the chart to failed trials."""


@dataclass(frozen=True)
class _Block:
    """The trials between two stack starts."""

    version: str
    label: str
    points: tuple[Point, ...]


def draw_timeline(metric: MetricReport, samples: Sequence[tuple[str, str, Sample]], *, is_interleaved: bool) -> Node:
    """Every trial in order; a new stack start begins a new field.

    Args:
        samples: version (``base``, ``head``), its label, its values.
        is_interleaved: True if the versions' blocks belong to one session; otherwise the base was measured before.
    """
    blocks = _blocks(samples, is_interleaved=is_interleaved)
    edges = [0, *accumulate(len(block.points) for block in blocks)]
    values = [point.value for block in blocks for point in block.points if point.value is not None]
    chart = Chart(
        title=f"{metric.name} {metric.title} of {edges[-1]} trials in order, in {len(blocks)} stack starts",
        x=Axis(low=0, high=max(1, edges[-1]), ticks=()),
        y=Axis.around(values, title=metric.unit),
        height=202,
        right=8,
        top=34,
        bottom=28,
    )
    medians = [(version, sample.median) for version, _, sample in samples if sample.median is not None]
    return draw(
        replace(
            chart,
            fields=tuple(_fields(blocks, edges, chart)),
            rules=tuple(Rule(kind=f"{each} median", value=value, colour=each, line="--") for each, value in medians),
            series=(*_starts(edges, chart), *_marks(metric, blocks, chart)),
        )
    )


def _blocks(samples: Sequence[tuple[str, str, Sample]], *, is_interleaved: bool) -> list[_Block]:
    found = [
        (number, _Block(version, label, tuple(points)))
        for version, label, sample in samples
        for number, points in groupby(sample.points, key=lambda point: point.block)
    ]
    return [block for _, block in (sorted(found, key=lambda each: each[0]) if is_interleaved else found)]


def _fields(blocks: Sequence[_Block], edges: Sequence[int], chart: Chart) -> Iterator[Field]:
    pixels = chart.inner_width / chart.x.high
    for block, first, after in zip(blocks, edges, edges[1:], strict=False):
        yield Field(
            kind=f"field {block.version}",
            low=first,
            high=after,
            colour="field" if block.version == "base" else "",
            label=_fitting(block, pixels * (after - first)),
            label_colour=block.version,
        )


def _starts(edges: Sequence[int], chart: Chart) -> Iterator[Series]:
    for x in edges[:-1]:
        yield Series(kind="grid", marks=(Mark(x, chart.y.low), Mark(x, chart.y.high)), colour="edge", line="-")


def _fitting(block: _Block, width: float) -> str:
    """The longest name of a block that fits in its width; empty if none does."""
    names = (one_line(block.label), block.version)
    return next((name for name in names if _LETTER * len(name) <= width), "")


def _marks(metric: MetricReport, blocks: Sequence[_Block], chart: Chart) -> Iterator[Series]:
    ordered = [(number + 0.5, block, point) for number, (block, point) in enumerate(_in_order(blocks))]
    for version in ("base", "head"):
        yield trials(
            version,
            (
                Mark(x, point.value, f"{block.label}, trial {point.trial}: {format_quantity(point.value, metric.unit)}")
                for x, block, point in ordered
                if point.value is not None and block.version == version
            ),
        )
    top = chart.y.at(1 + _ABOVE / chart.inner_height)
    missing = [(x, block, point) for x, block, point in ordered if point.value is None]
    yield failed(Mark(x, top, f"{block.label}, trial {point.trial}") for x, block, point in missing)


def _in_order(blocks: Sequence[_Block]) -> Iterator[tuple[_Block, Point]]:
    for block in blocks:
        yield from ((block, point) for point in block.points)
