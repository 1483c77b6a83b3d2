"""``ldos calibrate | selftest | sweep | planning``: starts of a stack, and what they say of host, gate and scenario."""

from __future__ import annotations

import dataclasses
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import typer

from pytest_ldos.base import exit_codes
from pytest_ldos.base.errors import ConfigurationError, RecordUnreadable, require
from pytest_ldos.base.files import write_atomically
from pytest_ldos.base.text import describe_duration
from pytest_ldos.campaign.calibrate import CalibrationResult, Proof
from pytest_ldos.campaign.calibrate import calibrate as learn_and_prove
from pytest_ldos.campaign.cells import Axis, Grid, known_addresses, show_value
from pytest_ldos.campaign.detection import DRAWS, is_trustworthy
from pytest_ldos.campaign.estimate import Amount
from pytest_ldos.campaign.selftest import plan_self_test, run_self_test
from pytest_ldos.campaign.starts import (
    RunStore,
    SequencePlan,
    Sequencer,
    key_of,
    measure_start,
    motions_of,
    version_here,
)
from pytest_ldos.campaign.sweep import (
    TRUSTED,
    CellResult,
    CellState,
    Definition,
    Sweeper,
    SweepFolder,
    SweepPlan,
    can_be_measured,
    name_for,
    open_sweep,
)
from pytest_ldos.cli.measuring import (
    MeasuringProgress,
    MetricsOption,
    Request,
    TimeLimitOption,
    measuring,
    refuse_unable,
)
from pytest_ldos.cli.say import emit, emit_fitted, parse_duration_s, parse_share, say, stores_here, write_text
from pytest_ldos.host.checkout import describe_commit
from pytest_ldos.judge.baseline.key import contained
from pytest_ldos.judge.baseline.store import UnreadableCalibration, find_calibration, save_calibration
from pytest_ldos.judge.gate.case import Policy
from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.judge.judging import judge_only, with_calibration
from pytest_ldos.measure.metrics.catalogue import built_in_of
from pytest_ldos.measure.trial.record import TrialSet
from pytest_ldos.record.choose import recording_available
from pytest_ldos.robot.stack.choose import resolve_kind
from pytest_ldos.robot.stack.problems import ALL, read_problems
from pytest_ldos.scenario.model import ScenarioSpec
from pytest_ldos.scenario.settings import OWN_NAME
from pytest_ldos.scenario.words import StimulusKind
from pytest_ldos.show.export.other_tools import render_ompl_logs
from pytest_ldos.show.report import calibration
from pytest_ldos.show.report import sweep as sweep_report
from pytest_ldos.show.report.compose import compose_section, describe_uncalibrated, report_calibration
from pytest_ldos.show.report.reasons import describe_reason
from pytest_ldos.show.report.terminal import render_problems
from pytest_ldos.show.report.words import describe_calibration


class Format(StrEnum):
    TEXT = "text"
    JSON = "json"


FormatOption = Annotated[Format, typer.Option("--format", help="Format of the result.")]


