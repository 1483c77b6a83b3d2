"""A study as instruments make them, small and with everything that can be in one."""

from __future__ import annotations

from typing import Any

from pytest_ldos.base.series import Better
from pytest_ldos.instruments.study import Axis, Column, Curve, Figure, Point, Round, Shape, Study, Table
from pytest_ldos.measure.metrics.model import Metric

HALF_TRIP = Metric(name="half_p50", title="Half a round trip, median", unit="µs", better=Better.LOWER)
RATE = Metric(name="rate", title="Messages a second", unit="Hz", better=Better.HIGHER)


def study(values: list[float] | None = None, **changes: Any) -> Study:
    """Rounds of `values` µs, alternating between two starts."""
    found = [10.0, 11.0, 12.0] if values is None else values
    rounds = tuple(
        Round(case="1 KiB", block=place % 2, values={"half_p50": value, "rate": 1e6 / value})
        for place, value in enumerate(found)
    )
    rows = tuple(("1 KiB", place, value, None) for place, value in enumerate(found))
    table = Table(
        name="rounds_seen",
        title="What each round saw",
        columns=(Column(name="case"), Column(name="round"), Column(name="p50", unit="µs"), Column(name="lost")),
        rows=rows,
    )
    curve = Curve("median", tuple(Point(place + 1, value, value - 1, value + 1) for place, value in enumerate(found)))
    line = Figure(
        name="medians", title="Medians", x=Axis(title="round"), y=Axis(title="p50", unit="µs"), curves=(curve,)
    )
    bars = Figure(
        name="bars",
        title="By reliability",
        x=Axis(title="reliability", names=("reliable", "best effort")),
        y=Axis(title="p50", unit="µs"),
        curves=(Curve("ours", (Point(0, 10), Point(1, 8))), Curve("theirs", (Point(0, 9), Point(1, 9)))),
        shape=Shape.BAR,
    )
    made = {
        "instrument": "steady",
        "name": "steady",
        "layer": "embedded",
        "middleware": "rmw_cyclonedds_cpp",
        "started_at": "2026-01-02T03:04:05+00:00",
        "settings": {"size_bytes": 1024, "reliable": True},
        "quantities": (HALF_TRIP, RATE),
        "rounds": rounds,
        "tables": (table,),
        "figures": (line, bars),
        "notes": ("CPUs were not pinned: not permitted",),
        "versions": {"cyclonedds": "0.10.5"},
    }
    return Study(**{**made, **changes})
