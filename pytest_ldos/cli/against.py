"""``ldos analyze TRACE… --against BASE…``: runs of two versions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.fleet.find import find_traces
from pytest_ldos.show.report.analysis import Analysis
from pytest_ldos.show.report.trace.against import SeenRun, see_run
from pytest_ldos.trace.ctf.remote import address_of

Read = Callable[[Path], tuple[Analysis, list[str]]]


@dataclass(frozen=True)
class Runs:
    """Traces of the runs of both versions."""

    bases: Sequence[Path]
    heads: Sequence[Path]


@dataclass(frozen=True)
class Seen:
    """Their compared facts, and notes on their clocks."""

    bases: Sequence[SeenRun]
    heads: Sequence[SeenRun]
    notes: Sequence[str]


def find_runs(heads: Sequence[Path], bases: Sequence[Path], *, together: bool) -> Runs:
    """The traces of each side; a folder that holds several is several runs.

    Args:
        together: treat each place as one trace, whatever lies below it.

    Raises:
        ConfigurationError: a trace is named twice.
    """
    ours, theirs = ([each for place in side for each in _runs_at(place, together=together)] for side in (heads, bases))
    found = Runs(bases=theirs, heads=ours)
    places = Counter(address_of(each) or str(each.resolve()) for each in (*found.heads, *found.bases))
    for place, times in places.items():
        if times > 1:
            raise ConfigurationError(f"{place} is named {times} times", remedy="name each run once")
    return found


def _runs_at(place: Path, *, together: bool) -> list[Path]:
    found = find_traces([place], together=together)
    return [place] if len(found) == 1 else [each.path for each in found]


def see_runs(runs: Runs, read: Read, *, drawn: bool) -> Seen:
    """Reads one trace after the other; none is kept.

    Args:
        drawn: True for a page.

    Raises:
        ConfigurationError: two traces are copies of one, or have no node in common.
    """
    notes: list[str] = []
    shown = _names((*runs.bases, *runs.heads))

    def see(place: Path) -> SeenRun:
        analysis, more = read(place)
        notes.extend(more)
        return see_run(replace(analysis, name=shown[place]), drawn=drawn)

    bases, heads = ([see(each) for each in side] for side in (runs.bases, runs.heads))
    _require_comparable([*bases, *heads])
    return Seen(bases, heads, notes)


def _names(places: Sequence[Path]) -> dict[Path, str]:
    """The last parts of each place, as many as tell all apart."""
    parts = {each: each.resolve().parts for each in places}
    count = 1
    while len({each[-count:] for each in parts.values()}) < len(parts):
        count += 1
    return {each: "/".join(some[-count:]) for each, some in parts.items()}


def _require_comparable(runs: Sequence[SeenRun]) -> None:
    first, *others = runs
    for number, one in enumerate(runs):
        for other in runs[:number]:
            if one.extent == other.extent and one.run.things == other.run.things:
                raise ConfigurationError(f"{other.name} and {one.name} are the same trace", remedy="name each run once")
    for each in others:
        if not each.run.nodes & first.run.nodes:
            raise ConfigurationError(
                f"{first.name} and {each.name} have no node in common",
                remedy="compare traces of the same system, recorded from before its nodes start",
            )
