"""Tables and figures of the results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, TypedDict

from pytest_ldos.instruments.latency.case import Program, Setup, show_size
from pytest_ldos.instruments.latency.exchange import Exchange
from pytest_ldos.instruments.latency.findings import Agreement, CaseFindings
from pytest_ldos.instruments.latency.spec import Transport
from pytest_ldos.instruments.latency.timings import Percentiles
from pytest_ldos.instruments.study import Axis, Cell, Column, Curve, Figure, Point, Table

_US: Final = "µs"
_PERCENTILES: Final = (
    Column(name="min", unit=_US),
    Column(name="mean", unit=_US),
    Column(name="p50", unit=_US),
    Column(name="p90", unit=_US),
    Column(name="p99", unit=_US),
    Column(name="p99_9", unit=_US, title="p99.9"),
    Column(name="max", unit=_US),
)
_SETUP: Final = (
    Column(name="size", unit="B"),
    Column(name="reliability"),
    Column(name="fragment_size", unit="B", title="fragment"),
    Column(name="max_message_size", unit="B", title="max"),
)
_PROGRAM: Final = Column(name="program")
_TRANSPORT: Final = Column(name="transport")


def tables_of(cases: Sequence[CaseFindings], agreements: Sequence[Agreement]) -> tuple[Table, ...]:
    """Returns the non-empty tables, summaries first."""
    transports = dict.fromkeys(each.case.transport for each in cases)
    every = [
        *(_round_trips([each for each in cases if each.case.transport is one], one) for one in transports),
        _agreement(agreements),
        _one_way(cases),
        _every_way(cases),
        _rounds([found for each in cases for found in each.exchanges]),
        _distributions(cases),
        _histograms(cases),
    ]
    return tuple(table for table in every if table.rows)


def _setup_cells(setup: Setup) -> tuple[Cell, ...]:
    """Returns the cells of a setup; ``None`` stands for Cyclone DDS's default."""
    reliability = setup.reliability.value.replace("_", " ")
    return (setup.size, reliability, setup.fragment_size or None, setup.max_message_size or None)


def _percentile_cells(found: Percentiles | None) -> tuple[Cell, ...]:
    if found is None:
        return (None,) * len(_PERCENTILES)
    return (found.low, found.mean, found.p50, found.p90, found.p99, found.p999, found.high)


def _round_trips(cases: Sequence[CaseFindings], transport: Transport) -> Table:
    columns = (
        *_SETUP,
        _PROGRAM,
        *_PERCENTILES,
        Column(name="rate", unit="Hz", title="rate"),
        Column(name="lost"),
    )
    rows = [
        (
            *_setup_cells(each.case),
            each.case.program.value,
            *_percentile_cells(each.round_trip),
            each.per_second,
            each.lost,
        )
        for each in cases
    ]
    title = f"Round trips, {transport.replace('_', ' ')}: medians over the rounds of each percentile"
    return _slim(Table(name=f"round_trips_{transport}", title=title, columns=columns, rows=tuple(rows)))


def _slim(table: Table) -> Table:
    """Moves settings that are the same in all rows from their columns to the title."""
    setups = {column.name: column for column in _SETUP[1:]}
    same = {
        place: table.rows[0][place]
        for place, column in enumerate(table.columns)
        if column.name in setups and len({row[place] for row in table.rows}) == 1
    }
    settings = ", ".join(_shown_setting(table.columns[place], cell) for place, cell in same.items() if cell is not None)
    kept = [place for place in range(len(table.columns)) if place not in same]
    return Table(
        name=table.name,
        title=f"{table.title} ({settings})" if settings else table.title,
        columns=tuple(table.columns[place] for place in kept),
        rows=tuple(tuple(row[place] for place in kept) for row in table.rows),
        is_detail=table.is_detail,
    )


def _shown_setting(column: Column, cell: Cell) -> str:
    return f"{column.name.replace('_', ' ')} {cell} {column.unit}" if column.unit else str(cell)


