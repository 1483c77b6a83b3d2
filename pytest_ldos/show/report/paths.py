"""Sentences about where a path's time went."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pytest_ldos.base.units import format_quantity, ns_to_ms
from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.show.report.document import PathReport, Section, Segment

MOVED: Final = frozenset({Verdict.REGRESSED, Verdict.IMPROVED})
_MOST: Final = 3
"""Segments that are named for one path."""

_SMALLEST_SHARE: Final = 0.05
_SMALLEST_EFFECT: Final = 0.05
"""Relative change of a path that is no metric, from which it is mentioned."""


def moved_paths(section: Section) -> Iterator[tuple[str, PathReport]]:
    """Paths that deserve a word, each with what it is called there: those of metrics that moved, then others."""
    for metric in section.metrics:
        if metric.verdict in MOVED:
            yield from ((metric.name, path) for path in section.paths if metric.name in path.metrics)
    yield from ((f"path {path.path}", path) for path in section.paths if not path.metrics and _has_moved(path.whole))


def describe_paths(section: Section) -> tuple[str, ...]:
    """A sentence for each path that moved: by how much, and in which of its segments."""
    return tuple(describe_path(path, name) for name, path in moved_paths(section))


def _has_moved(whole: Segment) -> bool:
    return whole.is_certain and abs(whole.change_ns) > _SMALLEST_EFFECT * whole.base_ns


def describe_path(path: PathReport, name: str) -> str:
    """A sentence on one path: its change, and the segments that most of it is in."""
    named = [each for each in path.segments if each.share >= _SMALLEST_SHARE and each.is_certain][:_MOST]
    where = "; ".join(f"{100 * each.share:.0f} % of it in {each.name}, {format_change(each)}" for each in named)
    return f"{name} {format_change(path.whole)}: {where or 'no single segment stands out'}"


def format_change(segment: Segment) -> str:
    """``+5.04 ms [+5.00, +5.08]``."""
    sign = "+" if segment.change_ns >= 0 else "-"
    low, high = _bound(segment.low_ns, "-∞"), _bound(segment.high_ns, "+∞")
    return f"{sign}{format_quantity(abs(ns_to_ms(segment.change_ns)), 'ms')} [{low}, {high}]"


def _bound(bound_ns: float | None, without: str) -> str:
    return without if bound_ns is None else f"{ns_to_ms(bound_ns):+.3g}"
