"""``ldos history``: trends and their site, ``pin | unpin``, and ``import`` of saved runs."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final

import polars as pl
import typer

from pytest_ldos.base.errors import ConfigurationError, RecordUnreadable, refuse_unknown, suggest
from pytest_ldos.base.files import require_writable_folder, write_atomically, writing
from pytest_ldos.cli.main import Command, make_group
from pytest_ldos.cli.say import LATEST, emit, emit_fitted, find_trials, metric_names, say, sources_here, stores_here
from pytest_ldos.host.checkout import is_changed, read_subjects
from pytest_ldos.judge.baseline.accepted import find_step
from pytest_ldos.judge.baseline.history import HistoryStore, Version, build_rows
from pytest_ldos.judge.baseline.key import KEY_COLUMNS, BaselineKey
from pytest_ldos.judge.baseline.series import COLUMNS, MetricSeries, Run, build_series, latest_runs
from pytest_ldos.judge.baseline.store import Calibrated, find_calibration_of
from pytest_ldos.judge.baseline.trend import (
    ROLLING_WINDOW,
    CommitPoint,
    Pin,
    Trend,
    build_trend,
    read_pin,
    remove_pin,
    write_pin,
)
from pytest_ldos.judge.gate.case import Policy
from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.judge.judging import read_judgement, verdict_alone
from pytest_ldos.measure.metrics.catalogue import METRICS
from pytest_ldos.measure.metrics.model import USUAL_FLOOR
from pytest_ldos.measure.trial.artifacts import BASE, TRIALS_FILE, ScenarioFolder, read_trials
from pytest_ldos.measure.trial.record import TrialSet
from pytest_ldos.show.page.formats import Format as ReportFormat
from pytest_ldos.show.page.formats import require_format, to_json
from pytest_ldos.show.report import history as table

Directory = Annotated[Path | None, typer.Option("--dir", help="The history; by default the one that is configured.")]
Scenario = Annotated[str, typer.Option(help="Only this scenario.")]
HostClass = Annotated[str, typer.Option(help="Only this host class.")]
Stack = Annotated[str, typer.Option(help="Only this stack.")]


def choose(rows: pl.DataFrame, **wanted: str) -> pl.DataFrame:
    """Rows of series by column; empty texts select all. An unknown name is refused with the nearest one."""
    for column, value in wanted.items():
        if value:
            refuse_unknown([value], set(rows[column].unique()), column.replace("_", " "))
            rows = rows.filter(pl.col(column) == value)
    return rows


def open_store(directory: Path | None, *, must_exist: bool = True) -> HistoryStore:
    sources = sources_here()
    configured = directory or (sources.value("history") and sources.folder("history"))
    if configured is None:
        raise ConfigurationError(
            "no history is configured", remedy="name one with --dir DIR, LDOS_HISTORY or [tool.ldos] history"
        )
    store = HistoryStore(Path(configured))
    if must_exist:
        store.require_existing()
    return store


def read_trends(store: HistoryStore, window: int, *, runs: int, metric: str, **wanted: str) -> list[Trend]:
    """Trends of the last `runs` runs of each series (0 for all), and of pinned runs; see `choose`."""
    read = store.read(metrics=[metric] if metric else (), columns=COLUMNS)
    for damaged in read.damaged:
        say(f"ldos: {damaged}", err=True)
    rows = read.table
    if rows.is_empty() and metric:  # all metrics are needed to name the nearest one
        rows = store.read(columns=COLUMNS).table
    rows = choose(rows, **wanted, metric=metric)
    keys = map(BaselineKey.of_row, rows.select(KEY_COLUMNS).unique().to_dicts())
    pins = {key: pin for key in keys if (pin := read_pin(store.folder(key))) is not None}
    latest = latest_runs(rows, runs, keep=[pin.commit or pin.trials for pin in pins.values()]) if runs else rows
    older = f"only the last {runs} runs were considered; --since shows older ones"
    notes = () if len(latest) == len(rows) else (older,)
    if not (series := _with_accepted(build_series(latest))):
        raise ConfigurationError("no run has a value there", remedy="see `ldos history` for what has")
    trends = [build_trend(each, pin=pins.get(each.key), window=window, floor=_floor(each)) for each in series]
    return [replace(trend, notes=(*trend.notes, *notes)) for trend in trends]


def _with_accepted(series: list[MetricSeries]) -> list[MetricSeries]:
    """The series, with the changes that this checkout's file accepts in the runs of the commits that brought them."""
    project = sources_here().root

    def complete(run: Run, each: MetricSeries) -> Run:
        is_accepted = run.verdict == Verdict.ACCEPTED
        return replace(run, brought=find_step(project, run.commit, each.key, each.metric)) if is_accepted else run

    try:
        return [replace(each, runs=tuple(complete(run, each) for run in each.runs)) for each in series]
    except RecordUnreadable as error:
        say(f"ldos: {error.message}", err=True)
        return series


