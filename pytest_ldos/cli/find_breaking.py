"""``ldos find-breaking``: finds the level of a load at which the arm breaks, and the cause."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated, Final

import typer

from pytest_ldos.base import exit_codes
from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.campaign.bisection import TRIALS_PER_START, Bisection, Finding, SearchPlan
from pytest_ldos.campaign.breaking_result import BreakingEvidence, BreakingPlan, BreakingResult
from pytest_ldos.campaign.criterion import parse_criterion
from pytest_ldos.campaign.find_breaking import BreakingSearch, Harsher, VariedField
from pytest_ldos.campaign.level_scale import LevelScale, Spacing
from pytest_ldos.campaign.measure_start import Site, measure_start, motions_of
from pytest_ldos.campaign.measured_version import version_here
from pytest_ldos.cli.measuring import (
    MetricsOption,
    chosen_metrics,
    chosen_scenarios,
    key_of,
    measuring,
    output_here,
    refuse_unable,
    refuse_watching,
)
from pytest_ldos.cli.paths import parse_confidence, parse_duration_s, parse_share, sources_here, terminal
from pytest_ldos.cli.progress import MeasuringProgress
from pytest_ldos.cli.say import FormatOption, OutputOption, choose_format, emit_text, say
from pytest_ldos.measure.metrics.catalogue import Catalogue
from pytest_ldos.measure.trial.record import TrialSet
from pytest_ldos.scenario.model import ScenarioSpec
from pytest_ldos.scenario.words import SeedMode
from pytest_ldos.show.page.formats import Format
from pytest_ldos.show.report.breaking.page import answer, remarks, render_breaking_as

_UNKNOWN: Final = frozenset({Finding.UNDECIDED, Finding.UNMEASURED})


def find_breaking(  # noqa: PLR0913 - one a command-line option
    address: Annotated[
        str,
        typer.Argument(help="Setting to vary: dds_flood.rate, cpu_load.workers, …; all are in ldos sweep --addresses."),
    ],
    *,
    lo: Annotated[float, typer.Option(help="Lowest value to try.")],
    hi: Annotated[float, typer.Option(help="Highest value to try.")],
    scenario: Annotated[
        str | None, typer.Option(help="Scenario in which to vary it: cpu_load+msg_load, … [default: baseline]")
    ] = None,
    until: Annotated[
        str,
        typer.Option(help="A level is broken when: success<0.5, or T1>3x (median beyond thrice that of the calm end)."),
    ] = "success<0.5",
    confidence: Annotated[str, typer.Option(help="Confidence of the interval: 0.9 or 90%.")] = "0.9",
    precision: Annotated[str, typer.Option(help="Width of the interval; a larger one takes fewer trials.")] = "10%",
    trials_per_start: Annotated[
        int, typer.Option(min=1, max=100, help="Trials of each start of the stack; 1 makes them independent.")
    ] = TRIALS_PER_START,
    max_trials: Annotated[int, typer.Option(min=1, help="Trials of all levels together.")] = 200,
    time_limit: Annotated[
        str | None, typer.Option(help="Time limit; starts that would exceed it are not begun: 90s, 10min, 1h.")
    ] = None,
    scale: Annotated[
        Spacing | None, typer.Option(help="Spacing of levels. [default: by field; linear for percent and CPUs]")
    ] = None,
    harsher: Annotated[
        Harsher | None, typer.Option(help="Harsher direction of values. [default: higher; lower for limits]")
    ] = None,
    metrics: MetricsOption = None,
    output: OutputOption = None,
    output_format: FormatOption = None,
) -> None:
    """Find the level of a load at which the arm breaks.

    The result has an interval, and the stage that breaks first.

    Starts the stack several times at several levels. A level counts as holding or breaking only if its trials are
    significant; one whose load is not reached, or whose stack does not start, counts as neither. Results are saved
    after each start: the same command resumes an interrupted search. Each trial is planned with different random
    numbers, so that the result is not that of a single plan. To evaluate a guard (the load that throttles publishers
    while a path is late), search with it in the scenario and without it.

    Exit code: 0 an answer was found (also: it does not break), 11 it could not be measured or decided, 130 interrupted.
    """
    kind = choose_format(output_format, output)
    sources = sources_here()
    refuse_watching(sources)
    (name,) = chosen_scenarios([scenario] if scenario else None, sources)
    catalogue = chosen_metrics(metrics, sources)
    plain = dataclasses.replace(
        sources.scenario(name, {}), trials=trials_per_start, max_trials=0, seeds=SeedMode.RANDOM
    )
    field = VariedField.find(address, plain)
    levels = field.scale(lo, hi, precision=parse_share(precision, what="--precision"), spacing=scale, harsher=harsher)
    criterion = parse_criterion(until, {metric.name: metric.description for metric in catalogue.values()})
    plan = BreakingPlan(
        address=field.address,
        criterion=criterion,
        search=SearchPlan(
            scale=levels,
            boundary=criterion.boundary,
            confidence=parse_confidence(confidence),
            trials_per_start=trials_per_start,
            max_trials=max_trials,
        ),
        time_limit_s=None if time_limit is None else parse_duration_s(time_limit, what="--time-limit"),
    )
    refuse_few_trials(plan.search)
    with measuring(kept="complete starts are saved: the same command resumes"):
        for level in (levels.calm, levels.harsh):
            refuse_unable(field.at(level))
        result = _search(plan, field, catalogue)
    _show(result, kind, output)
    raise typer.Exit(0 if is_answer(result) else exit_codes.INVALID)


def is_answer(result: BreakingResult) -> bool:
    """True if the search has a result, such as an interval when its time limit ended it."""
    return result.finding is Finding.BREAKS or (result.is_finished and result.finding not in _UNKNOWN)


def refuse_few_trials(plan: SearchPlan) -> None:
    """Refuses a search with too few trials to decide two levels.

    Raises:
        ConfigurationError: too few trials; the message has the required number.
    """
    least = 2 * plan.least_trials
    if plan.max_trials < least:
        raise ConfigurationError(
            f"--max-trials {plan.max_trials} cannot decide even two levels: one takes {plan.least_trials} at least",
            remedy=f"allow {least} or more, better {plan.most_levels * plan.least_trials}; "
            "a lower --confidence and fewer --trials-per-start need fewer",
        )


class _Progress(MeasuringProgress):
    """See `BreakingObserver`."""

    def __init__(self, spec: ScenarioSpec, scale: LevelScale, most_trials: int) -> None:
        super().__init__(most_trials, name=f"{spec.name}: breaking point")
        self._motions_a_trial = motions_of(spec) / spec.trials
        self._scale = scale

    def begin_start(self, level: float, bisection: Bisection) -> None:
        left = bisection.most_left
        self.expect(round(left * self._motions_a_trial))
        known = [f"{each.level:g} {each.standing}" for each in (bisection.holds, bisection.breaks) if each is not None]
        so_far = f"; {', '.join(known)}" if known else ""
        self.doing(f"start {bisection.starts + 1} at {level:g}{so_far}; {bisection.trials} trials, at most {left} more")


def _search(plan: BreakingPlan, field: VariedField, catalogue: Catalogue) -> BreakingResult:
    """Measures until the breaking point is found."""
    calm = field.at(plan.search.scale.calm)
    progress = _Progress(calm, plan.search.scale, plan.search.max_trials)
    sources = sources_here()
    site = Site(output=output_here(), paths=sources.toml.paths, catalogue=catalogue, observer=progress)
    version = version_here(sources.root, calm.stack, baselines=sources.folder("baselines"))
    evidence = BreakingEvidence.of(output_here(), key_of(calm), field.address)
    block = len(evidence)

    def measure(spec: ScenarioSpec) -> TrialSet:
        nonlocal block
        block += 1
        return measure_start(spec, site, block=block - 1)

    search = BreakingSearch(
        plan=plan,
        at=field.at,
        measure=measure,
        evidence=evidence,
        observer=progress,
        version={**version, "metrics": ", ".join(catalogue)},
    )
    with progress.shown():
        return search.run()


def _show(result: BreakingResult, kind: Format, output: Path | None) -> None:
    width, color = terminal()
    if output is not None:
        for sentence in (answer(result), *remarks(result)):
            say(sentence)
    emit_text(lambda: render_breaking_as(result, kind, width=width, color=color and output is None), output)
