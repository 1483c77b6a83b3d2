"""What an instrument found: numbers that can be gated, and tables and figures for people."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from pytest_ldos.metrics.model import Metric
from pytest_ldos.series import Value

Cell = str | int | float | None
"""``None`` where there is no number."""

Setting = str | int | float | bool

ROUNDS: Final = "rounds"
"""What a table of all rounds and quantities is called where tables are files; no instrument's own is."""


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column of a table.

    Attributes:
        name: an identifier; with the unit it names the column of a Parquet file.
        unit: one of `units.UNITS`; empty for counts, ratios and words.
        title: for people; the name in words unless given.
    """

    name: str
    unit: str = ""
    title: str = ""

    @property
    def heading(self) -> str:
        """``p99 [µs]``."""
        title = self.title or self.name.replace("_", " ")
        return f"{title} [{self.unit}]" if self.unit else title


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows of cells; the first column names a row.

    Attributes:
        name: an identifier; of the Parquet file, and not `ROUNDS`.
        is_detail: whether it is too long for a terminal: shown folded in HTML, else only in files.

    Raises:
        ValueError: a row has another number of cells than there are columns, or a number is not finite.
    """

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    is_detail: bool = False

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"a row of table {self.name!r} has {len(row)} cells for {len(self.columns)} columns")
            if any(isinstance(cell, float) and not math.isfinite(cell) for cell in row):
                raise ValueError(f"table {self.name!r} holds a number that is not finite: {row}")


@dataclass(frozen=True)
class Point:
    """A value with its interval, where there is one."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Curve:
    """Points under one name, in the order in which they are joined."""

    label: str
    points: tuple[Point, ...]


@dataclass(frozen=True, kw_only=True)
class Axis:
    """An axis.

    Attributes:
        is_log: whether equal distances are equal ratios; all values are above 0 then.
        names: of the places 0, 1, 2, … where those are no numbers.
    """

    title: str
    unit: str = ""
    is_log: bool = False
    names: tuple[str, ...] = ()


class Shape(StrEnum):
    """How the points of a curve are drawn."""

    LINE = "line"
    BAR = "bar"


@dataclass(frozen=True, kw_only=True)
class Figure:
    """Curves over common axes; what they show stands in a table, too."""

    name: str
    title: str
    x: Axis
    y: Axis
    curves: tuple[Curve, ...]
    shape: Shape = Shape.LINE


@dataclass(frozen=True, kw_only=True)
class Round:
    """One repetition of a measurement.

    Attributes:
        case: what was measured, with every setting that its numbers depend on; only like is compared with like.
        block: number of the start of its processes, from 0.
        values: by name of the quantity.
        details: further numbers, by name with their unit at the end; displayed, not gated.
        failure: why it gave no numbers; empty where it gave them.
    """

    case: str
    block: int
    values: Mapping[str, Value] = field(default_factory=dict)
    details: Mapping[str, float] = field(default_factory=dict)
    failure: str = ""


@dataclass(frozen=True, kw_only=True)
class Study:
    """All that one instrument found in one run.

    Attributes:
        instrument: its name: ``latency``.
        name: under which it is gated: a baseline's file is called so.
        layer: what was measured: ``embedded``, or ``ros2``.
        middleware: implementation of DDS or of RMW, as ROS 2 names it: ``rmw_cyclonedds_cpp``.
        versions: of what it was measured with, by name.
        settings: as they were used.
        quantities: what the values of the rounds are of, in the order in which they are shown.
        notes: what a reader must know, the weightiest first: what could not be measured, and why.
        started_at: ISO 8601, UTC.
        missed: limits that its settings name and that were not met, or not measured, by name.
        watched: tools that watched its processes; its rounds become no baseline.
        distortion: why its times compare with no others; empty where they do.

    Raises:
        ValueError: two tables have the same name, or one has that of its rounds.
    """

    instrument: str
    name: str
    layer: str
    middleware: str
    started_at: str
    settings: Mapping[str, Setting]
    quantities: tuple[Metric, ...]
    rounds: tuple[Round, ...]
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()
    notes: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    missed: tuple[str, ...] = ()
    watched: str = ""
    distortion: str = ""

    def __post_init__(self) -> None:
        names = [ROUNDS, *(table.name for table in self.tables)]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"the study has more than one table {name!r}")
