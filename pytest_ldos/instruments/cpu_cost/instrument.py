"""`ldos cpu-cost`: the CPU cost of a message on each rung of the ladder."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

from pytest_ldos.host.availability import Availability
from pytest_ldos.host.hardware_counters import Event
from pytest_ldos.instruments.cost_layers import (
    Kind,
    Layer,
    choose_layers,
    layer_name,
    layers_available,
    middleware_name,
    versions_of,
)
from pytest_ldos.instruments.cpu_cost.exchange import why_not_counted
from pytest_ldos.instruments.cpu_cost.ladder import Ladder, RungRound
from pytest_ldos.instruments.cpu_cost.numbers import CYCLES, QUANTITIES, to_round
from pytest_ldos.instruments.cpu_cost.rungs import Rung
from pytest_ldos.instruments.cpu_cost.spec import CpuCostSpec
from pytest_ldos.instruments.cpu_cost.tables import Climb, figure_of, tables_of
from pytest_ldos.instruments.instrument import Instrument, Progress
from pytest_ldos.instruments.study import Round, Setting, Study

_NAME: Final = "cpu_cost"


def available(spec: CpuCostSpec) -> Availability:
    """Reports if any of the requested layers can run here."""
    return layers_available(spec.layer, spec.rmws)


def measure(spec: CpuCostSpec, progress: Progress) -> Study:
    """Measures the ladder of each layer."""
    started_at = datetime.now(UTC).isoformat()
    layers, notes = choose_layers(spec.layer, spec.rmws)
    progress.expect(len(layers) * len(spec.chosen_rungs) * spec.rounds * spec.starts)
    climbs = []
    for number, layer in enumerate(layers):
        ladder = Ladder(spec=spec, layer=layer, first_block=number * spec.starts, progress=progress)
        climbs.append(climb_of(spec, layer, list(ladder.measure())))
    return compose(spec, climbs, notes=notes, started_at=started_at)


def climb_of(spec: CpuCostSpec, layer: Layer, measured: Sequence[RungRound]) -> Climb:
    """Groups a layer's measurements by rung."""
    rounds: dict[Rung, list[Round]] = {rung: [] for rung in spec.chosen_rungs}
    for each in measured:
        rounds[each.rung].append(to_round(each, spec))
    return Climb(layer, rounds)


def compose(spec: CpuCostSpec, climbs: Sequence[Climb], *, notes: Sequence[str], started_at: str) -> Study:
    """Builds the study of all layers."""
    layers = [climb.layer for climb in climbs]
    figure = figure_of(climbs)
    no_cycles = why_not_counted(Event.CPU_CYCLES, os.getpid())
    return Study(
        instrument="cpu-cost",
        name=_NAME,
        layer=layer_name(layers),
        middleware=middleware_name(layers),
        started_at=started_at,
        settings=_settings(spec),
        quantities=tuple(each for each in QUANTITIES if not (no_cycles and each is CYCLES)),
        rounds=tuple(each for climb in climbs for rounds in climb.rounds.values() for each in rounds),
        tables=tuple(tables_of(climbs)),
        figures=() if figure is None else (figure,),
        notes=(*notes, *_notes(climbs, no_cycles)),
        versions=versions_of(layers),
    )


def _settings(spec: CpuCostSpec) -> dict[str, Setting]:
    return {
        "topics": spec.topics,
        "subscribers": spec.subscribers,
        "nodes": spec.nodes,
        "rate_hz": spec.rate_hz,
        "size_bytes": spec.size_bytes,
        "seconds": spec.seconds,
        "rounds": spec.rounds,
        "starts": spec.starts,
    }


def _notes(climbs: Sequence[Climb], no_cycles: str) -> Iterator[str]:
    if no_cycles:
        yield f"cycles were not counted: {no_cycles}"
    if no_migrations := why_not_counted(Event.CPU_MIGRATIONS, os.getpid()):
        yield f"migrations were not counted: {no_migrations}"
    if any(Rung.NO_PUBLISHING in climb.rounds for climb in climbs):
        yield "no publishing: its cost is divided by the messages that the other rungs publish in the same time"
    if any(climb.layer.kind is Kind.ROS2 for climb in climbs):
        yield "rclcpp's DDS only: the RMW's writers, readers and wait set, without rcl and rclcpp"
    if any(climb.layer.kind is Kind.EMBEDDED for climb in climbs):
        yield "embedded: nodes are Python over Cyclone DDS; compare them with themselves"
    yield "the seed's nodes (ROS 2 Dashing) had a DDS participant each: its 10.6 stands beside many participants"


INSTRUMENT: Final = Instrument(
    name=_NAME, spec=CpuCostSpec, quantities=QUANTITIES, available=available, measure=measure
)