def _floor(series: MetricSeries) -> float:
    """The configured floors, or those of this host's calibration."""
    if (configured := sources_here().toml.gate.get("floors", {}).get(series.metric)) is not None:
        return float(configured)
    known = find_calibration_of(stores_here(), series.key)
    noise = known.noise.get(series.metric) if isinstance(known, Calibrated) else None
    if noise is not None:
        return noise.floor
    return METRICS[series.metric].usual_floor if series.metric in METRICS else USUAL_FLOOR


def describe_runs(store: HistoryStore, **wanted: str) -> pl.DataFrame:
    columns = ("run", "started_at", "version", "commit", *KEY_COLUMNS)
    return choose(store.read(columns=columns).table.select("trials", *columns).unique(), **wanted)


_MANIFEST: Final = "ldos-site.json"
_KIND: Final = "pytest-ldos history site"
_SCHEMA_VERSION: Final = 1
_OURS: Final = re.compile(r"[A-Za-z0-9-]+\.(?:html|svg|json)")
_ANOTHER: Final = "name another folder"


def write_site(folder: Path, shown: table.Shown, repository: str) -> Path:
    """Writes the site and returns its first page; removes pages of an earlier one, but no other file."""
    from pytest_ldos.show.report.history_page import INDEX, render_site  # noqa: PLC0415 - its library is optional

    server, name = (os.environ.get(f"GITHUB_{each}", "") for each in ("SERVER_URL", "REPOSITORY"))
    here = f"{server}/{name}" if server and name else ""
    files = render_site(shown, table.Origins(repository or here, read_subjects(Path())))
    earlier = _read_manifest(folder)
    if foreign := sorted(name for name in files if name not in earlier and os.path.lexists(folder / name)):
        raise ConfigurationError(f"{folder / foreign[0]} exists and is not one of our pages", remedy=_ANOTHER)

    def write_manifest(names: Iterable[str]) -> None:
        document = {"kind": _KIND, "schema": _SCHEMA_VERSION, "files": sorted(names)}
        write_atomically(folder / _MANIFEST, to_json(document))

    write_manifest({*files, *earlier})
    for name, content in files.items():
        write_atomically(folder / name, content)
    for name in earlier - files.keys():
        with writing(folder / name):
            (folder / name).unlink(missing_ok=True)
    write_manifest(files)
    return folder / INDEX


def _read_manifest(folder: Path) -> set[str]:
    file = folder / _MANIFEST
    try:
        document = json.loads(file.read_text("utf-8"))
        names = {str(name) for name in document["files"]}
        known = (document["kind"], document["schema"]) == (_KIND, _SCHEMA_VERSION)
    except FileNotFoundError:
        return set()
    except (OSError, ValueError, KeyError, TypeError):
        known, names = False, set()
    if not known or not all(map(_OURS.fullmatch, names)):
        raise ConfigurationError(f"{file} does not list the files of a site", remedy=f"{_ANOTHER}, or remove this one")
    return names


def pin(
    name: Annotated[str, typer.Argument(metavar="COMMIT|RUN", help="A commit, or the folder of a run (its head).")],
    scenario: Scenario = "",
    host_class: HostClass = "",
    stack: Stack = "",
    directory: Directory = None,
) -> None:
    """Pin a commit as the reference of all later ones."""
    store = open_store(directory)
    runs = describe_runs(store, scenario=scenario, host_class=host_class, stack=stack)
    chosen = _find_pin(runs, name)
    for row in _series_of(runs, chosen):
        of_series = chosen if chosen.commit else Pin("", str(row["trials"]), chosen.name)
        say(f"pinned: {write_pin(store.folder(BaselineKey.of_row(row)), of_series)} ({of_series.name})")


def unpin(scenario: Scenario = "", host_class: HostClass = "", stack: Stack = "", directory: Directory = None) -> None:
    """Remove the pin."""
    store = open_store(directory)
    runs = describe_runs(store, scenario=scenario, host_class=host_class, stack=stack)
    folders = sorted({store.folder(BaselineKey.of_row(row)) for row in runs.to_dicts()})
    if not (removed := [folder for folder in folders if remove_pin(folder)]):
        raise ConfigurationError("nothing is pinned", remedy="pin something: ldos history pin COMMIT")
    for folder in removed:
        say(f"unpinned: {folder}")


def _series_of(runs: pl.DataFrame, chosen: Pin) -> list[dict[str, Any]]:
    """One set of trials of each series with the chosen commit or run; refuses a run with several of one series."""
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
    """Finds the pin named by the beginning of a commit, by a run, or by a set of trials."""
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
    """A saved set of trials, and the verdict of its run; empty if it saved none."""

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
    saved: list[_Saved] = []
    unreadable: list[RecordUnreadable] = []
    for file in dict.fromkeys(file for name in runs for file in _find(name)):
        try:
            saved += _saved_with(file)
        except RecordUnreadable as error:
            unreadable.append(error)
    policy = Policy.configured(sources_here().toml.gate, scenarios=1, own=metric_names(each.trials for each in saved))
    added = 0
    for each in saved:
        if each.trials.trials:
            verdict = each.verdict or verdict_alone(each.trials, policy)
            rows = build_rows(each.trials, run=each.run, branch="", verdict=verdict, version=each.version)
            added += not rows.is_empty() and store.append(rows)
    if saved:
        others = "" if added == len(saved) else "; the others were already there, or are empty, invalid or watched"
        say(f"{added} of {len(saved)} added to {store.directory}{others}")
    for other in unreadable[1:]:
        say(f"ldos: {other.message}", err=True)
    if unreadable:
        raise unreadable[0]