def _agreement(agreements: Sequence[Agreement]) -> Table:
    columns = (
        _TRANSPORT,
        *_SETUP,
        _PROGRAM,
        Column(name="ours", unit=_US, title="ours"),
        Column(name="theirs", unit=_US, title="theirs"),
        Column(name="ratio", title="ratio"),
        Column(name="low", title="from"),
        Column(name="high", title="to"),
        Column(name="ratio_p99", title="of p99"),
        Column(name="ratio_rate", title="of rate"),
    )
    rows = [
        (
            each.setup.transport.value,
            *_setup_cells(each.setup),
            each.program.value,
            each.ours_us,
            each.theirs_us,
            each.p50.value,
            each.p50.low,
            each.p50.high,
            each.p99.value,
            each.rate.value,
        )
        for each in agreements
    ]
    title = "Medians over ddsperf's, round by round: ratios with 95 % intervals; ratios of p99 and rate"
    return _slim(Table(name="beside_ddsperf", title=title, columns=columns, rows=tuple(rows)))


def _one_way(cases: Sequence[CaseFindings]) -> Table:
    names = [f"{way}_{what}" for way in ("there", "back") for what in ("p50", "p99", "max")]
    columns = (_TRANSPORT, *_SETUP, _PROGRAM, *(Column(name=name, unit=_US) for name in names))
    rows = [
        (
            each.case.transport.value,
            *_setup_cells(each.case),
            each.case.program.value,
            *(there.p50, there.p99, there.high),
            *(back.p50, back.p99, back.high),
        )
        for each in cases
        if (there := each.there) is not None and (back := each.back) is not None
    ]
    title = "One way, by the clock that all processes of a machine share"
    return _slim(Table(name="one_way", title=title, columns=columns, rows=tuple(rows)))


def _every_way(cases: Sequence[CaseFindings]) -> Table:
    columns = (_TRANSPORT, *_SETUP, _PROGRAM, Column(name="way"), *_PERCENTILES)
    rows = [
        (each.case.transport.value, *_setup_cells(each.case), each.case.program.value, way, *_percentile_cells(found))
        for each in cases
        for way, found in (("there", each.there), ("back", each.back))
        if found is not None
    ]
    return _slim(
        Table(name="one_way_percentiles", title="One way, in full", columns=columns, rows=tuple(rows), is_detail=True)
    )


def _rounds(exchanges: Sequence[Exchange]) -> Table:
    columns = (
        _PROGRAM,
        _TRANSPORT,
        *_SETUP,
        Column(name="round"),
        *_PERCENTILES,
        Column(name="rate", unit="Hz"),
        Column(name="sent"),
        Column(name="lost"),
        Column(name="late"),
        Column(name="failure"),
    )
    rows = [
        (
            each.case.program.value,
            each.case.transport.value,
            *_setup_cells(each.case),
            each.block,
            *_percentile_cells(each.round_trip),
            each.per_second if each.round_trip else None,
            each.sent,
            each.lost,
            each.late,
            each.failure,
        )
        for each in exchanges
    ]
    return Table(name="every_round", title="Every round", columns=columns, rows=tuple(rows), is_detail=True)


def _distributions(cases: Sequence[CaseFindings]) -> Table:
    columns = (
        _PROGRAM,
        _TRANSPORT,
        *_SETUP,
        Column(name="round_trip", unit=_US),
        Column(name="share", title="share up to it"),
        Column(name="count"),
    )
    rows = [(*_case_cells(each), *step) for each in cases for step in _steps(each)]
    return Table(
        name="distribution", title="Distribution of round trips", columns=columns, rows=tuple(rows), is_detail=True
    )


def _steps(case: CaseFindings) -> Iterator[tuple[Cell, ...]]:
    for step in case.distribution.steps():
        yield (step.value_ns / 1000, step.share, step.count)


def _histograms(cases: Sequence[CaseFindings]) -> Table:
    columns = (_PROGRAM, _TRANSPORT, *_SETUP, Column(name="histogram", title="as HdrHistogram encodes it, in ns"))
    rows = [(*_case_cells(each), each.distribution.encoded()) for each in cases if each.distribution.count]
    title = "Full histograms of round trips"
    return Table(name="histograms", title=title, columns=columns, rows=tuple(rows), is_detail=True)


def _case_cells(each: CaseFindings) -> tuple[Cell, ...]:
    return (each.case.program.value, each.case.transport.value, *_setup_cells(each.case))


_MOST_CURVES: Final = 8
_TIME: Final = Axis(title="round trip", unit="µs", is_log=True)


