"""Text files in the seed's format, compatible with its plotting programs.

Reference: seed of this instrument, "Output".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from pytest_ldos.base.writable import require_writable_file, writing
from pytest_ldos.instruments.topology.edges import EdgeFigures, Totals
from pytest_ldos.instruments.topology.rounds import Analysis, Event, Usage

_ALL: Final = (
    ("node", 15),
    ("topic", 15),
    ("size[b]", 10),
    ("received[#]", 15),
    ("late[#]", 10),
    ("too_late[#]", 15),
    ("lost[#]", 10),
    ("mean[us]", 10),
    ("sd[us]", 10),
    ("min[us]", 10),
    ("max[us]", 10),
    ("freq[hz]", 10),
    ("duration[s]", 15),
)
_TOTAL: Final = (
    ("received[#]", 15),
    ("mean[us]", 10),
    ("late[#]", 10),
    ("late[%]", 10),
    ("too_late[#]", 15),
    ("too_late[%]", 15),
    ("lost[#]", 10),
    ("lost[%]", 10),
)
_RESOURCES: Final = (
    ("time[ms]", 15),
    ("cpu[%]", 10),
    ("arena[KB]", 15),
    ("in_use[KB]", 15),
    ("mmap[KB]", 15),
    ("rss[KB]", 15),
    ("vsz[KB]", 15),
)
_EVENTS: Final = (("Time[ms]", 12), ("Caller", 25), ("Code", 6), ("Description", 0))

NO_NUMBER: Final = "nan"
_NAMES: Final = ("latency_all.txt", "latency_total.txt", "resources.txt", "events.txt")


def prepare_folder(folder: Path) -> None:
    """Creates the folder before anything is measured.

    Raises:
        ConfigurationError: the folder cannot be created, or a file in it cannot be written.
    """
    for name in _NAMES:
        require_writable_file(folder / name)


def write_log(analysis: Analysis, folder: Path) -> None:
    """Writes the four files, replacing existing ones.

    Raises:
        ConfigurationError: the folder cannot be written.
    """
    with writing(folder):
        for name, text in render_log(analysis).items():
            (folder / name).write_text(text, "utf-8")


def render_log(analysis: Analysis) -> dict[str, str]:
    """Returns the files' texts by name."""
    texts = (
        _render(_ALL, (_edge_row(each) for each in analysis.edges)),
        _render(_TOTAL, [_total_row(analysis.totals)]),
        _render(_RESOURCES, (_usage_row(each) for each in analysis.usage)),
        _render(_EVENTS, (_event_row(each) for each in analysis.events)),
    )
    return dict(zip(_NAMES, texts, strict=True))


def _edge_row(figures: EdgeFigures) -> list[str]:
    edge = figures.edge
    return [
        edge.node,
        edge.topic,
        str(edge.sources[0].size_bytes),
        *map(str, (figures.received, figures.late, figures.too_late, figures.lost)),
        *map(_rounded, (figures.mean_us, figures.sd_us, figures.min_us, figures.max_us)),
        f"{figures.nominal_hz:.6g}",
        f"{figures.duration_s:.0f}",
    ]


def _total_row(totals: Totals) -> list[str]:
    return [
        str(totals.received),
        _rounded(totals.mean_us),
        str(totals.late),
        _percent(totals.late_percent),
        str(totals.too_late),
        _percent(totals.too_late_percent),
        str(totals.lost),
        _percent(totals.lost_percent),
    ]


def _usage_row(usage: Usage) -> list[str]:
    sizes = usage.arena_kb, usage.in_use_kb, usage.mmap_kb, usage.rss_kb, usage.vsz_kb
    return [str(usage.time_ms), f"{usage.cpu_percent:.3g}", *map(str, sizes)]


def _event_row(event: Event) -> list[str]:
    return [str(event.time_ms), event.caller, str(int(event.code)), event.description]


def _rounded(value: float | None) -> str:
    return NO_NUMBER if value is None else f"{value:.0f}"


def _percent(value: float | None) -> str:
    return NO_NUMBER if value is None else f"{value:.4g}"


def _render(columns: Sequence[tuple[str, int]], rows: Iterable[Sequence[str]]) -> str:
    """Aligns columns, each as wide as in the seed, or as its longest word."""
    lines = [[name for name, _ in columns], *rows]
    widths = [max(width, 1 + max(len(line[place]) for line in lines)) for place, (_, width) in enumerate(columns)]
    text = ("".join(f"{word:<{width}}" for word, width in zip(line, widths, strict=True)).rstrip() for line in lines)
    return "\n".join(text) + "\n"
