"""``ldos history``: trends, ``pin | unpin``, and ``import`` of saved runs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final

import polars as pl
import typer

from pytest_ldos.base.errors import ConfigurationError, RecordUnreadable, suggest
from pytest_ldos.base.writable import write_atomically
from pytest_ldos.cli.help import Command, Group
from pytest_ldos.cli.history_selection import (
    Directory,
    HostClass,
    Scenario,
    Stack,
    Wanted,
    describe_runs,
    open_store,
    read_trends,
    require_site,
    write_site,
)
from pytest_ldos.cli.paths import LATEST, find_trials, metric_names, sources_here, terminal
from pytest_ldos.cli.say import emit, say
from pytest_ldos.host.checkout import is_changed
from pytest_ldos.judge.baseline.history.rows import Version, build_rows
from pytest_ldos.judge.baseline.history.store import HistoryStore, Pin, remove_pin, write_pin
from pytest_ldos.judge.baseline.history.trend import ROLLING_WINDOW, CommitPoint, Trend
from pytest_ldos.judge.baseline.key import KEY_COLUMNS, BaselineKey
from pytest_ldos.judge.gate.policy import Policy
from pytest_ldos.judge.judging import verdict_alone
from pytest_ldos.judge.kept import read_judgement
from pytest_ldos.measure.trial.artifacts import BASE, TRIALS_FILE, ScenarioFolder, read_trials
from pytest_ldos.measure.trial.record import TrialSet
from pytest_ldos.show.page.formats import Format as ReportFormat
from pytest_ldos.show.page.formats import require_format
from pytest_ldos.show.report.history.table import name_of, render_csv, render_json, render_overview, render_trend


def pin(
    name: Annotated[str, typer.Argument(metavar="COMMIT|RUN", help="A commit, or the folder of a run (its head).")],
    scenario: Scenario = "",
    host_class: HostClass = "",
    stack: Stack = "",
    directory: Directory = None,
) -> None:
    """Pin a commit as the reference of all later ones."""
    store = open_store(directory)
    runs = describe_runs(store, Wanted(scenario, host_class, stack))
    chosen = _find_pin(runs, name)
    for row in _series_of(runs, chosen):
        of_series = chosen if chosen.commit else Pin("", str(row["trials"]), chosen.name)
        say(f"pinned: {write_pin(store.folder(BaselineKey.of_row(row)), of_series)} ({of_series.name})")


def unpin(scenario: Scenario = "", host_class: HostClass = "", stack: Stack = "", directory: Directory = None) -> None:
    """Remove the pin."""
    store = open_store(directory)
    runs = describe_runs(store, Wanted(scenario, host_class, stack))
    folders = sorted({store.folder(BaselineKey.of_row(row)) for row in runs.to_dicts()})
    removed = [folder for folder in folders if remove_pin(folder)]
    if not removed:
        raise ConfigurationError("nothing is pinned", remedy="pin something: ldos history pin COMMIT")
    for folder in removed:
        say(f"unpinned: {folder}")


def _series_of(runs: pl.DataFrame, chosen: Pin) -> list[dict[str, Any]]:
    """One set of trials of each series with the chosen commit or run.

    Raises:
        ConfigurationError: a run has several sets of one series, so that the choice is ambiguous.
    """
    if chosen.commit:
        runs = runs.filter(pl.col("commit") == chosen.commit).unique(KEY_COLUMNS)
    elif chosen.trials in set(runs["trials"]):
        runs = runs.filter(pl.col("trials") == chosen.trials)
    else:
        runs = runs.filter(pl.col("run") == chosen.name, pl.col("version") == Version.HEAD.value)
    rows = runs.sort(*KEY_COLUMNS, "started_at", "trials").to_dicts()
    if len(rows) > runs.select(KEY_COLUMNS).n_unique():
        listed = (f"{row['trials']} ({row['scenario']}, {row['started_at']:%Y-%m-%d %H:%M:%S})" for row in rows)
        raise ConfigurationError(
            f"the run {chosen.name} measured a scenario more than once", remedy=f"pin one set: {', '.join(listed)}"
        )
    return rows


def _find_pin(runs: pl.DataFrame, name: str) -> Pin:
    """Finds the pin named by a commit's beginning, a run's name or the identity of a set of trials.

    Raises:
        ConfigurationError: nothing, or several things, have this name.
    """
    commits = {commit for commit in runs["commit"] if commit}
    names = set(runs.filter(pl.col("version") == Version.HEAD.value)["run"])
    if name in names or name in set(runs["trials"]):
        return Pin("", name, name)
    found = {commit for commit in commits if commit.startswith(name) or (name.startswith(commit) and len(commit) > 6)}
    found = {name} if name in found else found
    if len(found) > 1:
        raise ConfigurationError(f"several commits begin with '{name}'", remedy=f"name one: {', '.join(sorted(found))}")
    if not found and not commits:
        raise ConfigurationError(
            "no run of this history has a commit: they were made outside of git",
            remedy=f"pin a run: {', '.join(sorted(names)[-3:])}",
        )
    if not found:
        raise ConfigurationError(f"no commit or run is called '{name}'", remedy=suggest(name, {*commits, *names}))
    (commit,) = found
    if is_changed(commit):
        raise ConfigurationError(
            f"{commit} had uncommitted changes, which differ from run to run", remedy="pin one of its runs instead"
        )
    return Pin(commit, "", commit)


Runs = Annotated[
    list[str],
    typer.Argument(help="Run folders, scenario folders or files of trials; folders that hold many; or 'latest'."),
]


@dataclass(frozen=True)
class _Saved:
    """A saved set of trials.

    Attributes:
        verdict: of the run; empty if it saved none.
    """

    run: str
    version: Version
    trials: TrialSet
    verdict: str = ""


def import_runs(runs: Runs, directory: Directory = None) -> None:
    """Add saved runs of any machine.

    Existing runs are unchanged. Unreadable files are skipped.

    Exit code: 2 if there were any.
    """
    store = open_store(directory, must_exist=False)
    store.require_writable()
    saved, unreadable = _read_all(file for name in runs for file in _find(name))
    own = metric_names(each.trials for each in saved)
    policy = Policy.configured(sources_here().toml.gate, scenarios=1, own=own)
    added = sum(_add(each, store, policy) for each in saved)
    if saved:
        say(f"{added} of {len(saved)} added to {store.directory}{_describe_others(saved, added)}")
    _refuse(unreadable)


def _find(name: str) -> list[Path]:
    """Finds trials of a run, or at any depth below a folder; the base of a session is found with its head."""
    place = Path(name)
    if name != LATEST and place.is_dir():
        found = [file for file in sorted(place.rglob(TRIALS_FILE)) if not _is_of_base(file)]
        if found:
            return found
    return find_trials(name)


def _is_of_base(file: Path) -> bool:
    return file.parent.name == BASE and (file.parents[1] / TRIALS_FILE).is_file()


def _read_all(files: Iterable[Path]) -> tuple[list[_Saved], list[RecordUnreadable]]:
    saved: list[_Saved] = []
    unreadable: list[RecordUnreadable] = []
    for file in dict.fromkeys(files):
        try:
            saved += _saved_with(file)
        except RecordUnreadable as error:
            unreadable.append(error)
    return saved, unreadable


def _refuse(unreadable: list[RecordUnreadable]) -> None:
    """Prints the messages of all errors but the first, and raises that."""
    for error in unreadable[1:]:
        say(f"ldos: {error.message}", err=True)
    if unreadable:
        raise unreadable[0]


def _add(saved: _Saved, store: HistoryStore, policy: Policy) -> bool:
    """Adds saved trials to the history; True if they were new and are not left out (see `rows.why_left_out`)."""
    if not saved.trials.trials:
        return False
    verdict = saved.verdict or verdict_alone(saved.trials, policy)
    rows = build_rows(saved.trials, run=saved.run, branch="", verdict=verdict, version=saved.version)
    return not rows.is_empty() and store.append(rows)


def _describe_others(saved: Sequence[_Saved], added: int) -> str:
    return "" if added == len(saved) else "; the others were already there, or are empty, invalid or watched"


def _saved_with(file: Path) -> Iterator[_Saved]:
    """The trials of a file, and those of their interleaved base."""
    trials = read_trials(file)
    version = _version_in(file, trials)
    run = _run_name(file, version)
    kept = read_judgement(ScenarioFolder(file.parent)) if file.name == TRIALS_FILE else None
    yield _Saved(run, version, trials, "" if kept is None else kept.verdict.value)
    base = file.parent / BASE / TRIALS_FILE
    if base.exists():
        yield _Saved(run, Version.BASE, read_trials(base))


def _version_in(file: Path, trials: TrialSet) -> Version:
    """The version in a file; the base has its own folder."""
    return Version.BASE if trials.session and file.absolute().parent.name == BASE else Version.HEAD


def _run_name(file: Path, version: Version) -> str:
    """Name of the run's folder that a file of trials belongs to, or of the file without one."""
    place = file.absolute()
    scenario = place.parents[1 if version is Version.BASE else 0]
    return scenario.parent.name if place.name == TRIALS_FILE else place.stem