def calibrate(  # noqa: PLR0913 - one a command-line option
    *,
    scenario: Annotated[
        list[str] | None, typer.Option(help="Scenario to measure; can be given several times. [default: baseline]")
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="Name of the scenario's baseline, if a test's mark sets one.")
    ] = None,
    blocks: Annotated[int, typer.Option(min=2, help="Stack starts of each run.")] = 8,
    trials: Annotated[int, typer.Option(min=2, help="Measured trials of each start.")] = 8,
    runs: Annotated[int, typer.Option(min=1, help="Runs, one after another.")] = 1,
    pause: Annotated[str, typer.Option(help="Time between runs: 90s, 10min, 1h.")] = "0s",
    add: Annotated[
        bool,
        typer.Option(
            "--add/--afresh", help="Include runs of earlier calibrations, which add the variation between days."
        ),
    ] = True,
    effect: Annotated[str, typer.Option(help="Print the number of trials required to detect this change.")] = "15%",
    time_limit: TimeLimitOption = None,
    draws: Annotated[int, typer.Option(min=1, max=10_000, help="Pairs judged for each number of trials.")] = 200,
    to_repository: Annotated[
        bool, typer.Option("--to-repository", help="Store it with the repository's baselines instead of the machine's.")
    ] = False,
    metrics: MetricsOption = None,
    output_format: FormatOption = Format.TEXT,
) -> None:
    """Measure this machine's noise, and the gate's MDE.

    Starts the stack several times, with several trials each. Resamples pairs of equal versions from them, interleaved
    or one after the other, and lets the gate judge them, to estimate its false alarms and its MDE by number of trials.
    The noise is stored next to the baseline and used from then on. Results are saved: the same command resumes an
    interrupted calibration, and a later one adds its runs.

    Exit code: 0 calibrated, 11 it could not be measured, 130 interrupted.
    """
    asked = Request.of(scenario or (), metrics)
    require(name is None or len(asked.names) == 1, f"--name {name} is for one scenario", remedy="give --scenario once")
    own = {} if name is None else {OWN_NAME: name}
    plan = partial(
        SequencePlan,
        starts=blocks,
        runs=runs,
        pause_s=parse_duration_s(pause, what="--pause"),
        time_limit_s=None if time_limit is None else parse_duration_s(time_limit, what="--time-limit"),
        keep_earlier=add,
    )
    proof = Proof(
        effect=parse_share(effect, what="--effect"),
        policy=asked.policy(asked.catalogue),
        draws=draws,
        planted_draws=max(1, round(0.3 * draws)),
        metrics=len(asked.catalogue),
    )
    scenarios = [asked.sources.scenario(each, own) for each in asked.names]
    specs = [dataclasses.replace(each, trials=trials, max_trials=0) for each in scenarios]
    results = []
    with measuring(kept="complete starts are saved: the same command resumes"):
        for spec in specs:
            refuse_unable(spec)
            result = _calibrate(asked, plan(spec=spec), proof)
            file = str(save_calibration(stores_here(), result.calibration, to_repository=to_repository))
            results.append((result, file))
            if output_format is Format.TEXT:
                emit_fitted(calibration.render_calibration, result, file=file)
    if output_format is Format.JSON:
        emit(calibration.render_calibration_json(results))


def _calibrate(asked: Request, plan: SequencePlan, proof: Proof) -> CalibrationResult:
    spec, starts = plan.spec, plan.runs * plan.starts
    progress = MeasuringProgress(starts * motions_of(spec), name=spec.name)
    site = asked.site(progress)
    sequencer = Sequencer(
        plan=plan,
        store=RunStore(key_of(spec).folder(asked.output / "calibration")),
        measure=lambda block: measure_start(spec, site, block=block),
        observer=progress,
        commit=describe_commit(Path()),
    )
    amount = Amount(starts, starts * (motions_of(spec) - spec.trials), starts * spec.trials)
    progress.note(asked.describe_cost(spec, amount, amount))  # without pauses between runs
    with progress.shown():
        measured = sequencer.runs()
    proving = MeasuringProgress(proof.decisions, name=f"{spec.name}: the gate judges equal versions")
    with proving.shown():
        return learn_and_prove(measured, dataclasses.replace(proof, on_decision=partial(proving.step, 1)))


_TRIALS: Final = 8
_QUICK_TRIALS: Final = 5


