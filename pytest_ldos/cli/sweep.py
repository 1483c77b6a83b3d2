"""``ldos sweep``: measures a scenario at every combination of some settings."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Final

import typer

from pytest_ldos.base import exit_codes
from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.base.text import describe_duration
from pytest_ldos.campaign.cells import Axis, Cell, Grid, show_value
from pytest_ldos.campaign.measure_start import Site, measure_start, motions_of
from pytest_ldos.campaign.measured_version import version_here
from pytest_ldos.campaign.sweep import (
    Definition,
    Sweeper,
    SweepFolder,
    SweepPlan,
    can_be_measured,
    name_for,
    open_sweep,
)
from pytest_ldos.campaign.sweep_records import TRUSTED, CellResult, CellState
from pytest_ldos.cli.calibrate import Format
from pytest_ldos.cli.measuring import (
    MetricsOption,
    chosen_metrics,
    chosen_scenarios,
    measuring,
    output_here,
    refuse_watching,
)
from pytest_ldos.cli.paths import sources_here, terminal
from pytest_ldos.cli.progress import MeasuringProgress
from pytest_ldos.cli.say import emit, say, write_text
from pytest_ldos.record.choose import recording_available
from pytest_ldos.scenario.addresses import known_addresses
from pytest_ldos.show.report.reasons import describe_reason
from pytest_ldos.show.report.sweep.document import SweepReport, compose_sweep, render_json
from pytest_ldos.show.report.sweep.page import describe_cell, render_for, render_text, require_suffix, shown_metrics

_FINISHED: Final = "was already complete: these are its results; --fresh measures again"


def parse_axis(given: str) -> Axis:
    """``dds_flood.rate=500,1000``; values that contain commas are separated by ``;``.

    Raises:
        ConfigurationError: it does not have this form.
    """
    address, equals, values = given.partition("=")
    remedy = "write it as ADDRESS=VALUE,VALUE, as in dds_flood.rate=500,1000"
    if not equals or not address.strip():
        raise ConfigurationError(f"--over is {given!r}", remedy=remedy)
    parts = [part.strip() for part in values.split(";" if ";" in values else ",")]
    if not all(parts):
        missing = "no values" if not values.strip() else "a value that is empty"
        raise ConfigurationError(f"--over {given} has {missing}", remedy=remedy)
    return Axis.of(address.strip(), parts)


def sweep(  # noqa: PLR0913 - one a command-line option
    *,
    over: Annotated[
        list[str] | None,
        typer.Option(help="Setting and values: ADDRESS=VALUE,VALUE,…; every combination of several is measured."),
    ] = None,
    scenario: Annotated[str | None, typer.Option(help="Scenario that is varied. [default: baseline]")] = None,
    trials: Annotated[int | None, typer.Option(min=1, help="Trials of each start. [default: the scenario's]")] = None,
    starts: Annotated[int, typer.Option(min=1, help="Stack starts of each cell, in rounds over all cells.")] = 1,
    name: Annotated[
        str | None, typer.Option(help="Name of the sweep's folder in .ldos/sweeps. [default: scenario and addresses]")
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Measure everything again.")] = False,
    retry: Annotated[
        bool, typer.Option("--retry", help="Measure cells again that were invalid or could not be measured.")
    ] = False,
    max_hours: Annotated[float, typer.Option(min=0, help="Refuse a sweep that would take longer.")] = 24.0,
    output: Annotated[Path | None, typer.Option(help="File for the result: .html, .md, .json or .csv.")] = None,
    metrics: MetricsOption = None,
    output_format: Annotated[Format, typer.Option("--format", help="Format of the result.")] = Format.TEXT,
    addresses: Annotated[bool, typer.Option("--addresses", help="List settings that can be swept, and end.")] = False,
) -> None:
    """Measure a scenario at each combination of some settings.

    Each combination, a cell, is a separate stack start with the cell's loads; the order is shuffled so that drift of
    the machine does not look like an effect. Results are saved after each cell: the same command resumes an interrupted
    sweep. Cells that cannot be measured are shown as such.

    Exit code: 0 all cells are valid (or skipped, if the scenario allows it), 11 some are not, 130 interrupted.
    """
    if addresses:
        for line in _known():
            say(line)
        return
    asked = _ask(over or [], scenario, trials=trials, starts=starts, retry=retry)
    asked.refuse_endless(longest_s=3600 * max_hours)
    if output is not None:
        require_suffix(output)
    sources = sources_here()
    catalogue = chosen_metrics(metrics, sources)
    own = {"metrics": ", ".join(catalogue)} if metrics or sources.toml.metrics else {}
    refuse_watching(sources)
    base = asked.grid.base
    version = {**version_here(sources.root, base.stack, baselines=sources.folder("baselines")), **own}
    definition = Definition(name=name_or_default(name, asked.grid), grid=asked.grid, version=version)
    folder, was_there = open_sweep(output_here(), definition, fresh=fresh)
    progress = _Progress(asked, folder, was_there=was_there)
    site = Site(output=output_here(), paths=sources.toml.paths, catalogue=catalogue, observer=progress.bar)
    sweeper = Sweeper(
        plan=asked,
        folder=folder,
        measure=lambda spec, start: measure_start(spec, site, block=start),
        available=can_be_measured,
        observer=progress,
        describe=describe_reason,
    )
    results = _run(sweeper, progress)
    notes = () if starts > 1 else ("--starts 3 would measure the variation between stack starts",)
    _emit(compose_sweep(definition.name, asked.grid.outline, results, notes), folder, output, output_format)
    raise typer.Exit(_exit_code(results))


def _ask(over: Sequence[str], scenario: str | None, *, trials: int | None, starts: int, retry: bool) -> SweepPlan:
    """The plan requested on the command line.

    Raises:
        ConfigurationError: an unknown scenario, address or value; no axes, or duplicate ones.
    """
    sources = sources_here()
    (chosen,) = chosen_scenarios([scenario] if scenario else None, sources)
    spec = dataclasses.replace(sources.scenario(chosen, {}), max_trials=0)
    if trials is not None:
        spec = dataclasses.replace(spec, trials=trials)
    grid = Grid(base=spec, axes=tuple(parse_axis(each) for each in over))
    plan = SweepPlan(grid=grid, starts=starts, retry=retry)
    _ = grid.specs  # refuses values out of range before starting
    return plan


def _run(sweeper: Sweeper, progress: _Progress) -> list[CellResult]:
    """All results; the machine is held only to measure the missing ones."""
    if not progress.left:
        return sweeper.run()
    with measuring(kept="measured cells are saved: the same command resumes the sweep"):
        recording_available().demand()
        with progress.bar.shown():
            return sweeper.run()


def name_or_default(name: str | None, grid: Grid) -> str:
    return name_for(f"{grid.base.name}@{','.join(axis.address for axis in grid.axes)}") if name is None else name


def _known() -> list[str]:
    """All addresses, with their defaults."""
    shown = [(address, default) for address, default in known_addresses().items()]
    width = max(len(address) for address, _ in shown)
    return [f"{address:{width}}  {_default(default)}".rstrip() for address, default in shown]


def _default(value: object) -> str:
    if value is None or value == "" or isinstance(value, dict):
        return ""
    if isinstance(value, tuple):
        return "+".join(str(each) for each in value)
    return show_value(value) if isinstance(value, bool | float) else str(value)


@dataclass
class _Progress:
    """See `SweepObserver`; also reports with what the sweep resumes.

    Attributes:
        left: cells and starts to measure.
    """

    plan: SweepPlan
    folder: SweepFolder
    was_there: bool
    bar: MeasuringProgress = field(init=False)
    left: list[tuple[str, int]] = field(init=False)
    _due: int = 0

    def __post_init__(self) -> None:
        records = self.folder.readable_records()
        self.left = left = self.plan.left(records)
        self.bar = MeasuringProgress(sum(motions_of(self.plan.grid.specs[name]) for name, _ in left), name="sweep")
        size = self.plan.grid.size * self.plan.starts
        done = size - len(left)
        if not left:
            self.note(f"{self.folder.path} {_FINISHED}")
        elif done and self.was_there:
            self.note(f"goes on in {self.folder.path}: {done} of {size} starts are complete")
        else:
            self.note(f"{size} stack starts, about {describe_duration(self.plan.estimate_s)}: {self.folder.path}")

    def cell(self, cell: Cell, start: int, *, number: int, of: int) -> None:
        again = f", start {start + 1}" if self.plan.starts > 1 else ""
        self._due = self.bar.made + motions_of(self.plan.grid.specs[cell.name])
        self.bar.doing(f"{number} of {of}: {cell.label}{again}")

    def cell_done(self, result: CellResult) -> None:
        self.bar.step(max(0, self._due - self.bar.made))  # starts of the cell that were not made
        report = compose_sweep("", self.plan.grid.outline, [result])
        self.note(describe_cell(report.cells[0], shown_metrics(report)))

    def note(self, text: str) -> None:
        self.bar.note(text)


def _emit(report: SweepReport, folder: SweepFolder, output: Path | None, output_format: Format) -> None:
    """Prints the result, and writes the requested file."""
    width, color = terminal()
    if output_format is Format.JSON:
        emit(render_json(report))
    else:
        emit(render_text(report, width=width, color=color))
        say(f"results: {folder.path}")
    if output is not None:
        write_text(render_for(report, output), output)
        say(f"report: {output}", err=output_format is Format.JSON)


def _exit_code(results: Sequence[CellResult]) -> int:
    """A sweep without results fails."""
    states = {result.state for result in results}
    is_whole = bool(states & TRUSTED) and states <= {*TRUSTED, CellState.SKIPPED}
    return 0 if is_whole else exit_codes.INVALID
