"""The waterfall of a path that moved: base above head, the part that moved most in colour."""

from __future__ import annotations

from htpy import Node

from pytest_ldos.show.report.document import PathReport, Segment
from pytest_ldos.show.report.paths import format_change
from pytest_ldos.show.report.trace.waterfall import Part, Waterfall, mark
from pytest_ldos.show.report.trace.waterfall_drawing import draw_waterfalls


def draw_path(path: PathReport, labels: tuple[str, str]) -> Node:
    """Medians of the parts of a path, in both versions on one scale.

    Args:
        labels: of base and head.
    """
    blamed = next((each.name for each in path.segments if each.is_certain), "")
    base, head = (
        Waterfall(
            f"{path.path}, {label}",
            tuple(_part(each, blamed, is_head=is_head) for each in path.segments),
            whole_ns=round(path.whole.head_ns if is_head else path.whole.base_ns),
        )
        for label, is_head in zip(labels, (False, True), strict=True)
    )
    scale_ns = max(base.duration_ns, head.duration_ns)
    return draw_waterfalls([mark(each, blamed) for each in (base, head)], scale_ns=scale_ns)


def _part(segment: Segment, blamed: str, *, is_head: bool) -> Part:
    note = format_change(segment) if is_head and segment.name == blamed else ""
    return Part(segment.name, round(segment.head_ns if is_head else segment.base_ns), note)