def selftest(
    *,
    scenario: Annotated[str | None, typer.Option(help="Scenario to plant them in. [default: baseline]")] = None,
    faults: Annotated[
        str, typer.Option(help="Faults to plant, with commas between. [default: all that the stack allows]")
    ] = "",
    sizes: Annotated[
        str,
        typer.Option(help="Sizes, with commas between: 15%, 0.3, or milliseconds. [default: three of each]"),
    ] = "",
    trials: Annotated[
        int | None, typer.Option(min=2, help=f"Trials of each size. [default: {_TRIALS}; {_QUICK_TRIALS} with --quick]")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="One size of faults of known effect, fewer trials.")] = False,
    draws: Annotated[int, typer.Option(min=1, max=10_000, help="Bootstrap resamples of each size.")] = DRAWS,
    metrics: MetricsOption = None,
    output_format: FormatOption = Format.TEXT,
) -> None:
    """Plant known faults, and count those that the gate finds.

    An equal version is judged as well. The calibration (ldos calibrate) sets the expectation: a fault of known effect
    must be found if its effect is above the MDE.

    Exit code: 0 all expectations were met, 10 an expected fault was missed or an equal version called regressed, 11
    something could not be measured, 130 interrupted.
    """
    asked = Request.of([scenario], metrics)
    spec = asked.spec(trials=trials or (_QUICK_TRIALS if quick else _TRIALS))
    shares = [0.0 if part in {"0", "0%"} else parse_share(part, what="--sizes") for part in _listed(sizes)]
    plan = plan_self_test(spec, resolve_kind(spec.stack), faults=_listed(faults), sizes=shares, quick=quick)
    notes: list[str] = []
    progress = MeasuringProgress(plan.starts * motions_of(spec), name="self-test")
    site = asked.site(progress)

    def measure(spec: ScenarioSpec, block: int, what: str) -> TrialSet:
        progress.doing(f"start {block + 1} of {plan.starts}, {what}")
        return measure_start(spec, site, block=block)

    with measuring(kept="a self-test saves nothing: start it again"):
        refuse_unable(spec)
        with progress.shown():
            result = run_self_test(plan, measure, partial(_policy, asked, notes), describe=describe_reason, draws=draws)
    result = dataclasses.replace(result, notes=(*result.notes, *notes))
    if output_format is Format.JSON:
        emit(calibration.render_self_test_json(result))
    else:
        emit_fitted(calibration.render_self_test, result)
    if not is_trustworthy(result.detections):
        raise typer.Exit(exit_codes.REGRESSED)
    raise typer.Exit(exit_codes.INVALID if any(each.problem for each in result.detections) else 0)


def _policy(asked: Request, notes: list[str], base: TrialSet) -> Policy:
    """The gate's policy, with this host's noise if it is calibrated; notes which."""
    policy = asked.policy(metric.name for metric in base.metrics)
    found = find_calibration(stores_here(), base)
    if isinstance(found, UnreadableCalibration):
        raise RecordUnreadable(found.reason)
    known = [*describe_calibration(report_calibration(found)), *describe_uncalibrated(found)]
    notes += known or ("not calibrated (ldos calibrate): the gate's own estimates are the expectation",)
    return with_calibration(policy, found)


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def parse_axis(given: str) -> Axis:
    """``dds_flood.rate=500,1000``; values that contain commas are separated by ``;``."""
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
    output_format: FormatOption = Format.TEXT,
    addresses: Annotated[bool, typer.Option("--addresses", help="List settings that can be swept, and end.")] = False,
) -> None:
    """Measure a scenario at each combination of some settings.

    Each combination, a cell, is a separate stack start with the cell's loads; the order is shuffled so that drift of
    the machine does not look like an effect. Results are saved after each cell: the same command resumes an interrupted
    sweep. Cells that cannot be measured are shown as such.

    Exit code: 0 all cells are valid (or skipped, if the scenario allows it), 11 some are not, 130 interrupted.
    """
    if addresses:
        shown = known_addresses()
        width = max(map(len, shown))
        for address, default in shown.items():
            say(f"{address:{width}}  {_default(default)}".rstrip())
        return
    asked = Request.of([scenario], metrics)
    sources = asked.sources
    base = asked.spec() if trials is None else asked.spec(trials=trials)
    grid = Grid(base=base, axes=tuple(parse_axis(each) for each in over or ()))
    plan = SweepPlan(grid=grid, starts=starts, retry=retry)
    _ = grid.specs  # refuses values out of range before starting
    plan.refuse_endless(longest_s=3600 * max_hours)
    if output is not None:
        sweep_report.require_suffix(output)
    own = {"metrics": ", ".join(asked.catalogue)} if metrics or sources.toml.metrics else {}
    version = {**version_here(sources.root, base.stack, baselines=sources.folder("baselines")), **own}
    usual = name_for(f"{base.name}@{','.join(axis.address for axis in grid.axes)}")
    definition = Definition(name=usual if name is None else name, grid=grid, version=version)
    folder, was_there = open_sweep(asked.output, definition, fresh=fresh)
    progress = _Progress(plan, folder, was_there=was_there)
    site = asked.site(progress)
    sweeper = Sweeper(
        plan=plan,
        folder=folder,
        measure=lambda spec, start: measure_start(spec, site, block=start),
        available=can_be_measured,
        observer=progress,
        describe=describe_reason,
        done=progress.cell_done,
    )
    if progress.left:
        with measuring(kept="measured cells are saved: the same command resumes the sweep"):
            recording_available().demand()
            with progress.shown():
                results = sweeper.run()
    else:  # the machine is not needed
        results = sweeper.run()
    notes = () if starts > 1 else ("--starts 3 would measure the variation between stack starts",)
    report = sweep_report.compose_sweep(definition.name, grid.outline, results, notes)
    if output_format is Format.JSON:
        emit(sweep_report.render_json(report))
    else:
        emit_fitted(sweep_report.render_text, report)
        say(f"results: {folder.path}")
    if output is not None:
        write_text(sweep_report.render_for(report, output), output, err=output_format is Format.JSON)
    states = {result.state for result in results}
    is_whole = bool(states & TRUSTED) and states <= {*TRUSTED, CellState.SKIPPED}  # a sweep without results fails
    raise typer.Exit(0 if is_whole else exit_codes.INVALID)


