"""``ldos find-breaking | bisect``: searches for the level of a load, or for the commit, at which the arm breaks."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from pytest_ldos.base import exit_codes
from pytest_ldos.base.errors import ConfigurationError, refuse_unknown
from pytest_ldos.base.text import counted
from pytest_ldos.campaign.bisection import TRIALS_PER_START, Finding, SearchPlan, Spacing
from pytest_ldos.campaign.breaking_result import BreakingPlan, BreakingResult, parse_criterion
from pytest_ldos.campaign.commit_rounds import (
    CONFIDENCE,
    MAX_TRIALS,
    Commit,
    CommitStore,
    least_amount,
    least_trials,
    list_commits,
    measure_round,
    most_amount,
    plan_search,
)
from pytest_ldos.campaign.commit_search import CommitResult, CommitSearch
from pytest_ldos.campaign.find_breaking import BreakingSearch, BreakingStore, Harsher, VariedField
from pytest_ldos.campaign.order import Role
from pytest_ldos.campaign.starts import key_of, machine_here, measure_start, version_here
from pytest_ldos.campaign.versions.find import VersionFinder
from pytest_ldos.cli.measuring import (
    MeasuringProgress,
    MetricsOption,
    Request,
    TimeLimitOption,
    measuring,
    refuse_unable,
)
from pytest_ldos.cli.say import (
    FormatOption,
    OutputOption,
    choose_format,
    emit_fitted,
    parse_confidence,
    parse_duration_s,
    parse_share,
    say,
)
from pytest_ldos.judge.baseline.accepted import find_step, read_accepted
from pytest_ldos.judge.baseline.key import BaselineKey
from pytest_ldos.scenario.model import ScenarioSpec
from pytest_ldos.scenario.words import SeedMode
from pytest_ldos.show.report import bisect as bisect_report
from pytest_ldos.show.report import breaking


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
    time_limit: TimeLimitOption = None,
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
    numbers, so that the result is not that of a single plan.

    Exit code: 0 an answer was found (also: it does not break), 11 it could not be measured or decided, 130 interrupted.
    """
    kind = choose_format(output_format, output)
    asked = Request.of([scenario], metrics)
    field = VariedField.find(address, asked.spec(trials=trials_per_start, seeds=SeedMode.RANDOM))
    levels = field.scale(lo, hi, precision=parse_share(precision, what="--precision"), spacing=scale, harsher=harsher)
    criterion = parse_criterion(until, {metric.name: metric.description for metric in asked.catalogue.values()})
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
    least = 2 * plan.search.least_trials
    if max_trials < least:
        raise ConfigurationError(
            f"--max-trials {max_trials} cannot decide even two levels: one takes {plan.search.least_trials} at least",
            remedy=f"allow {least} or more, better {plan.search.most_levels * plan.search.least_trials}; "
            "a lower --confidence and fewer --trials-per-start need fewer",
        )
    with measuring(kept="complete starts are saved: the same command resumes"):
        for level in (levels.calm, levels.harsh):
            refuse_unable(field.at(level))
        result = _search(asked, plan, field)
    if output is not None:
        for sentence in (breaking.answer(result), *breaking.remarks(result)):
            say(sentence)
    emit_fitted(breaking.render_breaking_as, result, kind, output=output)
    is_known = result.is_finished and result.finding not in {Finding.UNDECIDED, Finding.UNMEASURED}
    # also an interval, if the time limit ended the search
    raise typer.Exit(0 if is_known or result.finding is Finding.BREAKS else exit_codes.INVALID)


def _search(asked: Request, plan: BreakingPlan, field: VariedField) -> BreakingResult:
    calm = field.at(plan.search.scale.calm)
    progress = MeasuringProgress(plan.search.max_trials, name=f"{calm.name}: breaking point")
    site, sources = asked.site(progress), asked.sources
    version = version_here(sources.root, calm.stack, baselines=sources.folder("baselines"))
    store = BreakingStore(key_of(calm).folder(asked.output / "breaking") / field.address)
    blocks = itertools.count(len(store.files()))
    search = BreakingSearch(
        plan=plan,
        at=field.at,
        measure=lambda spec: measure_start(spec, site, block=next(blocks)),
        store=store,
        observer=progress,
        version={**version, "metrics": ", ".join(asked.catalogue)},
    )
    with progress.shown():
        return search.run()


