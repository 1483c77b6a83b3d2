"""``ldos selftest``: plants known faults, and tells which of them the gate finds."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Annotated, Final

import typer

from pytest_ldos.base import exit_codes
from pytest_ldos.base.errors import RecordUnreadable
from pytest_ldos.campaign.detection import DRAWS, Detection, is_trustworthy
from pytest_ldos.campaign.measure_start import Site, measure_start, motions_of
from pytest_ldos.campaign.selftest import plan_self_test, run_self_test
from pytest_ldos.cli.calibrate import Format
from pytest_ldos.cli.measuring import (
    chosen_scenarios,
    measuring,
    output_here,
    policy_here,
    refuse_unable,
    refuse_watching,
)
from pytest_ldos.cli.own_metrics import MetricsOption, chosen_metrics
from pytest_ldos.cli.paths import sources_here, stores_here, terminal
from pytest_ldos.cli.progress import MeasuringProgress
from pytest_ldos.cli.quantities import parse_share
from pytest_ldos.cli.say import emit
from pytest_ldos.judge.baseline.calibration_store import UnreadableCalibration, find_calibration
from pytest_ldos.judge.gate.policy import Policy
from pytest_ldos.judge.judging import with_calibration
from pytest_ldos.measure.trial.record import TrialSet
from pytest_ldos.robot.stack.choose import resolve_kind
from pytest_ldos.scenario.model import ScenarioSpec
from pytest_ldos.show.report.compose import describe_uncalibrated, report_calibration
from pytest_ldos.show.report.detection import render_self_test, render_self_test_json
from pytest_ldos.show.report.reasons import describe_reason
from pytest_ldos.show.report.words import describe_calibration

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
    output_format: Annotated[Format, typer.Option("--format", help="Form of the result.")] = Format.TEXT,
) -> None:
    """Plant known faults, and see which of them the gate finds.

    An equal version is judged like the others. What calibration promised (ldos calibrate) is what
    the gate is held to: a fault whose effect is known must be found from the smallest detectable
    change on.

    Exit code: 0 promises were kept, 10 a due fault was missed or an equal version called regressed,
    11 it, or a fault, could not be measured, 130 interrupted.
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

    with measuring(kept="a self-test keeps nothing: start it again"):
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
    """The gate's, with this host's noise where it is known; says which it is.

    Raises:
        RecordUnreadable: nobody can tell what was promised.
    """
    policy = policy_here(scenarios=1, own=(metric.name for metric in base.metrics))
    found = find_calibration(stores_here(), base)
    if isinstance(found, UnreadableCalibration):
        raise RecordUnreadable(found.reason)
    known = [*describe_calibration(report_calibration(found)), *describe_uncalibrated(found)]
    notes += known or ("not calibrated (ldos calibrate): the gate is held to its own estimates",)
    return with_calibration(policy, found)


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _parse_sizes(text: str) -> list[float]:
    """Sizes of faults; 0 is measured in any case.

    Raises:
        ConfigurationError: one is no number.
    """
    return [0.0 if part in {"0", "0%"} else parse_share(part, what="--sizes") for part in _listed(text)]