def _default(value: object) -> str:
    if value is None or value == "" or isinstance(value, dict):
        return ""
    if isinstance(value, tuple):
        return "+".join(str(each) for each in value)
    return show_value(value) if isinstance(value, bool | float) else str(value)


class _Progress(MeasuringProgress):
    """A bar for a sweep, of which these cells and starts are `left`."""

    def __init__(self, plan: SweepPlan, folder: SweepFolder, *, was_there: bool) -> None:
        self._plan = plan
        self.left = plan.left(folder.records(skip_damaged=True))
        super().__init__(sum(motions_of(plan.grid.specs[name]) for name, _ in self.left), name="sweep")
        size = plan.grid.size * plan.starts
        done = size - len(self.left)
        if not self.left:
            self.note(f"{folder.path} was already complete: these are its results; --fresh measures again")
        elif done and was_there:
            self.note(f"goes on in {folder.path}: {done} of {size} starts are complete")
        else:
            self.note(f"{size} stack starts, about {describe_duration(plan.estimate_s)}: {folder.path}")

    def cell_done(self, result: CellResult) -> None:
        report = sweep_report.compose_sweep("", self._plan.grid.outline, [result])
        self.note(sweep_report.describe_cell(report.cells[0], sweep_report.shown_metrics(report)))


def planning(
    suite: Annotated[
        str, typer.Argument(help="File or folder of planning problems, or a set of those in the settings.")
    ] = ALL,
    *,
    scenario: Annotated[str | None, typer.Option(help="Scenario with its loads. [default: baseline]")] = None,
    plans: Annotated[int, typer.Option(min=1, help="Plans of each problem.")] = 10,
    planner: Annotated[str | None, typer.Option(help="Planner. [default: that of the settings]")] = None,
    ompl_log: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write OMPL's benchmark logs here, one for each problem.")
    ] = None,
) -> None:
    """Plan a suite of problems, and show times and paths.

    Plans each problem several times, and compares nothing. OMPL's ompl_benchmark_statistics.py makes a database for
    Planner Arena of the logs.

    Exit code: 0 all was measured, 11 it could not be, 130 interrupted.
    """
    asked = Request.of([scenario], None)
    stack = asked.spec().stack
    plan = stack.stimuli.plan
    is_set = not Path(suite).exists()
    plan = dataclasses.replace(plan, problems=plan.problems if is_set else suite, planner=planner or plan.planner)
    stimuli = dataclasses.replace(stack.stimuli, plan=plan)
    stack = dataclasses.replace(stack, stimulus=StimulusKind.PLAN, stimuli=stimuli)
    goals = suite if is_set else ALL
    spec = asked.spec(stack=stack, goals=goals, trials=plans * len(read_problems(plan).cases(goals)))
    with measuring(kept="nothing is kept"):
        refuse_unable(spec)
        progress = MeasuringProgress(motions_of(spec), name="planning")
        site = dataclasses.replace(asked.site(progress), catalogue=built_in_of(stack))
        with progress.shown():
            trials = measure_start(spec, site, block=0)
    judged = judge_only(trials, asked.policy(()))
    emit_fitted(render_problems, compose_section(judged))
    if ompl_log is not None:
        for name, text in render_ompl_logs(trials).items():
            write_atomically(ompl_log / f"{contained(name)}.log", text, otherwise="name another folder with --ompl-log")
        say(f"logs: {ompl_log}")
    raise typer.Exit(exit_codes.INVALID if judged.result.verdict is Verdict.INVALID else 0)