def _find(name: str) -> list[Path]:
    """Finds trials of a run, or at any depth below a folder; the base of a session is found with its head."""
    place = Path(name)
    if name != LATEST and place.is_dir():
        found = [
            file
            for file in sorted(place.rglob(TRIALS_FILE))
            if not (file.parent.name == BASE and (file.parents[1] / TRIALS_FILE).is_file())
        ]
        if found:
            return found
    return find_trials(name)


def _saved_with(file: Path) -> Iterator[_Saved]:
    """The trials of a file, and those of their interleaved base; without a run's folder, the file names the run."""
    trials, place = read_trials(file), file.absolute()
    is_base = trials.session and place.parent.name == BASE  # which has its own folder
    run = place.parents[2 if is_base else 1].name if place.name == TRIALS_FILE else place.stem
    kept = read_judgement(ScenarioFolder(file.parent)) if file.name == TRIALS_FILE else None
    yield _Saved(run, Version.BASE if is_base else Version.HEAD, trials, "" if kept is None else kept.verdict.value)
    base = file.parent / BASE / TRIALS_FILE
    if base.exists():
        yield _Saved(run, Version.BASE, read_trials(base))


history_app = make_group(invoke_without_command=True)
history_app.command(cls=Command)(pin)
history_app.command(cls=Command)(unpin)
history_app.command("import", cls=Command)(import_runs)


class Format(StrEnum):
    TERMINAL = "terminal"
    JSON = "json"
    CSV = "csv"


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
    _refuse_outputs(plot, site, metric, repository)
    last = last or (_SHOWN if site is None else _SHOWN_ON_SITE)
    wanted = {"metric": metric, "scenario": scenario, "host_class": host_class, "stack": stack}
    runs = 0 if since else max(1000, 4 * last)  # of each series, unless older ones are requested
    trends = read_trends(open_store(directory), window, runs=runs, **wanted)
    firsts = [_first_since(trend.commits, since) if since else 0 for trend in trends]
    shown = [(trend, trend.commits[first:][-last:]) for trend, first in zip(trends, firsts, strict=True)]
    if plot is not None:
        _write_plot(shown, plot)
    if site is not None:
        say(f"site: {write_site(site, shown, repository)}", err=True)
    if form is not Format.TERMINAL:
        emit(table.render_json(shown) if form is Format.JSON else table.render_csv(shown))
        return
    if not metric:
        emit_fitted(table.render_overview, trends)
        return
    for number, (trend, points) in enumerate(shown):
        if number:
            say("")
        emit_fitted(table.render_trend, trend, shown=points)


def _first_since(points: Collection[CommitPoint], since: str) -> int:
    for number, point in enumerate(points):
        if point.commit.startswith(since) or point.label.startswith(since):
            return number
    try:
        moment = datetime.fromisoformat(since)
    except ValueError:
        raise ConfigurationError(
            f"'{since}' is neither a date nor a commit of this history",
            remedy=suggest(since, {point.label for point in points}),
        ) from None
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
    return sum(point.runs[-1].started_at < moment for point in points)


def _refuse_outputs(plot: Path | None, site: Path | None, metric: str, repository: str) -> None:
    if plot is not None:
        if plot.suffix not in _IMAGES | _PAGES:
            raise ConfigurationError(
                f"{plot} is not a kind of plot", remedy="let its name end with .html, .svg or .png"
            )
        require_format(ReportFormat.HTML)
    if site is None:
        if repository:
            raise ConfigurationError("--repository is for the links of a site", remedy="name its folder: --site FOLDER")
        return
    if metric:
        raise ConfigurationError(
            "a site shows all metrics", remedy="leave out --metric, or plot the one: --plot FILE.html"
        )
    require_format(ReportFormat.HTML)
    require_writable_folder(site, otherwise=_ANOTHER)
    _read_manifest(site)


def _write_plot(shown: list[tuple[Trend, tuple[CommitPoint, ...]]], plot: Path) -> None:
    if plot.suffix in _IMAGES and len(shown) > 1:
        names = "; ".join(table.name_of(trend.series) for trend, _ in shown[:3])
        raise ConfigurationError(
            f"an image shows one series, and there are {len(shown)}: {names} …",
            remedy="choose one with --metric, --scenario, --host-class and --stack, or ask for an .html",
        )
    from pytest_ldos.show.report.figures import render_image  # noqa: PLC0415 - its library need not be installed
    from pytest_ldos.show.report.history_page import render_page  # noqa: PLC0415

    content = render_page(shown).encode() if plot.suffix in _PAGES else render_image(shown, plot.suffix[1:])
    write_atomically(plot, content)
    say(f"plot: {plot}", err=True)