history_app = typer.Typer(cls=Group, rich_markup_mode=None, invoke_without_command=True)
history_app.command(cls=Command)(pin)
history_app.command(cls=Command)(unpin)
history_app.command("import", cls=Command)(import_runs)


class Format(StrEnum):
    """Format of trends."""

    TERMINAL = "terminal"
    JSON = "json"
    CSV = "csv"


LOOKED_AT = 1000
"""Most runs of each series, unless older ones are requested."""

_SHOWN: Final = 40
_SHOWN_ON_SITE: Final = 100

_IMAGES = frozenset({".svg", ".png"})
_PAGES = frozenset({".html", ".htm"})


@history_app.callback()
def history(  # noqa: PLR0913, PLR0917 - one argument an option
    context: typer.Context,
    metric: Annotated[str, typer.Option(help="Show the commits of this metric, e.g. T4, instead of an overview.")] = "",
    scenario: Scenario = "",
    host_class: HostClass = "",
    stack: Stack = "",
    since: Annotated[str, typer.Option(help="Show commits from this one or this date on.")] = "",
    last: Annotated[int | None, typer.Option(min=1, help="Show the last N commits; 40, on a site 100.")] = None,
    window: Annotated[int, typer.Option(min=1, help="Number of accepted runs in the rolling anchor.")] = ROLLING_WINDOW,
    form: Annotated[Format, typer.Option("--format", help="Format of the result.")] = Format.TERMINAL,
    plot: Annotated[Path | None, typer.Option(help="Also plot it to this file: .html, .svg or .png.")] = None,
    site: Annotated[Path | None, typer.Option(help="Also write pages and a badge to this folder.")] = None,
    repository: Annotated[
        str, typer.Option(help="Address that a site's commits link to, https://HOST/OWNER/NAME.")
    ] = "",
    directory: Directory = None,
) -> None:
    """Show metrics over commits: steps, creep and changes of level."""
    if context.invoked_subcommand is not None:
        return
    _check_plot(plot)
    _check_site(site, metric, repository)
    last = last or (_SHOWN if site is None else _SHOWN_ON_SITE)
    wanted = Wanted(scenario, host_class, stack, metric)
    trends = read_trends(open_store(directory), wanted, window, runs=0 if since else max(LOOKED_AT, 4 * last))
    shown = [(trend, _choose(trend, since=since, last=last)) for trend in trends]
    if plot is not None:
        _write_plot(shown, plot)
    if site is not None:
        say(f"site: {write_site(site, shown, repository)}", err=True)
    if form is not Format.TERMINAL:
        emit(render_json(shown) if form is Format.JSON else render_csv(shown))
        return
    width, color = terminal()
    if metric:
        for number, (trend, points) in enumerate(shown):
            if number:
                say("")
            emit(render_trend(trend, shown=points, width=width, color=color))
    else:
        emit(render_overview(trends, width=width, color=color))


