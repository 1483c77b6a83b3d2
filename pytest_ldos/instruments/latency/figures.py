"""Figures of the results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, TypedDict

from pytest_ldos.instruments.latency.case import Program, show_size
from pytest_ldos.instruments.latency.findings import CaseFindings
from pytest_ldos.instruments.latency.spec import Transport
from pytest_ldos.instruments.study import Axis, Curve, Figure, Point

_MOST_CURVES: Final = 8
_TIME: Final = Axis(title="round trip", unit="µs", is_log=True)


def figures_of(cases: Sequence[CaseFindings]) -> tuple[Figure, ...]:
    """For each transport: percentiles over message size, and the share of round trips that take longer than a time."""
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
    """Limits the curves to as many as can be told apart; the title says so."""
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
    """Complementary distribution down to one message's share; shows the twin only if no other of ours is known."""
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
