"""The analysis of all starts of a topology."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pytest_ldos.instruments.study import Round
from pytest_ldos.instruments.topology.edges import EdgeFigures, Totals, edges_of, figures_of, find_flows, totals_of
from pytest_ldos.instruments.topology.events import Event, find_events
from pytest_ldos.instruments.topology.lateness import Limits
from pytest_ldos.instruments.topology.recorded import Recorded
from pytest_ldos.instruments.topology.resources import Usage, find_usage
from pytest_ldos.instruments.topology.rounds import find_rounds
from pytest_ldos.robot.topology.model import Topology


@dataclass(frozen=True, kw_only=True)
class Analysis:
    """The reported results of a topology.

    Attributes:
        edges: figures of the edges, in the order of the file.
        failures: failures of starts, without repetition.
    """

    edges: tuple[EdgeFigures, ...]
    totals: Totals
    usage: tuple[Usage, ...]
    events: tuple[Event, ...]
    rounds: tuple[Round, ...]
    failures: tuple[str, ...]


def analyse(
    topology: Topology, starts: Sequence[Recorded], limits: Limits, *, case: str, rounds: int, cores: int
) -> Analysis:
    """Computes the figures of all starts; times count from the first message of the first start."""
    edges = edges_of(topology)
    origin_ns = min((each.start_ns for each in starts if each.start_ns), default=0)
    flows = [list(find_flows(edges, recorded)) for recorded in starts]
    figures = tuple(
        figures_of(edge, [flow for of_start in flows for flow in of_start if flow.edge is edge], limits)
        for edge in edges
    )
    found: list[Round] = []
    usage: list[Usage] = []
    events: list[Event] = []
    for block, (recorded, own) in enumerate(zip(starts, flows, strict=True)):
        found += find_rounds(recorded, own, limits, case=case, block=block, rounds=rounds, cores=cores)
        usage += find_usage(recorded, start=block, origin_ns=origin_ns, cores=cores)
        events += find_events(recorded, own, limits, origin_ns=origin_ns)
    return Analysis(
        edges=figures,
        totals=totals_of(figures),
        usage=tuple(usage),
        events=tuple(events),
        rounds=tuple(found),
        failures=tuple(dict.fromkeys(each.failure for each in starts if each.failure)),
    )
