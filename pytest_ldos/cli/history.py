"""``ldos history``; its commands ``pin | unpin | import`` are beside."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

import typer

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.base.nearest import suggest
from pytest_ldos.base.writable import write_atomically
from pytest_ldos.cli.help import Command, Group
from pytest_ldos.cli.history_anchors import pin, unpin
from pytest_ldos.cli.history_import import import_runs
from pytest_ldos.cli.history_selection import Directory, HostClass, Scenario, Stack, Wanted, open_store, read_trends
from pytest_ldos.cli.history_site import require_site, write_site
from pytest_ldos.cli.paths import terminal
from pytest_ldos.cli.say import emit, say
from pytest_ldos.judge.baseline.history.commits import CommitPoint
from pytest_ldos.judge.baseline.history.trend import ROLLING_WINDOW, Trend
from pytest_ldos.show.page.formats import Format as ReportFormat
from pytest_ldos.show.page.formats import require_format
from pytest_ldos.show.report.history.data import render_csv, render_json
from pytest_ldos.show.report.history.table import name_of, render_overview, render_trend

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
"""Runs of each series, unless older ones are asked for."""

_SHOWN: Final = 40
_SHOWN_ON_SITE: Final = 100

_IMAGES = frozenset({".svg", ".png"})
_PAGES = frozenset({".html", ".htm"})


@history_app.callback()
def history(  # noqa: PLR0913, PLR0917 - one argument an option
    context: typer.Context,
    metric: Annotated[str, typer.Option(help="The commits of this metric, e.g. T4; without, an overview.")] = "",
    scenario: Scenario = "",
    host_class: HostClass = "",
    stack: Stack = "",
    since: Annotated[str, typer.Option(help="Show commits from this one or this date on.")] = "",
    last: Annotated[int | None, typer.Option(min=1, help="Show the last N commits; 40, on a site 100.")] = None,
    window: Annotated[int, typer.Option(min=1, help="Accepted runs that make the rolling anchor.")] = ROLLING_WINDOW,
    form: Annotated[Format, typer.Option("--format", help="Form of the result.")] = Format.TERMINAL,
    plot: Annotated[Path | None, typer.Option(help="Also plot it to this file: .html, .svg or .png.")] = None,
    site: Annotated[Path | None, typer.Option(help="Also write pages and a badge to this folder.")] = None,
    repository: Annotated[
        str, typer.Option(help="Address that a site's commits link to, https://HOST/OWNER/NAME.")
    ] = "",
    directory: Directory = None,
) -> None:
    """Show metrics over commits: steps, creep, changes of level."""
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
    """The commits to show; what they are measured by is taken from all."""
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
        raise ConfigurationError(f"{plot} is no kind of plot", remedy="let its name end with .html, .svg or .png")
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