def figures_of(cases: Sequence[CaseFindings]) -> tuple[Figure, ...]:
    """For each transport: percentiles over message size, and the complementary distribution of round trips."""
    return tuple(_figures(cases))


def _figures(cases: Sequence[CaseFindings]) -> Iterator[Figure]:
    for transport in dict.fromkeys(each.case.transport for each in cases):
        those = [each for each in cases if each.case.transport is transport]
        usual = [each for each in those if each.case.is_default and each.case.reliability is those[0].case.reliability]
        if len({each.case.size for each in usual}) > 1:
            yield _over_sizes(usual, transport)
        yield from _over_settings(those, transport)
        if any(each.distribution.count for each in usual):
            yield _distribution(usual, transport)


def _over_sizes(cases: Sequence[CaseFindings], transport: Transport) -> Figure:
    curves = []
    for program in dict.fromkeys(each.case.program for each in cases):
        found = [(each.case.size, each.round_trip) for each in cases if each.case.program is program]
        known = sorted((size, times.p50, times.p99) for size, times in found if times is not None)
        if known:
            curves.append(Curve(f"{program}, p50", tuple(Point(size, p50) for size, p50, _ in known)))
            curves.append(Curve(f"{program}, p99", tuple(Point(size, p99) for size, _, p99 in known)))
    return Figure(
        name=f"percentiles_{transport}",
        title=f"Round trips over the size of a message, {_named(transport)}",
        x=Axis(title="size", unit="B", is_log=True),
        y=_TIME,
        curves=tuple(curves),
    )


def _over_settings(cases: Sequence[CaseFindings], transport: Transport) -> Iterator[Figure]:
    """Yields a figure for each of Cyclone DDS's settings that has several values."""
    for name, title in (("fragment_size", "FragmentSize"), ("max_message_size", "MaxMessageSize")):
        swept = [each for each in cases if getattr(each.case, name) and each.case.program.is_cyclone]
        if len({getattr(each.case, name) for each in swept}) > 1:
            yield Figure(
                name=f"{name}_{transport}",
                **_curves(f"Median round trips over {title}, {_named(transport)}", _setting_curves(swept, name)),
                x=Axis(title=title, unit="B", is_log=True),
                y=_TIME,
            )


class _Curves(TypedDict):
    title: str
    curves: tuple[Curve, ...]


def _curves(title: str, every: Iterator[Curve]) -> _Curves:
    """Limits the number of curves for readability; the title states this."""
    curves = tuple(curve for curve in every if curve.points)
    left_out = f" (the first {_MOST_CURVES} of {len(curves)})" if len(curves) > _MOST_CURVES else ""
    return {"title": title + left_out, "curves": curves[:_MOST_CURVES]}


def _setting_curves(cases: Sequence[CaseFindings], name: str) -> Iterator[Curve]:
    """Yields a curve for each program, size, reliability and value of the other setting."""
    other = "max_message_size" if name == "fragment_size" else "fragment_size"
    groups: dict[str, list[Point]] = {}
    for each in cases:
        if each.round_trip is not None:
            key = (each.case.program, show_size(each.case.size), each.case.reliability, getattr(each.case, other))
            label = ", ".join(str(part) for part in key if part)
            groups.setdefault(label, []).append(Point(getattr(each.case, name), each.round_trip.p50))
    for label, points in groups.items():
        yield Curve(label, tuple(sorted(points, key=lambda point: point.x)))


def _distribution(cases: Sequence[CaseFindings], transport: Transport) -> Figure:
    """Complementary distribution down to one message's share; shows the validation twin only without other programs."""
    known = [each for each in cases if each.distribution.count]
    shown = [each for each in known if each.case.program is not Program.TWIN] or known
    curves = (
        Curve(
            f"{each.case.program}, {show_size(each.case.size)}",
            tuple(Point(step.value_ns / 1000, 1 - step.share) for step in each.distribution.steps() if step.share < 1),
        )
        for each in shown
    )
    return Figure(
        name=f"distribution_{transport}",
        **_curves(f"Share of round trips that take longer, {_named(transport)}", curves),
        x=_TIME,
        y=Axis(title="share that takes longer", is_log=True),
    )


def _named(transport: Transport) -> str:
    return transport.replace("_", " ")