def bisect(  # noqa: PLR0913 - one a command-line option
    good: Annotated[str, typer.Argument(help="Commit, tag or branch in which the metric is good.")],
    bad: Annotated[str, typer.Argument(help="Likewise, a descendant of GOOD in which it is worse.")],
    *,
    scenario: Annotated[str | None, typer.Option(help="Scenario to measure. [default: baseline]")] = None,
    metric: Annotated[str, typer.Option(help="Metric that became worse; a failed trial is the worst.")] = "T1",
    confidence: Annotated[
        str, typer.Option(help="Probability that the commit is in the answer: 0.95 or 95%.")
    ] = f"{100 * CONFIDENCE:g}%",
    trials_per_start: Annotated[
        int, typer.Option(min=1, max=100, help="Trials of each start of a stack; 1 makes them independent.")
    ] = TRIALS_PER_START,
    max_trials: Annotated[int, typer.Option(min=1, help="Trials of all versions together.")] = MAX_TRIALS,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the expected cost without measuring.")] = False,
    metrics: MetricsOption = None,
    output: OutputOption = None,
    output_format: FormatOption = None,
) -> None:
    """Find the commit that caused a regression.

    Measures some of the commits from GOOD to BAD, along first parents, each interleaved with GOOD and with BAD.
    Versions are prepared and built as for pytest's --ldos-base; settings are those of the work tree. A commit counts as
    good or bad only if its trials are significant; one that does not build, or whose stack does not start, is skipped.
    If no single commit is found, the answer is the remaining commits. Results are saved after each round: the same
    command resumes an interrupted search.

    Exit code: 0 one commit or a few were found, 11 it could not be measured, or BAD is not significantly worse than
    GOOD, 130 interrupted.
    """
    kind = choose_format(output_format, output)
    asked = Request.of([scenario], metrics)
    refuse_unknown([metric], asked.catalogue, "metric in --metric:")
    spec = asked.spec(trials=trials_per_start)
    commits = list_commits(good, bad, Path())
    read_accepted(asked.sources.root)  # refuses a damaged file before anything is measured
    plan = plan_search(
        len(commits) - 1,
        confidence=parse_confidence(confidence),
        trials_per_start=trials_per_start,
        max_trials=max_trials,
    )
    least = least_trials(plan)
    if max_trials < least:
        raise ConfigurationError(
            f"--max-trials {max_trials} cannot decide BAD and one commit more",
            remedy=f"allow {least} or more, better {MAX_TRIALS}; a lower --confidence needs fewer",
        )
    amounts = least_amount(plan, spec.warmup), most_amount(plan, spec.warmup)
    after = f"{counted(len(commits) - 1, 'commit')} after GOOD {commits[0].name} up to BAD {commits[-1].name}"
    largest = f"{counted(amounts[1].starts, 'stack start')} and {counted(amounts[1].trials, 'trial')} at most"
    say(f"{after}; at most {plan.most_levels} are built and measured", err=not dry_run)
    say(f"{asked.describe_cost(spec, *amounts)}; {largest}; builds come on top", err=not dry_run)
    if dry_run:
        return
    with measuring(kept="complete rounds are saved: the same command resumes the search"):
        refuse_unable(spec)
        result = _search_bisect(asked, plan, commits, spec, metric)
    if result.template is not None and len(result.suspects) == 1:
        step = find_step(asked.sources.root, result.suspects[0].name, BaselineKey.of(result.template), metric)
        result = dataclasses.replace(result, accepted=step)
    if output is not None:
        for sentence in (bisect_report.answer(result), *bisect_report.remarks(result)):
            say(sentence)
    emit_fitted(bisect_report.render_bisect_as, result, kind, output=output)
    raise typer.Exit(0 if result.suspects else exit_codes.INVALID)


def _search_bisect(
    asked: Request, plan: SearchPlan, commits: Sequence[Commit], spec: ScenarioSpec, metric: str
) -> CommitResult:
    progress = MeasuringProgress(most_amount(plan, spec.warmup).trials, name=f"{spec.name}: bisect")
    site, sources = asked.site(progress), asked.sources
    finder = VersionFinder(
        stack=spec.stack,
        spec=sources.toml.base,
        root=sources.root.absolute(),
        folder=Path.cwd(),
        output=asked.output,
        announce=progress.note,
    )
    search = CommitSearch(
        commits=commits,
        plan=plan,
        metric=asked.catalogue[metric].description,
        spec=spec,
        where={**machine_here(spec.stack), "metrics": ", ".join(asked.catalogue)},
        prepare=lambda commit: dataclasses.replace(finder.find(Role.BASE, commit.name), name=commit.name),
        measure=lambda versions, records, number: measure_round(spec, site, versions, records, number),
        store=CommitStore(key_of(spec).folder(asked.output / "bisect") / f"{commits[0].name}..{commits[-1].name}"),
        observer=progress,
    )
    with progress.shown():
        return search.run()
