"""Trends as HTML pages and badges, and the present state of a history.

Reference: https://shields.io/badges/endpoint-badge.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from itertools import groupby
from typing import Final

import htpy as h
from htpy import Node

from pytest_ldos.base.text import Rendered, format_quantity, one_line
from pytest_ldos.judge.baseline.history import Version
from pytest_ldos.judge.baseline.key import BaselineKey
from pytest_ldos.judge.baseline.series import Run
from pytest_ldos.judge.baseline.trend import CommitPoint, Trend
from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.show.page import html
from pytest_ldos.show.page import model as page
from pytest_ldos.show.page.formats import to_json
from pytest_ldos.show.page.html import link, untrusted_text
from pytest_ldos.show.report import history
from pytest_ldos.show.report.chart import light
from pytest_ldos.show.report.figures import chart_of
from pytest_ldos.show.report.sentences import describe_place
from pytest_ldos.show.report.svg import draw
from pytest_ldos.show.report.words import badge_of

TITLE: Final = "History of performance"
_COLUMNS: Final = (
    *page.names("commit"),
    *page.words("date"),
    *page.numbers("trials", "location", "from", "to", "step", "interval"),
    page.Column("marks", page.Kind.PROSE),
    page.Column("change", page.Kind.PROSE),
)


def render_page(shown: history.Shown) -> Rendered:
    return html.render(
        page.Page(title=TITLE, blocks=tuple(show_trend(trend, points, history.Origins()) for trend, points in shown))
    )


def show_trend(
    trend: Trend, points: Sequence[CommitPoint], origins: history.Origins, *, anchor: str = ""
) -> page.Section:
    name = history.describe(trend.series)
    chart = page.Drawing(lambda: draw(chart_of(trend, points)))
    rows = tuple(_row(trend, point, origins) for point in points)
    table = page.Table(title=f"Commits of {name}", columns=_COLUMNS, rows=rows).without_empty()
    figure = page.Figure(title=trend.series.metric, drawings=(chart,), table=table)
    return page.Section(name, (figure, page.Bullets(tuple(history.describe_anchors(trend)))), anchor=anchor)


def _row(trend: Trend, point: CommitPoint, origins: history.Origins) -> tuple[page.Cell, ...]:
    subject, found = origins.subject(point.commit), origins.pull_request(point)
    numbers = (point.location, point.low, point.high)
    return (
        link_commit(point.commit, point.label, origins),
        f"{point.runs[0].started_at:%Y-%m-%d}",
        str(point.count),
        *(format_quantity(each, trend.series.unit) if math.isfinite(each) else page.ABSENT for each in numbers),
        history.show_change(trend, point.step),
        history.describe_interval(point.step),
        ", ".join(history.describe_marks(trend, point)),
        page.Drawing(lambda: [h.a(href=found.url)[found.title], " ", untrusted_text(subject)]) if found else subject,
    )


def link_commit(commit: str, label: str, origins: history.Origins) -> page.Cell:
    url = origins.commit_url(commit)
    return page.Drawing(lambda: link(url, label)) if url else label


LABEL: Final = "ldos"
_COLOURS: Final[Mapping[page.Tone, tuple[str, str]]] = {
    page.Tone.GOOD: ("brightgreen", "good"),
    page.Tone.BAD: ("red", "bad"),
    page.Tone.DOUBT: ("yellow", "doubt"),
}
"""Colours of shields.io and of our pages."""

_PLAIN: Final = ("lightgrey", "muted")
_LETTER: Final = 6.6
_PADDING: Final = 6
_HEIGHT: Final = 20


def render_endpoint(badge: page.Badge) -> Rendered:
    colour, _ = _COLOURS.get(badge.tone, _PLAIN)
    return to_json({"schemaVersion": 1, "label": LABEL, "message": badge.text, "color": colour})


def render_badge(badge: page.Badge) -> Rendered:
    _, colour = _COLOURS.get(badge.tone, _PLAIN)
    left, right = _width(LABEL), _width(badge.text)
    size = {"xmlns": "http://www.w3.org/2000/svg", "width": str(left + right), "height": str(_HEIGHT)}
    title = f"{LABEL}: {badge.text}"
    drawn = h.svg(size, role="img", aria_label=title, font_family="Verdana, DejaVu Sans, sans-serif", font_size="11")[
        h.title[title],
        _part(0, left, LABEL, light()["text"]),
        _part(left, right, badge.text, light()[colour]),
    ]
    return Rendered(f"{one_line(str(drawn))}\n")


def _width(text: str) -> int:
    return round(_LETTER * len(text)) + 2 * _PADDING


def _part(x: int, width: int, text: str, colour: str) -> Node:
    inner = {"x": str(x + _PADDING), "y": "14", "textLength": str(width - 2 * _PADDING), "fill": light()["page"]}
    return [h.rect(x=str(x), width=str(width), height=str(_HEIGHT), fill=colour), h.text(inner)[text]]


UNKNOWN: Final = page.Badge("unknown")  # badge of a whole in which something was not judged
_SEVERITY: Final = (page.Tone.GOOD, page.Tone.PLAIN, page.Tone.DOUBT, page.Tone.BAD)


@dataclass(frozen=True)
class State:
    """The latest state of a scenario for one stack and host class; no verdict if it was compared with nothing."""

    key: BaselineKey
    last: Run
    verdict: Verdict | None
    creeping: tuple[str, ...]
    runs: int

    @property
    def badge(self) -> page.Badge:
        """The badge of the verdict, which is never good if a metric creeps."""
        shown = badge_of(self.verdict)
        is_doubtful = self.creeping and shown.tone is page.Tone.GOOD
        return page.Badge(f"{shown.text}, creep", page.Tone.DOUBT) if is_doubtful else shown


def states_of(trends: Sequence[Trend]) -> list[State]:
    ordered = sorted(trends, key=lambda trend: trend.series.key)
    return [_state(key, list(some)) for key, some in groupby(ordered, key=lambda trend: trend.series.key)]


def overall(states: Iterable[State]) -> page.Badge:
    """The worst badge; `UNKNOWN` is worse than a good badge."""
    badges = [UNKNOWN if state.verdict is None else state.badge for state in states]
    return max(badges, key=lambda badge: _SEVERITY.index(badge.tone), default=UNKNOWN)


def _state(key: BaselineKey, trends: Sequence[Trend]) -> State:
    runs = {run.trials: run for trend in trends for run in trend.series.runs}
    heads = [run for run in runs.values() if run.version == Version.HEAD.value]
    last = max(heads or runs.values(), key=lambda run: (run.started_at, run.trials))
    judged = last.verdict if heads else ""
    return State(
        key=key,
        last=last,
        verdict=Verdict(judged) if judged in set(Verdict) else None,
        creeping=tuple(dict.fromkeys(trend.series.metric for trend in trends if trend.commits[-1].creeps)),
        runs=len(runs),
    )


INDEX: Final = "index.html"
_MADE: Final = "pytest-ldos"
_NAME: Final = 60
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9]+")
_CREEPING: Final = page.Column("creeping", page.Kind.PROSE)


def render_site(shown: history.Shown, origins: history.Origins) -> dict[str, Rendered]:
    """The content of each file by name, a function of the history alone."""
    states = states_of([trend for trend, _ in shown])
    badge = overall(states)
    return {
        INDEX: html.render(_index(states, origins)),
        "badge.svg": render_badge(badge),
        "badge.json": render_endpoint(badge),
        **{file_of(state.key): html.render(_scenario(state, shown, origins)) for state in states},
    }


def file_of(key: BaselineKey) -> str:
    """The file name of a scenario's page, safe and unique for any name."""
    digest = hashlib.sha256("\0".join(astuple(key)).encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{_UNSAFE.sub('-', key.scenario)[:_NAME].strip('-') or 'scenario'}-{digest}.html"


def _index(states: Sequence[State], origins: history.Origins) -> page.Page:
    places = groupby(states, key=lambda state: state.key.place)
    files = [link(name, name) for name in ("badge.svg", "badge.json")]
    return page.Page(
        title=TITLE,
        badge=overall(states),
        blocks=(
            *(page.Section(describe_place(place), (_table_of(some, origins),)) for place, some in places),
            page.Section("Badge", (page.Drawing(lambda: h.p[files[0], ", and ", files[1], " for shields.io"]),)),
        ),
        made=_MADE,
    )


def _table_of(states: Iterable[State], origins: history.Origins) -> page.Table:
    columns = (*page.names("scenario"), *page.words("state", "last commit", "date"), *page.numbers("runs"), _CREEPING)
    return page.Table(columns=columns, rows=tuple(_scenario_row(state, origins) for state in states)).without_empty()


def _scenario_row(state: State, origins: history.Origins) -> tuple[page.Cell, ...]:
    last = state.last
    return (
        page.Drawing(lambda: link(file_of(state.key), state.key.scenario)),
        state.badge,
        link_commit(last.commit, last.commit or last.name, origins),
        f"{last.started_at:%Y-%m-%d}",
        str(state.runs),
        ", ".join(state.creeping),
    )


def _scenario(state: State, shown: history.Shown, origins: history.Origins) -> page.Page:
    ours = ((trend, points) for trend, points in shown if trend.series.key == state.key)
    own = [(f"series-{number}", trend, points) for number, (trend, points) in enumerate(ours, 1)]
    return page.Page(
        title=state.key.scenario,
        badge=state.badge,
        setting=(describe_place(state.key),),
        contents=page.Table(
            title="Metrics now",
            columns=history.OVERVIEW[1:],
            rows=tuple(_metric(anchor, history.overview_row(trend)) for anchor, trend, _ in own),
        ).without_empty(),
        blocks=(
            page.Drawing(lambda: h.p[link(INDEX, "all scenarios")]),
            *(show_trend(trend, points, origins, anchor=anchor) for anchor, trend, points in own),
        ),
        made=_MADE,
    )


def _metric(anchor: str, row: tuple[page.Cell, ...]) -> tuple[page.Cell, ...]:
    _, metric, *others = row
    return (page.Drawing(lambda: link(f"#{anchor}", str(metric))), *others)
