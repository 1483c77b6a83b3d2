"""Performance targets: limits of a topology's resource usage, latency and losses.

Reference: seed of this instrument, "Target performance": JSON with ``resources`` and ``latency_total``, whose keys are
columns of ``resources.txt`` and ``latency_total.txt``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pytest_ldos.instruments.study import Axis, Cell, Column, Curve, Figure, Point, Shape, Table
from pytest_ldos.instruments.topology.edges import Totals
from pytest_ldos.instruments.topology.rounds import MEMORY, Analysis, Usage
from pytest_ldos.robot.topology.located_json import Place, read_located, read_source
from pytest_ldos.robot.topology.model import Topology

_TABLE: Final = "target"
MET: Final = "passed"
MISSED: Final = "failed"
UNKNOWN: Final = "not measured"

_WORDS: Final = ("topology_file", "platform", "additional_options", "comments")
_LONGEST_WORDS: Final = 10_000
_RESOURCES: Final = {"cpu[%]": "%", **{f"{name.removesuffix('_kb')}[KB]": "KB" for name in MEMORY}}
_LATENCY: Final = {
    "mean[us]": "µs",
    "late[#]": "",
    "late[%]": "%",
    "too_late[#]": "",
    "too_late[%]": "%",
    "lost[#]": "",
    "lost[%]": "%",
}
_FIGURES: Final = {
    "cpu[%]": "CPU",
    **{f"{name.removesuffix('_kb')}[KB]": "Memory" for name in MEMORY},
    "mean[us]": "Mean latency",
    **{f"{name}[%]": "Shares of messages" for name in ("late", "too_late", "lost")},
    **{f"{name}[#]": "Messages" for name in ("late", "too_late", "lost")},
}
"""Title of each limit's figure; limits with the same title share a figure."""


@dataclass(frozen=True)
class Limit:
    """An upper limit.

    Attributes:
        name: name in the file: ``cpu[%]``.
        most: largest allowed value.
    """

    name: str
    unit: str
    most: float


@dataclass(frozen=True, kw_only=True)
class Target:
    """The content of a target file.

    Attributes:
        topology_file: file of its topology; empty if not given.
    """

    name: str
    topology_file: str
    limits: tuple[Limit, ...]

    def differs_from(self, topology: Topology) -> bool:
        """Returns True if it is for another topology, according to the file's name."""
        return bool(self.topology_file) and Path(self.topology_file).stem != topology.name


@dataclass(frozen=True)
class Judged:
    """A limit with its measured value; ``None`` if nothing was measured."""

    limit: Limit
    measured: float | None

    @property
    def verdict(self) -> str:
        if self.measured is None:
            return UNKNOWN
        return MET if self.measured <= self.limit.most else MISSED


def read_target(file: Path) -> Target:
    """Reads a performance target.

    Raises:
        ConfigurationError: it cannot be read or is invalid; the message has line and key.
    """
    root = read_located(read_source(file, "the target", remedy="name a file"), file.name)
    keys = root.members((*_WORDS, "resources", "latency_total"))
    words = {key: keys[key].word(longest=_LONGEST_WORDS) for key in _WORDS if key in keys}
    limits = [
        limit
        for key, known in (("resources", _RESOURCES), ("latency_total", _LATENCY))
        if key in keys
        for limit in _read_limits(keys[key], known)
    ]
    if not limits:
        root.refuse("sets no limit", remedy='add one, as in "resources": {"cpu[%]": 15}')
    return Target(name=file.name, topology_file=words.get("topology_file", ""), limits=tuple(limits))


def _read_limits(place: Place, known: dict[str, str]) -> list[Limit]:
    found = []
    for name, value in place.members(known).items():
        most = value.number()
        if most < 0:
            value.refuse(f"is {value.shown}", remedy="it must be 0 or more")
        found.append(Limit(name, known[name], most))
    return found


def judge_target(target: Target, analysis: Analysis) -> list[Judged]:
    """Compares each limit with the measurement: CPU over the whole run, average memory, total messages.

    If a start failed, no limit passes, because its usage is unknown.
    """
    if analysis.failures:
        return [Judged(limit, None) for limit in target.limits]
    measured = {**_measured_resources(analysis.usage), **_measured_latency(analysis.totals)}
    return [Judged(limit, measured.get(limit.name)) for limit in target.limits]


def _measured_resources(usage: Sequence[Usage]) -> dict[str, float]:
    """CPU is the average since the start, from each start's last sample."""
    if not usage:
        return {}
    last = {each.start: each.cpu_percent for each in usage}
    memory = {f"{name.removesuffix('_kb')}[KB]": _mean([getattr(each, name) for each in usage]) for name in MEMORY}
    return {"cpu[%]": _mean(list(last.values())), **memory}


def _measured_latency(totals: Totals) -> dict[str, float | None]:
    return {
        "mean[us]": totals.mean_us,
        "late[#]": totals.late,
        "late[%]": totals.late_percent,
        "too_late[#]": totals.too_late,
        "too_late[%]": totals.too_late_percent,
        "lost[#]": totals.lost,
        "lost[%]": totals.lost_percent,
    }


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def target_table(target: Target, judged: Sequence[Judged]) -> Table:
    columns = (
        Column(name="limit"),
        Column(name="measured"),
        Column(name="at_most", title="at most"),
        Column(name="verdict"),
    )
    rows = tuple((each.limit.name, _whole(each.measured), _whole(each.limit.most), each.verdict) for each in judged)
    return Table(name=_TABLE, title=f"Target {target.name}", columns=columns, rows=rows)


def _whole(value: float | None) -> Cell:
    """Rounds large numbers to integers."""
    return round(value) if value is not None and value >= 1000 else value


def target_figures(judged: Sequence[Judged]) -> list[Figure]:
    """Returns bars of measured values next to their limits; related limits share a figure."""
    titles = dict.fromkeys(_FIGURES[each.limit.name] for each in judged)
    return [_figure(title, [each for each in judged if _FIGURES[each.limit.name] == title]) for title in titles]


def _figure(title: str, judged: Sequence[Judged]) -> Figure:
    """Returns one figure; an unmeasured value has no bar."""
    names = tuple(each.limit.name for each in judged)
    measured = tuple(Point(place, each.measured) for place, each in enumerate(judged) if each.measured is not None)
    allowed = tuple(Point(place, each.limit.most) for place, each in enumerate(judged))
    return Figure(
        name=f"target_{title.lower().replace(' ', '_')}",
        title=f"{title}: measured, and the target",
        x=Axis(title="limit", names=names),
        y=Axis(title=title, unit=judged[0].limit.unit),
        curves=(Curve("measured", measured), Curve("target", allowed)),
        shape=Shape.BAR,
    )
