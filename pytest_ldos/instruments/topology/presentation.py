"""Tables and figures of a topology, and text files in the format of the seed (its "Output")."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Final

from pytest_ldos.base.files import require_writable_file, writing
from pytest_ldos.instruments.study import Axis, Cell, Curve, Figure, Point, Table
from pytest_ldos.instruments.topology.edges import EdgeFigures
from pytest_ldos.instruments.topology.rounds import MEAN, MEMORY, P99, Analysis, Usage

MOST_EVENTS: Final = 5000  # largest number of events in a table; the log has all
_MB: Final = 1024 / 1e6  # megabytes per KiB


def tables_of(analysis: Analysis) -> tuple[Table, ...]:
    return tuple(table(analysis) for table in (_edges, _totals, _usage, _all, _resources, _events))


def figures_of_study(analysis: Analysis) -> tuple[Figure, ...]:
    latency = []
    for metric, label in ((MEAN, "mean"), (P99, "p99")):
        values = ((place, each.values.get(metric.name)) for place, each in enumerate(analysis.rounds, start=1))
        latency.append(Curve(label, tuple(Point(place, value) for place, value in values if isinstance(value, float))))
    return (
        Figure(
            name="latency",
            title="Latency of all edges by round",
            x=Axis(title="round"),
            y=Axis(title="latency", unit="µs", is_log=True),
            curves=tuple(latency),
        ),
        _over_time(analysis.usage, "cpu", "CPU time since the moment before", "%", lambda each: each.cpu_now_percent),
        _over_time(analysis.usage, "rss", "Resident memory of all processes", "MB", lambda each: each.rss_kb * _MB),
    )


_NUMBERS: Final = "received, late, too_late, lost, mean [µs], sd [µs], min [µs], max [µs], p99 [µs]"
_LEFT_OUT: Final = "mean, sd, min and max without what was too late"


def _edges(analysis: Analysis) -> Table:
    rows = ((each.edge.node, each.edge.topic, *_numbers(each)) for each in analysis.edges)
    return Table.of(f"node, topic, {_NUMBERS}", rows, name="edges", title=f"What arrived ({_LEFT_OUT})")


def _all(analysis: Analysis) -> Table:
    rows = []
    for each in analysis.edges:
        kind = "round trip" if each.edge.is_service else "message"
        edge = (each.edge.node, each.edge.topic, kind, each.edge.sources[0].size_bytes)
        rows.append((*edge, *_numbers(each), each.nominal_hz, each.rate_hz, each.duration_s))
    columns = f"node, topic, kind, size [B], {_NUMBERS}, freq [Hz] declared, rate [Hz] received, duration [s]"
    return Table.of(columns, rows, name="latency_all", title=f"Every edge in full ({_LEFT_OUT})", is_detail=True)


def _numbers(figures: EdgeFigures) -> tuple[Cell, ...]:
    counts = (figures.received, figures.late, figures.too_late, figures.lost)
    return (*counts, figures.mean_us, figures.sd_us, figures.min_us, figures.max_us, figures.p99_us)


def _totals(analysis: Analysis) -> Table:
    totals = analysis.totals
    late = (totals.late, totals.late_percent, totals.too_late, totals.too_late_percent)
    row = (f"all {len(analysis.edges)}", totals.received, totals.mean_us, *late, totals.lost, totals.lost_percent)
    late_columns = "late, late_share [%] late, too_late, too_late_share [%] too late"
    columns = f"edges, received, mean [µs], {late_columns}, lost, lost_share [%] lost"
    return Table.of(columns, [row], name="latency_total", title="All edges together")


def _usage(analysis: Analysis) -> Table:
    """Returns a row per start; `resources` has the individual samples."""
    rows = []
    for start, own in _by_start(analysis.usage):
        most = max((each.cpu_now_percent for each in own if each.cpu_now_percent is not None), default=None)
        rss, vsz = [each.rss_kb * _MB for each in own], [each.vsz_kb * _MB for each in own]
        rows.append((start + 1, own[-1].cpu_percent, most, rss[0], max(rss), max(vsz)))
    memory = "first_rss [MB] RSS at first, most_rss [MB] most RSS, most_vsz [MB] most VSZ"
    columns = f"start, cpu [%] CPU, most_cpu [%] most CPU, {memory}"
    return Table.of(columns, rows, name="usage", title="CPU time, of all cores, and memory of all processes")


def _resources(analysis: Analysis) -> Table:
    rows = []
    for each in analysis.usage:
        memory = (getattr(each, name) * _MB for name in MEMORY)
        rows.append((each.start, each.time_ms, each.cpu_percent, each.cpu_now_percent, *memory))
    sizes = ", ".join(f"{name.removesuffix('_kb')} [MB]" for name in MEMORY)
    columns = f"start, time [ms], cpu [%] cpu since the start, cpu_now [%] cpu, {sizes}"
    title = "CPU time, of all cores, and memory of all processes, moment by moment"
    return Table.of(columns, rows, name="resources", title=title, is_detail=True)


def _events(analysis: Analysis) -> Table:
    rows = ((each.time_ms, each.caller, int(each.code), each.description) for each in analysis.events[:MOST_EVENTS])
    return Table.of("time [ms], caller, code, description", rows, name="events", title="Events", is_detail=True)


def _by_start(usage: Sequence[Usage]) -> Iterator[tuple[int, list[Usage]]]:
    return ((start, list(own)) for start, own in groupby(usage, key=lambda each: each.start))


def _over_time(
    usage: Sequence[Usage], name: str, title: str, unit: str, value_of: Callable[[Usage], float | None]
) -> Figure:
    curves = []
    for start, own in _by_start(usage):
        values = [(each.time_ms / 1e3, value_of(each)) for each in own]
        points = tuple(Point(time_s, value) for time_s, value in values if value is not None)
        curves.append(Curve(f"start {start + 1}", points))
    return Figure(
        name=name, title=title, x=Axis(title="time", unit="s"), y=Axis(title=name, unit=unit), curves=tuple(curves)
    )


_COLUMNS: Final = {
    "latency_all.txt": "node 15, topic 15, size[b] 10, received[#] 15, late[#] 10, too_late[#] 15, lost[#] 10, "
    "mean[us] 10, sd[us] 10, min[us] 10, max[us] 10, freq[hz] 10, duration[s] 15",
    "latency_total.txt": "received[#] 15, mean[us] 10, late[#] 10, late[%] 10, too_late[#] 15, too_late[%] 15, "
    "lost[#] 10, lost[%] 10",
    "resources.txt": "time[ms] 15, cpu[%] 10, arena[KB] 15, in_use[KB] 15, mmap[KB] 15, rss[KB] 15, vsz[KB] 15",
    "events.txt": "Time[ms] 12, Caller 25, Code 6, Description 0",
}
"""Columns of each file, and their widths in the seed."""

NO_NUMBER: Final = "nan"


def prepare_folder(folder: Path) -> None:
    """Creates the folder before anything is measured; raises `ConfigurationError` if its files cannot be written."""
    for name in _COLUMNS:
        require_writable_file(folder / name)


def write_log(analysis: Analysis, folder: Path) -> None:
    """Writes the four files, replacing existing ones; raises `ConfigurationError` if the folder cannot be written."""
    with writing(folder):
        for name, text in render_log(analysis).items():
            (folder / name).write_text(text, "utf-8")


def render_log(analysis: Analysis) -> dict[str, str]:
    edges = []
    for each in analysis.edges:
        counts = map(str, (each.edge.sources[0].size_bytes, each.received, each.late, each.too_late, each.lost))
        times = map(_rounded, (each.mean_us, each.sd_us, each.min_us, each.max_us))
        rate, duration = f"{each.nominal_hz:.6g}", f"{each.duration_s:.0f}"
        edges.append([each.edge.node, each.edge.topic, *counts, *times, rate, duration])
    usage = []
    for moment in analysis.usage:
        sizes = (moment.arena_kb, moment.in_use_kb, moment.mmap_kb, moment.rss_kb, moment.vsz_kb)
        usage.append([str(moment.time_ms), f"{moment.cpu_percent:.3g}", *map(str, sizes)])
    events = [[str(each.time_ms), each.caller, str(int(each.code)), each.description] for each in analysis.events]
    totals = analysis.totals
    total = [str(totals.received), _rounded(totals.mean_us)]
    for name in ("late", "too_late", "lost"):
        share: float | None = getattr(totals, f"{name}_percent")
        total += [str(getattr(totals, name)), NO_NUMBER if share is None else f"{share:.4g}"]
    rows = (edges, [total], usage, events)
    return {name: _render(columns, lines) for (name, columns), lines in zip(_COLUMNS.items(), rows, strict=True)}


def _rounded(value: float | None) -> str:
    return NO_NUMBER if value is None else f"{value:.0f}"


def _render(columns: str, rows: Iterable[Sequence[str]]) -> str:
    """Aligns columns, each as wide as in the seed, or as its longest word."""
    names, least = zip(*(each.split() for each in columns.split(", ")), strict=True)
    lines = [names, *rows]
    widths = [max(int(width), 1 + max(len(line[place]) for line in lines)) for place, width in enumerate(least)]
    text = ("".join(f"{word:<{width}}" for word, width in zip(line, widths, strict=True)).rstrip() for line in lines)
    return "\n".join(text) + "\n"
