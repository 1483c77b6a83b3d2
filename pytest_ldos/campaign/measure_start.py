"""Measures one start of a sequence: starts a stack, makes some trials and stops it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pytest_ldos.base.paths import PathSpec
from pytest_ldos.campaign.blocks import Bench, BlockObserver, run_block
from pytest_ldos.campaign.order import Block, Role
from pytest_ldos.campaign.versions.version import head_version
from pytest_ldos.measure.load.choose import RepeatedLoad
from pytest_ldos.measure.metrics.catalogue import METRICS, Catalogue
from pytest_ldos.measure.trial.artifacts import ScenarioFolder, drop_folder, new_run_folder, new_scenario_folder
from pytest_ldos.measure.trial.record import TrialSet
from pytest_ldos.scenario.model import ScenarioSpec


@dataclass(frozen=True, kw_only=True)
class Site:
    """Settings shared by all starts.

    Attributes:
        catalogue: metrics to measure.
        output: parent of a folder per start; the folder of a complete start is deleted.
    """

    output: Path
    paths: Sequence[PathSpec]
    observer: BlockObserver
    catalogue: Catalogue = field(default_factory=lambda: METRICS)


def motions_of(spec: ScenarioSpec) -> int:
    """Number of trials and warm-up trials of one start."""
    return spec.trials + spec.warmup


def measure_start(spec: ScenarioSpec, site: Site, *, block: int) -> TrialSet:
    """Measures one stack start under the scenario's loads, like a block of an interleaved session.

    Raises:
        Unavailable, RecordingFailed, BringUpFailed, LoadFailed: see `run_block`; logs are kept.
    """
    folder = new_scenario_folder(new_run_folder(site.output), spec.name)
    bench = bench_of(spec, site, folder)
    whole = Block(number=block, role=Role.HEAD, trials=range(spec.trials))
    trials = run_block(bench, whole, head_version(Path.cwd()), None, lambda record: None)
    if not trials.incomplete:
        drop_folder(folder)
    return trials


def bench_of(spec: ScenarioSpec, site: Site, folder: ScenarioFolder) -> Bench:
    """The bench for starts under the scenario's loads."""
    return Bench(
        spec=spec,
        folder=folder,
        goals=spec.goals,
        loads=tuple(map(RepeatedLoad, spec.loads)),
        paths=site.paths,
        catalogue=site.catalogue,
        observer=site.observer,
    )
