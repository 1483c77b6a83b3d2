"""The values of a metric in the order in which they were measured, with stack starts and versions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from htpy import Node

from pytest_ldos.base.text import one_line
from pytest_ldos.base.units import format_quantity
from pytest_ldos.show.report.document import MetricReport, Point, Sample
from pytest_ldos.show.report.html.drawing import box, cross, frame, line, mark, vertical_axis, words
from pytest_ldos.show.report.html.scale import Scale

_WIDTH: Final = 520
_HEIGHT: Final = 202
_LEFT: Final = 62
_RIGHT: Final = 8
_TOP: Final = 34
_BOTTOM: Final = 174
_LETTER: Final = 7.5
"""Pixels that a letter of a label takes, at most."""


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
        is_interleaved: whether the versions' blocks belong to one session; else the base was measured before.
    """
    blocks = _blocks(samples, is_interleaved=is_interleaved)
    count = sum(len(block.points) for block in blocks)
    values = [point.value for block in blocks for point in block.points if point.value is not None]
    across = Scale(0, max(1, count), _LEFT, _WIDTH - _RIGHT)
    up = Scale.around(values, start=_BOTTOM, end=_TOP)
    content = [
        list(_fields(blocks, across)),
        list(vertical_axis(up, _LEFT, right=_WIDTH - _RIGHT, unit=metric.unit)),
        [_median(version, sample, up) for version, _, sample in samples],
        list(_marks(metric, blocks, across, up)),
    ]
    label = f"{metric.name} {metric.title} of {count} trials in order, in {len(blocks)} stack starts"
    return frame(_WIDTH, _HEIGHT, label=label, content=content)


def _blocks(samples: Sequence[tuple[str, str, Sample]], *, is_interleaved: bool) -> list[_Block]:
    found = [
        (number, _Block(version, label, tuple(points)))
        for version, label, sample in samples
        for number, points in groupby(sample.points, key=lambda point: point.block)
    ]
    return [block for _, block in (sorted(found, key=lambda each: each[0]) if is_interleaved else found)]


def _fields(blocks: Sequence[_Block], across: Scale) -> Iterator[Node]:
    first = 0
    for block in blocks:
        left, right = across(first), across(first + len(block.points))
        yield box(left, _TOP - 18, right - left, _BOTTOM - _TOP + 26, f"field {block.version}")
        yield line(left, _TOP - 18, left, _BOTTOM + 8, "grid")
        label = _fitting(block, right - left)
        yield words((left + right) / 2, _BOTTOM + 22, label, block.version, anchor="middle") if label else None
        first += len(block.points)


def _fitting(block: _Block, width: float) -> str:
    """What a block can be called in its width; empty where there is none."""
    names = (one_line(block.label), block.version)
    return next((name for name in names if _LETTER * len(name) <= width), "")


def _median(version: str, sample: Sample, up: Scale) -> Node:
    if sample.median is None:
        return None
    return line(_LEFT, up(sample.median), _WIDTH - _RIGHT, up(sample.median), f"{version} median")


def _marks(metric: MetricReport, blocks: Sequence[_Block], across: Scale, up: Scale) -> Iterator[Node]:
    ordered = [(block, point) for block in blocks for point in block.points]
    for number, (block, point) in enumerate(ordered):
        x, who = across(number + 0.5), f"{block.label}, trial {point.trial}"
        if point.value is None:
            yield cross(x, _TOP - 9, f"{who} failed: slower than any")
        else:
            yield mark(x, up(point.value), block.version, f"{who}: {format_quantity(point.value, metric.unit)}")
