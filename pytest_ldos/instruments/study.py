"""The common interface of instruments: settings in, a study of rounds, tables and figures out."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from statistics import fmean
from typing import Any, Final, Protocol, Self, TypeVar

from pytest_ldos.base.series import Value
from pytest_ldos.base.stats.counts import mean_interval
from pytest_ldos.host.availability import Availability
from pytest_ldos.measure.metrics.model import Metric
from pytest_ldos.scenario.fields import described

Cell = str | int | float | None  # a cell of a table; ``None`` for a missing number

Setting = str | int | float | bool

ROUNDS: Final = "rounds"  # file name of the table of all rounds and quantities; no table of an instrument may use it


@dataclass(frozen=True)
class Estimate:
    """A value with the bounds of its 95 % interval, which are ``None`` if there are too few rounds or starts."""

    value: float
    low: float | None
    high: float | None

    @classmethod
    def of_mean(cls, values: Sequence[float], *, least: float = -math.inf) -> Self:
        """Estimates the mean of one or more values of at least `least`, with Student's t interval."""
        if len(values) < 2:
            return cls(values[0], None, None)
        low, high = mean_interval(values)
        return cls(fmean(values), max(least, low), high)

    @classmethod
    def of_ratios(cls, pairs: Sequence[tuple[float, float]]) -> Self:
        """Estimates the geometric mean of ratios of positive numbers, with the interval of their logarithms."""
        logs = Estimate.of_mean([math.log(value / base) for value, base in pairs])
        bounds = (None if each is None else math.exp(each) for each in (logs.low, logs.high))
        return cls(math.exp(logs.value), *bounds)


def cells_of(found: Estimate | None) -> tuple[Cell, Cell, Cell]:
    return (None, None, None) if found is None else (found.value, found.low, found.high)


T = TypeVar("T")


def alternate(items: Sequence[T], number: int) -> Sequence[T]:
    """Returns the items, reversed in every second pass, so that drift affects all of them alike."""
    return items if number % 2 == 0 else items[::-1]


def setting(value: T, /, meaning: str, *flags: str, is_path: bool = False, default: T | None = None) -> T:
    """A described field of an instrument's spec with a default value; for the other arguments see `described`."""
    return field(default=value, metadata=described(meaning, *flags, is_path=is_path, default=default))


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column of a table, also in a Parquet file; its title is by default the name with spaces.

    The unit is one of `units.UNITS`, or empty for counts, ratios and words.
    """

    name: str
    unit: str = ""
    title: str = ""

    @property
    def heading(self) -> str:
        title = self.title or self.name.replace("_", " ")
        return f"{title} [{self.unit}]" if self.unit else title


def columns_of(headings: str) -> tuple[Column, ...]:
    """Returns columns, written as ``name [unit] title`` with commas between them; unit and title may be left out.

    ``name±STEM`` stands for an estimate and the bounds of its interval, ``STEM_low`` and ``STEM_high``.
    """
    found = []
    for each in headings.split(", "):
        names, _, title = each.partition(" ")
        unit, _, rest = title.removeprefix("[").partition("]") if title.startswith("[") else ("", "", title)
        name, _, stem = names.partition("±")
        found.append(Column(name=name, unit=unit, title=rest.strip()))
        if stem:
            found.append(Column(name=f"{stem}_low", unit=unit, title="from"))
            found.append(Column(name=f"{stem}_high", unit=unit, title="to"))
    return tuple(found)


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows of cells; the first column identifies a row.

    Attributes:
        name: identifier, and name of the Parquet file; must not be `ROUNDS`.
        is_detail: True if it is too long for a terminal; it is folded in HTML, and otherwise only in files.

    Raises:
        ValueError: a row's length differs from the number of columns, or a number is not finite.
    """

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    is_detail: bool = False

    @classmethod
    def of(
        cls, columns: str, rows: Iterable[tuple[Cell, ...]], *, name: str, title: str, is_detail: bool = False
    ) -> Self:
        """Builds a table with the columns of a text; see `columns_of`."""
        return cls(name=name, title=title, columns=columns_of(columns), rows=tuple(rows), is_detail=is_detail)

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"a row of table {self.name!r} has {len(row)} cells for {len(self.columns)} columns")
            if any(isinstance(cell, float) and not math.isfinite(cell) for cell in row):
                raise ValueError(f"table {self.name!r} holds a number that is not finite: {row}")


@dataclass(frozen=True)
class Point:
    x: float
    y: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Curve:
    """Labelled points, in the order in which they are joined."""

    label: str
    points: tuple[Point, ...]


@dataclass(frozen=True, kw_only=True)
class Axis:
    """An axis; a logarithmic one has values above 0, `names` label the positions 0, 1, 2, … of a categorical one."""

    title: str
    unit: str = ""
    is_log: bool = False
    names: tuple[str, ...] = ()


class Shape(StrEnum):
    LINE = "line"
    BAR = "bar"


@dataclass(frozen=True, kw_only=True)
class Figure:
    """Curves over common axes; a table holds the same numbers."""

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
        case: the measured case, with every setting that affects its numbers; only equal cases are compared.
        block: number of the start of its processes, from 0.
        values: values to gate, by name of the quantity.
        details: further numbers by name with a unit suffix.
        failure: reason why it has no numbers; empty if it has.
    """

    case: str
    block: int
    values: Mapping[str, Value] = field(default_factory=dict)
    details: Mapping[str, float] = field(default_factory=dict)
    failure: str = ""


@dataclass(frozen=True, kw_only=True)
class Study:
    """All results of one instrument in one run.

    Attributes:
        name: name for gating and of the baseline's file.
        layer: ``embedded``, or ``ros2``.
        middleware: implementation of DDS or of RMW, as ROS 2 names it: ``rmw_cyclonedds_cpp``.
        quantities: the quantities of the rounds' values, in display order.
        notes: notes for the reader, the most important first, such as omitted measurements with reasons.
        started_at: ISO 8601, UTC.
        missed: limits of its settings that were missed or not measured, by name.
        watched: tools that observed its processes; such rounds cannot be a baseline.
        distortion: reason why its times are not comparable with others; empty if they are.

    Raises:
        ValueError: two tables have the same name, or one is named like the rounds' table.
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


class Progress(Protocol):
    def expect(self, steps: int) -> None:
        """Announces the largest number of remaining steps."""

    def doing(self, what: str) -> None: ...

    def step(self, count: int = 1) -> None: ...

    def note(self, text: str) -> None:
        """Reports an event worth a line of output."""


@dataclass(frozen=True, kw_only=True)
class Instrument:
    """A benchmark of the middleware or of tracing.

    Attributes:
        name: name of the instrument, of its command and, after ``ldos_``, of its mark.
        spec: a frozen dataclass whose fields are the mark's arguments.
        quantities: all quantities that it may gate; a study has those requested by its settings.
        available: reports if it can run here with given settings; called before anything starts.
        measure: runs the measurement. Raises an `LdosError` for known faults; undiscovered peers and lost messages
            are results.
    """

    name: str
    spec: type[Any]
    quantities: tuple[Metric, ...]
    available: Callable[[Any], Availability]
    measure: Callable[[Any, Progress], Study]
