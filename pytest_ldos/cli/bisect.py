"""``ldos bisect``: finds the commit that caused a regression."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

import typer

from pytest_ldos.base import exit_codes
from pytest_ldos.base.errors import ConfigurationError, refuse_unknown
from pytest_ldos.base.text import counted
from pytest_ldos.campaign.bisection import TRIALS_PER_START, Bisection, SearchPlan
from pytest_ldos.campaign.commits.plan import (
    CONFIDENCE,
    MAX_TRIALS,
    Commit,
    least_amount,
    least_trials,
    list_commits,
    most_amount,
    plan_search,
)
from pytest_ldos.campaign.commits.rounds import CommitEvidence, measure_round
from pytest_ldos.campaign.commits.search import CommitResult, CommitSearch
from pytest_ldos.campaign.estimate import Expected, describe_expected, duration_files, measured_cost
from pytest_ldos.campaign.measure_start import Site
from pytest_ldos.campaign.measured_version import machine_here
from pytest_ldos.campaign.order import Role
from pytest_ldos.campaign.versions.find import VersionFinder
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
from pytest_ldos.cli.paths import parse_confidence, sources_here, terminal
from pytest_ldos.cli.progress import MeasuringProgress
from pytest_ldos.cli.say import FormatOption, OutputOption, choose_format, emit_text, say
from pytest_ldos.measure.metrics.catalogue import Catalogue
from pytest_ldos.robot.stack.choose import resolve_kind
from pytest_ldos.scenario.model import ScenarioSpec
from pytest_ldos.show.page.formats import Format
from pytest_ldos.show.report.bisect import answer, remarks, render_bisect_as

_KEPT: Final = "complete rounds are saved: the same command resumes the search"


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
    sources = sources_here()
    refuse_watching(sources)
    (name,) = chosen_scenarios([scenario] if scenario else None, sources)
    catalogue = chosen_metrics(metrics, sources)
    refuse_unknown([metric], catalogue, "metric in --metric:")
    spec = dataclasses.replace(sources.scenario(name, {}), trials=trials_per_start, max_trials=0)
    commits = list_commits(good, bad, Path())
    plan = plan_search(
        len(commits) - 1,
        confidence=parse_confidence(confidence),
        trials_per_start=trials_per_start,
        max_trials=max_trials,
    )
    _refuse_few_trials(plan, max_trials)
    for line in _costs(spec, plan, commits):
        say(line, err=not dry_run)
    if dry_run:
        return
    with measuring(kept=_KEPT):
        refuse_unable(spec)
        result = _search(plan, commits, spec, catalogue, metric)
    _show(result, kind, output)
    raise typer.Exit(0 if result.suspects else exit_codes.INVALID)


def _refuse_few_trials(plan: SearchPlan, max_trials: int) -> None:
    """Refuses a search with too few trials to decide two commits.

    Raises:
        ConfigurationError: too few trials; the message has the required number.
    """
    least = least_trials(plan)
    if max_trials < least:
        raise ConfigurationError(
            f"--max-trials {max_trials} cannot decide BAD and one commit more",
            remedy=f"allow {least} or more, better {MAX_TRIALS}; a lower --confidence needs fewer",
        )


def _costs(spec: ScenarioSpec, plan: SearchPlan, commits: Sequence[Commit]) -> tuple[str, ...]:
    """Lines on the searched commits and the expected cost."""
    cost = measured_cost(duration_files(output_here()), stack=resolve_kind(spec.stack).value, scenario=spec.name)
    expected = Expected(least_amount(plan, spec.warmup), most_amount(plan, spec.warmup), cost)
    after, most = counted(len(commits) - 1, "commit"), plan.most_levels
    first = f"{after} after GOOD {commits[0].name} up to BAD {commits[-1].name}; at most {most} are built and measured"
    amount = f"{counted(expected.most.starts, 'stack start')} and {counted(expected.most.trials, 'trial')} at most"
    return first, f"{describe_expected([expected])}; {amount}; builds come on top"


class _Progress(MeasuringProgress):
    """See `CommitObserver`."""

    def begin_round(self, commit: Commit, number: int, bisection: Bisection) -> None:
        self.doing(f"round {number + 1} of {commit.name} ({commit.subject}){_left(bisection)}")


def _left(bisection: Bisection) -> str:
    """Number of remaining commits; empty before BAD is decided."""
    if bisection.holds is None or bisection.breaks is None:
        return ""
    return f"; {counted(round(bisection.breaks.level - bisection.holds.level), 'commit')} left"


def _search(
    plan: SearchPlan, commits: Sequence[Commit], spec: ScenarioSpec, catalogue: Catalogue, metric: str
) -> CommitResult:
    """Measures until the commit is found."""
    progress = _Progress(most_amount(plan, spec.warmup).trials, name=f"{spec.name}: bisect")
    sources = sources_here()
    site = Site(output=output_here(), paths=sources.toml.paths, catalogue=catalogue, observer=progress)
    finder = VersionFinder(
        stack=spec.stack,
        spec=sources.toml.base,
        root=sources.root.absolute(),
        folder=Path.cwd(),
        output=output_here(),
        announce=progress.note,
    )
    where = {**machine_here(spec.stack), "metrics": ", ".join(catalogue)}
    search = CommitSearch(
        commits=commits,
        plan=plan,
        metric=catalogue[metric].description,
        prepare=lambda commit: dataclasses.replace(finder.find(Role.BASE, commit.name), name=commit.name),
        measure=lambda versions, records, number: measure_round(spec, site, versions, records, number),
        evidence=CommitEvidence.of(output_here(), key_of(spec), (commits[0], commits[-1]), spec=spec, where=where),
        observer=progress,
    )
    with progress.shown():
        return search.run()


def _show(result: CommitResult, kind: Format, output: Path | None) -> None:
    width, color = terminal()
    if output is not None:
        for sentence in (answer(result), *remarks(result)):
            say(sentence)
    emit_text(lambda: render_bisect_as(result, kind, width=width, color=color and output is None), output)