def _choose(trend: Trend, *, since: str, last: int) -> tuple[CommitPoint, ...]:
    """The commits to show; anchors and noise are computed from all."""
    points = trend.commits
    if since:
        points = points[_first_since(points, since) :]
    return points[-last:]


def _first_since(points: Collection[CommitPoint], since: str) -> int:
    for number, point in enumerate(points):
        if point.commit.startswith(since) or point.label.startswith(since):
            return number
    try:
        moment = datetime.fromisoformat(since)
    except ValueError:
        known = {point.label for point in points}
        raise ConfigurationError(
            f"'{since}' is neither a date nor a commit of this history", remedy=suggest(since, known)
        ) from None
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
    return sum(point.runs[-1].started_at < moment for point in points)


def _check_plot(plot: Path | None) -> None:
    if plot is None:
        return
    if plot.suffix not in _IMAGES | _PAGES:
        raise ConfigurationError(f"{plot} is not a kind of plot", remedy="let its name end with .html, .svg or .png")
    require_format(ReportFormat.HTML)


def _check_site(site: Path | None, metric: str, repository: str) -> None:
    if site is None:
        if repository:
            raise ConfigurationError("--repository is for the links of a site", remedy="name its folder: --site FOLDER")
        return
    if metric:
        raise ConfigurationError(
            "a site shows all metrics", remedy="leave out --metric, or plot the one: --plot FILE.html"
        )
    require_site(site)


def _write_plot(shown: list[tuple[Trend, tuple[CommitPoint, ...]]], plot: Path) -> None:
    if plot.suffix in _IMAGES and len(shown) > 1:
        names = "; ".join(name_of(trend.series) for trend, _ in shown[:3])
        raise ConfigurationError(
            f"an image shows one series, and there are {len(shown)}: {names} …",
            remedy="choose one with --metric, --scenario, --host-class and --stack, or ask for an .html",
        )
    from pytest_ldos.show.report.history.figure import render_image  # noqa: PLC0415 - its library need not be installed
    from pytest_ldos.show.report.history.page import render_page  # noqa: PLC0415

    content = render_page(shown).encode() if plot.suffix in _PAGES else render_image(shown, plot.suffix[1:])
    write_atomically(plot, content)
    say(f"plot: {plot}", err=True)
