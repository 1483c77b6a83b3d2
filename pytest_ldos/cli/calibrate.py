"""``ldos calibrate | selftest``: measures this host's noise, and tests the gate with it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import typer

from pytest_ldos.base import exit_codes
from pytest_ldos.base.errors import RecordUnreadable, require
from pytest_ldos.campaign.calibrate import CalibrationResult, Proof
from pytest_ldos.campaign.calibrate import calibrate as learn_and_prove
from pytest_ldos.campaign.cost import Amount
from pytest_ldos.campaign.detection import DRAWS, Detection, is_trustworthy
from pytest_ldos.campaign.estimate import Expected, describe_expected, duration_files, measured_cost
from pytest_ldos.campaign.measure_start import Site, measure_start, motions_of
from pytest_ldos.campaign.selftest import plan_self_test, run_self_test
from pytest_ldos.campaign.sequence import Evidence, SequencePlan, Sequencer
from pytest_ldos.cli.measuring import (
    MetricsOption,
    chosen_metrics,
    chosen_scenarios,
    key_of,
    measuring,
    output_here,
    policy_here,
    refuse_unable,
    refuse_watching,
)
from pytest_ldos.cli.paths import parse_duration_s, parse_share, sources_here, stores_here, terminal
from pytest_ldos.cli.progress import MeasuringProgress
from pytest_ldos.cli.say import emit
from pytest_ldos.host.checkout import describe_commit
from pytest_ldos.judge.baseline.lookup import UnreadableCalibration, find_calibration, save_calibration
from pytest_ldos.judge.gate.policy import Policy
from pytest_ldos.judge.judging import with_calibration
from pytest_ldos.measure.metrics.catalogue import Catalogue
from pytest_ldos.measure.trial.record import TrialSet
from pytest_ldos.robot.stack.choose import resolve_kind
from pytest_ldos.scenario.model import ScenarioSpec
from pytest_ldos.scenario.settings import OWN_NAME
from pytest_ldos.show.report.calibration import (
    render_calibration,
    render_calibration_json,
    render_self_test,
    render_self_test_json,
)
from pytest_ldos.show.report.compose import describe_uncalibrated, report_calibration
from pytest_ldos.show.report.reasons import describe_reason
from pytest_ldos.show.report.words import describe_calibration

_PLANTED: Final = 0.3
"""Number of pairs with a planted change for each pair without one."""


class Format(StrEnum):
    """Format of a result."""

    TEXT = "text"
    JSON = "json"


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Asked:
    """Command-line settings for all scenarios."""

    blocks: int
    runs: int
    pause_s: float
    time_limit_s: float | None
    add: bool
    to_repository: bool
    catalogue: Catalogue
    proof: Proof


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
    time_limit: Annotated[
        str | None, typer.Option(help="Time limit; starts that would exceed it are not begun: 90s, 10min, 1h.")
    ] = None,
    draws: Annotated[int, typer.Option(min=1, max=10_000, help="Pairs judged for each number of trials.")] = 200,
    to_repository: Annotated[
        bool, typer.Option("--to-repository", help="Store it with the repository's baselines instead of the machine's.")
    ] = False,
    metrics: MetricsOption = None,
    output_format: Annotated[Format, typer.Option("--format", help="Format of the result.")] = Format.TEXT,
) -> None:
    """Measure this machine's noise, and the gate's MDE.

    Starts the stack several times, with several trials each. Resamples pairs of equal versions from them, interleaved
    or one after the other, and lets the gate judge them, to estimate its false alarms and its MDE by number of trials.
    The noise is stored next to the baseline and used from then on. Results are saved: the same command resumes an
    interrupted calibration, and a later one adds its runs.

    Exit code: 0 calibrated, 11 it could not be measured, 130 interrupted.
    """
    sources = sources_here()
    refuse_watching(sources)
    names = chosen_scenarios(scenario, sources)
    require(name is None or len(names) == 1, f"--name {name} is for one scenario", remedy="give --scenario once")
    own = {} if name is None else {OWN_NAME: name}
    catalogue = chosen_metrics(metrics, sources)
    asked = _Asked(
        blocks=blocks,
        runs=runs,
        pause_s=parse_duration_s(pause, what="--pause"),
        time_limit_s=None if time_limit is None else parse_duration_s(time_limit, what="--time-limit"),
        add=add,
        to_repository=to_repository,
        catalogue=catalogue,
        proof=Proof(
            effect=parse_share(effect, what="--effect"),
            policy=policy_here(scenarios=len(names), own=catalogue),
            draws=draws,
            planted_draws=max(1, round(_PLANTED * draws)),
            metrics=len(catalogue),
        ),
    )
    specs = [dataclasses.replace(sources.scenario(each, own), trials=trials, max_trials=0) for each in names]
    results = []
    with measuring(kept="complete starts are saved: the same command resumes"):
        for spec in specs:
            refuse_unable(spec)
            results.append(_calibrate(spec, asked))
            if output_format is Format.TEXT:
                _show(*results[-1])
    if output_format is Format.JSON:
        emit(render_calibration_json(results))


def _calibrate(spec: ScenarioSpec, asked: _Asked) -> tuple[CalibrationResult, str]:
    """Measures a scenario, estimates its noise, tests the gate, and stores the result; returns it with its file."""
    plan = SequencePlan(
        spec=spec,
        starts=asked.blocks,
        runs=asked.runs,
        pause_s=asked.pause_s,
        time_limit_s=asked.time_limit_s,
        keep_earlier=asked.add,
    )
    progress = MeasuringProgress(plan.runs * plan.starts * motions_of(spec), name=spec.name)
    site = Site(
        output=output_here(),
        paths=sources_here().toml.paths,
        catalogue=asked.catalogue,
        observer=progress,
    )
    sequencer = Sequencer(
        plan=plan,
        evidence=Evidence.of(output_here(), key_of(spec)),
        measure=lambda block: measure_start(spec, site, block=block),
        observer=progress,
        commit=describe_commit(Path()),
    )
    progress.note(_describe_price(plan))
    with progress.shown():
        measured = sequencer.runs()
    proving = MeasuringProgress(asked.proof.decisions, name=f"{spec.name}: the gate judges equal versions")
    with proving.shown():
        result = learn_and_prove(measured, dataclasses.replace(asked.proof, on_decision=partial(proving.step, 1)))
    file = save_calibration(stores_here(), result.calibration, to_repository=asked.to_repository)
    return result, str(file)


def _describe_price(plan: SequencePlan) -> str:
    """Duration of all starts of a plan, without pauses between its runs."""
    spec, starts = plan.spec, plan.runs * plan.starts
    amount = Amount(starts, starts * (motions_of(spec) - spec.trials), starts * spec.trials)
    cost = measured_cost(duration_files(output_here()), stack=resolve_kind(spec.stack).value, scenario=spec.name)
    return describe_expected([Expected(amount, amount, cost)])


def _show(result: CalibrationResult, file: str) -> None:
    width, color = terminal()
    emit(render_calibration(result, file=file, width=width, color=color))


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
    output_format: Annotated[Format, typer.Option("--format", help="Format of the result.")] = Format.TEXT,
) -> None:
    """Plant known faults, and count those that the gate finds.

    An equal version is judged as well. The calibration (ldos calibrate) sets the expectation: a fault of known effect
    must be found if its effect is above the MDE.

    Exit code: 0 all expectations were met, 10 an expected fault was missed or an equal version called regressed, 11
    something could not be measured, 130 interrupted.
    """
    sources = sources_here()
    refuse_watching(sources)
    (name,) = chosen_scenarios([scenario] if scenario else None, sources)
    count = trials or (_QUICK_TRIALS if quick else _TRIALS)
    spec = dataclasses.replace(sources.scenario(name, {}), trials=count, max_trials=0)
    catalogue = chosen_metrics(metrics, sources)
    plan = plan_self_test(
        spec, resolve_kind(spec.stack), faults=_listed(faults), sizes=_parse_sizes(sizes), quick=quick
    )
    notes: list[str] = []
    progress = MeasuringProgress(plan.starts * motions_of(spec), name="self-test")
    site = Site(output=output_here(), paths=sources.toml.paths, observer=progress, catalogue=catalogue)

    def measure(spec: ScenarioSpec, block: int, what: str) -> TrialSet:
        progress.doing(f"start {block + 1} of {plan.starts}, {what}")
        return measure_start(spec, site, block=block)

    with measuring(kept="a self-test saves nothing: start it again"):
        refuse_unable(spec)
        with progress.shown():
            result = run_self_test(
                plan, measure, lambda base: _policy(base, notes), describe=describe_reason, draws=draws
            )
    result = dataclasses.replace(result, notes=(*result.notes, *notes))
    width, color = terminal()
    if output_format is Format.JSON:
        emit(render_self_test_json(result))
    else:
        emit(render_self_test(result, width=width, color=color))
    raise typer.Exit(_exit_code(result.detections))


def _exit_code(detections: Sequence[Detection]) -> int:
    if not is_trustworthy(detections):
        return exit_codes.REGRESSED
    return exit_codes.INVALID if any(each.problem for each in detections) else 0


def _policy(base: TrialSet, notes: list[str]) -> Policy:
    """The gate's policy, with this host's noise if it is calibrated; prints which.

    Raises:
        RecordUnreadable: the calibration cannot be read.
    """
    policy = policy_here(scenarios=1, own=(metric.name for metric in base.metrics))
    found = find_calibration(stores_here(), base)
    if isinstance(found, UnreadableCalibration):
        raise RecordUnreadable(found.reason)
    known = [*describe_calibration(report_calibration(found)), *describe_uncalibrated(found)]
    notes += known or ("not calibrated (ldos calibrate): the gate's own estimates are the expectation",)
    return with_calibration(policy, found)


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _parse_sizes(text: str) -> list[float]:
    """Sizes of faults, which always include 0.

    Raises:
        ConfigurationError: one is not a number.
    """
    return [0.0 if part in {"0", "0%"} else parse_share(part, what="--sizes") for part in _listed(text)]
