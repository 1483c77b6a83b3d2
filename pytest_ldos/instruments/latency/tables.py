"""Tables and figures of the results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from pytest_ldos.instruments.latency.findings import Agreement, CaseFindings, Exchange, Percentiles
from pytest_ldos.instruments.latency.spec import LatencyCase, Program, Setup, Transport, show_size
from pytest_ldos.instruments.study import Axis, Cell, Column, Curve, Figure, Point, Table, cells_of, columns_of

_PERCENTILES: Final = "min [µs], mean [µs], p50 [µs], p90 [µs], p99 [µs], p99_9 [µs] p99.9, max [µs]"
_SETUP: Final = "size [B], reliability, fragment_size [B] fragment, max_message_size [B] max"
_BY_SETUP: Final = f"transport, {_SETUP}, program"
_BY_PROGRAM: Final = f"program, transport, {_SETUP}"
_MOVABLE: Final = ("reliability", "fragment_size", "max_message_size")


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


def _cells_by_setup(case: LatencyCase) -> tuple[Cell, ...]:
    return (case.transport.value, *_setup_cells(case), case.program.value)


def _cells_by_program(case: LatencyCase) -> tuple[Cell, ...]:
    return (case.program.value, case.transport.value, *_setup_cells(case))


def _percentile_cells(found: Percentiles | None) -> tuple[Cell, ...]:
    if found is None:
        return (None,) * len(columns_of(_PERCENTILES))
    return (found.low, found.mean, found.p50, found.p90, found.p99, found.p999, found.high)


def _round_trips(cases: Sequence[CaseFindings], transport: Transport) -> Table:
    rows = []
    for each in cases:
        times, lost = _percentile_cells(each.round_trip), sum(found.lost for found in each.exchanges)
        rows.append((*_setup_cells(each.case), each.case.program.value, *times, each.per_second, lost))
    columns = f"{_SETUP}, program, {_PERCENTILES}, rate [Hz], lost"
    title = f"Round trips, {_named(transport)}: medians over the rounds of each percentile"
    return _slim(Table.of(columns, rows, name=f"round_trips_{transport}", title=title))


def _slim(table: Table) -> Table:
    """Moves settings that are the same in all rows from their columns to the title."""
    same = {
        place: table.rows[0][place]
        for place, column in enumerate(table.columns)
        if column.name in _MOVABLE and len({row[place] for row in table.rows}) == 1
    }
    shown = ((table.columns[place], cell) for place, cell in same.items() if cell is not None)
    settings = ", ".join(
        f"{column.name.replace('_', ' ')} {cell} {column.unit}" if column.unit else str(cell) for column, cell in shown
    )
    kept = [place for place in range(len(table.columns)) if place not in same]
    return replace(
        table,
        title=f"{table.title} ({settings})" if settings else table.title,
        columns=tuple(table.columns[place] for place in kept),
        rows=tuple(tuple(row[place] for place in kept) for row in table.rows),
    )


def _agreement(agreements: Sequence[Agreement]) -> Table:
    rows = []
    for each in agreements:
        levels = (each.ours_us, each.theirs_us, *cells_of(each.p50), each.p99.value, each.rate.value)
        rows.append((*_cells_by_setup(each.case), *levels))
    columns = f"{_BY_SETUP}, ours [µs], theirs [µs], ratio, low from, high to, ratio_p99 of p99, ratio_rate of rate"
    title = "Medians over ddsperf's, round by round: ratios with 95 % intervals; ratios of p99 and rate"
    return _slim(Table.of(columns, rows, name="beside_ddsperf", title=title))


def _one_way(cases: Sequence[CaseFindings]) -> Table:
    rows = [
        (*_cells_by_setup(each.case), there.p50, there.p99, there.high, back.p50, back.p99, back.high)
        for each in cases
        if (there := each.there) is not None and (back := each.back) is not None
    ]
    times = ", ".join(f"{way}_{what} [µs]" for way in ("there", "back") for what in ("p50", "p99", "max"))
    title = "One way, by the clock that all processes of a machine share"
    return _slim(Table.of(f"{_BY_SETUP}, {times}", rows, name="one_way", title=title))


def _every_way(cases: Sequence[CaseFindings]) -> Table:
    rows = [
        (*_cells_by_setup(each.case), way, *_percentile_cells(found))
        for each in cases
        for way, found in (("there", each.there), ("back", each.back))
        if found is not None
    ]
    columns, name = f"{_BY_SETUP}, way, {_PERCENTILES}", "one_way_percentiles"
    return _slim(Table.of(columns, rows, name=name, title="One way, in full", is_detail=True))


def _rounds(exchanges: Sequence[Exchange]) -> Table:
    rows = []
    for each in exchanges:
        times = (*_percentile_cells(each.round_trip), each.per_second if each.round_trip else None)
        rows.append((*_cells_by_program(each.case), each.block, *times, each.sent, each.lost, each.late, each.failure))
    columns = f"{_BY_PROGRAM}, round, {_PERCENTILES}, rate [Hz], sent, lost, late, failure"
    return Table.of(columns, rows, name="every_round", title="Every round", is_detail=True)


def _distributions(cases: Sequence[CaseFindings]) -> Table:
    steps = ((each.case, step) for each in cases for step in each.distribution.steps())
    rows = ((*_cells_by_program(case), step.value_ns / 1000, step.share, step.count) for case, step in steps)
    columns = f"{_BY_PROGRAM}, round_trip [µs], share share up to it, count"
    return Table.of(columns, rows, name="distribution", title="Distribution of round trips", is_detail=True)


def _histograms(cases: Sequence[CaseFindings]) -> Table:
    columns = (*columns_of(_BY_PROGRAM), Column(name="histogram", title="as HdrHistogram encodes it, in ns"))
    rows = [(*_cells_by_program(each.case), each.distribution.encoded()) for each in cases if each.distribution.count]
    title = "Full histograms of round trips"
    return Table(name="histograms", title=title, columns=columns, rows=tuple(rows), is_detail=True)


_MOST_CURVES: Final = 8
_TIME: Final = Axis(title="round trip", unit="µs", is_log=True)


def figures_of(cases: Sequence[CaseFindings]) -> tuple[Figure, ...]:
    """For each transport: percentiles over message size, and the complementary distribution of round trips."""
    found: list[Figure] = []
    for transport in dict.fromkeys(each.case.transport for each in cases):
        those = [each for each in cases if each.case.transport is transport]
        usual = [each for each in those if each.case.is_default and each.case.reliability is those[0].case.reliability]
        if len({each.case.size for each in usual}) > 1:
            found.append(_over_sizes(usual, transport))
        found += _over_settings(those, transport)
        if any(each.distribution.count for each in usual):
            found.append(_distribution(usual, transport))
    return tuple(found)


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
            figure = Figure(
                name=f"{name}_{transport}",
                title=f"Median round trips over {title}, {_named(transport)}",
                x=Axis(title=title, unit="B", is_log=True),
                y=_TIME,
                curves=tuple(_setting_curves(swept, name)),
            )
            yield _readable(figure)


def _readable(figure: Figure) -> Figure:
    """Limits the number of curves; the title states this."""
    curves = tuple(curve for curve in figure.curves if curve.points)
    left_out = f" (the first {_MOST_CURVES} of {len(curves)})" if len(curves) > _MOST_CURVES else ""
    return replace(figure, title=figure.title + left_out, curves=curves[:_MOST_CURVES])


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
    curves = []
    for each in shown:
        steps = [step for step in each.distribution.steps() if step.share < 1]
        points = tuple(Point(step.value_ns / 1000, 1 - step.share) for step in steps)
        curves.append(Curve(f"{each.case.program}, {show_size(each.case.size)}", points))
    figure = Figure(
        name=f"distribution_{transport}",
        title=f"Share of round trips that take longer, {_named(transport)}",
        x=_TIME,
        y=Axis(title="share that takes longer", is_log=True),
        curves=tuple(curves),
    )
    return _readable(figure)


def _named(transport: Transport) -> str:
    return transport.replace("_", " ")
