"""``ldos find-breaking | bisect``: searches for the level of a load, or for the commit, at which the arm breaks."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from pytest_ldos.base import exit_codes
from pytest_ldos.base.errors import ConfigurationError, refuse_unknown
from pytest_ldos.base.text import Rendered, counted
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
from pytest_ldos.campaign.starts import machine_here, measure_start, version_here
from pytest_ldos.campaign.versions.find import VersionFinder
from pytest_ldos.cli.measuring import (
    MeasuringProgress,
    MetricsOption,
    choose_measured,
    describe_cost,
    key_of,
    measuring,
    output_here,
    refuse_unable,
    site_here,
)
from pytest_ldos.cli.say import (
    FormatOption,
    OutputOption,
    choose_format,
    emit_text,
    parse_confidence,
    parse_duration_s,
    parse_share,
    say,
    sources_here,
    terminal,
)
from pytest_ldos.measure.metrics.catalogue import Catalogue
from pytest_ldos.measure.trial.record import TrialSet
from pytest_ldos.scenario.model import ScenarioSpec
from pytest_ldos.scenario.words import SeedMode
from pytest_ldos.show.report.bisect import answer as answer_commit
from pytest_ldos.show.report.bisect import remarks as remark_commit
from pytest_ldos.show.report.bisect import render_bisect_as
from pytest_ldos.show.report.breaking import answer, remarks, render_breaking_as


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
    sources, (name,), catalogue = choose_measured([scenario] if scenario else None, metrics)
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
        result = _search(plan, field, catalogue)
    _show((answer(result), *remarks(result)), partial(render_breaking_as, result, kind), output)
    is_known = result.is_finished and result.finding not in {Finding.UNDECIDED, Finding.UNMEASURED}
    # also an interval, if the time limit ended the search
    raise typer.Exit(0 if is_known or result.finding is Finding.BREAKS else exit_codes.INVALID)


def _search(plan: BreakingPlan, field: VariedField, catalogue: Catalogue) -> BreakingResult:
    """Measures until the breaking point is found."""
    calm = field.at(plan.search.scale.calm)
    progress = MeasuringProgress(plan.search.max_trials, name=f"{calm.name}: breaking point")
    sources = sources_here()
    site = site_here(catalogue, progress)
    version = version_here(sources.root, calm.stack, baselines=sources.folder("baselines"))
    store = BreakingStore(key_of(calm).folder(output_here() / "breaking") / field.address)
    block = len(store.files())

    def measure(spec: ScenarioSpec) -> TrialSet:
        nonlocal block
        block += 1
        return measure_start(spec, site, block=block - 1)

    search = BreakingSearch(
        plan=plan,
        at=field.at,
        measure=measure,
        store=store,
        observer=progress,
        version={**version, "metrics": ", ".join(catalogue)},
    )
    with progress.shown():
        return search.run()


def _show(sentences: Iterable[str], render: Callable[..., Rendered], output: Path | None) -> None:
    """Prints the result, or writes it and prints its sentences."""
    width, color = terminal()
    if output is not None:
        for sentence in sentences:
            say(sentence)
    emit_text(lambda: render(width=width, color=color and output is None), output)


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
    sources, (name,), catalogue = choose_measured([scenario] if scenario else None, metrics)
    refuse_unknown([metric], catalogue, "metric in --metric:")
    spec = dataclasses.replace(sources.scenario(name, {}), trials=trials_per_start, max_trials=0)
    commits = list_commits(good, bad, Path())
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
    for line in _costs(spec, plan, commits):
        say(line, err=not dry_run)
    if dry_run:
        return
    with measuring(kept="complete rounds are saved: the same command resumes the search"):
        refuse_unable(spec)
        result = _search_bisect(plan, commits, spec, catalogue, metric)
    _show((answer_commit(result), *remark_commit(result)), partial(render_bisect_as, result, kind), output)
    raise typer.Exit(0 if result.suspects else exit_codes.INVALID)


def _costs(spec: ScenarioSpec, plan: SearchPlan, commits: Sequence[Commit]) -> tuple[str, ...]:
    """Lines on the searched commits and the expected cost."""
    amounts = least_amount(plan, spec.warmup), most_amount(plan, spec.warmup)
    after, most = counted(len(commits) - 1, "commit"), plan.most_levels
    first = f"{after} after GOOD {commits[0].name} up to BAD {commits[-1].name}; at most {most} are built and measured"
    largest = f"{counted(amounts[1].starts, 'stack start')} and {counted(amounts[1].trials, 'trial')} at most"
    return first, f"{describe_cost(spec, *amounts)}; {largest}; builds come on top"


def _search_bisect(
    plan: SearchPlan, commits: Sequence[Commit], spec: ScenarioSpec, catalogue: Catalogue, metric: str
) -> CommitResult:
    """Measures until the commit is found."""
    progress = MeasuringProgress(most_amount(plan, spec.warmup).trials, name=f"{spec.name}: bisect")
    sources = sources_here()
    site = site_here(catalogue, progress)
    finder = VersionFinder(
        stack=spec.stack,
        spec=sources.toml.base,
        root=sources.root.absolute(),
        folder=Path.cwd(),
        output=output_here(),
        announce=progress.note,
    )
    between = f"{commits[0].name}..{commits[-1].name}"
    search = CommitSearch(
        commits=commits,
        plan=plan,
        metric=catalogue[metric].description,
        spec=spec,
        where={**machine_here(spec.stack), "metrics": ", ".join(catalogue)},
        prepare=lambda commit: dataclasses.replace(finder.find(Role.BASE, commit.name), name=commit.name),
        measure=lambda versions, records, number: measure_round(spec, site, versions, records, number),
        store=CommitStore(key_of(spec).folder(output_here() / "bisect") / between),
        observer=progress,
    )
    with progress.shown():
        return search.run()
