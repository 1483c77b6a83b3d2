"""A history as a folder of pages that link each other: one for each scenario in one place, and one of all."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple
from itertools import groupby
from typing import Final

import htpy as h

from pytest_ldos.base.text import Rendered
from pytest_ldos.judge.baseline.history.commits import CommitPoint
from pytest_ldos.judge.baseline.history.trend import Trend
from pytest_ldos.judge.baseline.key import BaselineKey
from pytest_ldos.show.page import html
from pytest_ldos.show.page.html_parts import said
from pytest_ldos.show.page.model import Cell, Column, Drawing, Kind, Page, Section, Table
from pytest_ldos.show.report.history.badge import render_badge, render_endpoint
from pytest_ldos.show.report.history.data import Shown
from pytest_ldos.show.report.history.origins import Origins
from pytest_ldos.show.report.history.page import TITLE, link_commit, show_trend
from pytest_ldos.show.report.history.state import State, overall, states_of
from pytest_ldos.show.report.history.table import OVERVIEW, overview_row
from pytest_ldos.show.report.keys import describe_place

INDEX: Final = "index.html"
_MADE: Final = "pytest-ldos"
_NAME: Final = 60
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9]+")
_STATES: Final = (
    Column("scenario", Kind.NAME),
    Column("state", Kind.WORD),
    Column("last commit", Kind.WORD),
    Column("date", Kind.WORD),
    Column("runs"),
    Column("creeping", Kind.PROSE),
)


def render_site(shown: Shown, origins: Origins) -> dict[str, Rendered]:
    """The content of each file, by its name; the same for the same history."""
    states = states_of([trend for trend, _ in shown])
    badge = overall(states)
    return {
        INDEX: html.render(_index(states, origins)),
        "badge.svg": render_badge(badge),
        "badge.json": render_endpoint(badge),
        **{file_of(state.key): html.render(_scenario(state, shown, origins)) for state in states},
    }


def file_of(key: BaselineKey) -> str:
    """The name of a scenario's page: safe, and no other scenario's, whatever it is called."""
    digest = hashlib.sha256("\0".join(astuple(key)).encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{_UNSAFE.sub('-', key.scenario)[:_NAME].strip('-') or 'scenario'}-{digest}.html"


def _index(states: Sequence[State], origins: Origins) -> Page:
    places = groupby(states, key=lambda state: state.key.place)
    return Page(
        title=TITLE,
        badge=overall(states),
        blocks=(
            *(Section(describe_place(place), (_states(some, origins),)) for place, some in places),
            Section("Badge", (Drawing(_badges),)),
        ),
        made=_MADE,
    )


def _badges() -> h.Node:
    return h.p[_link("badge.svg", "badge.svg"), ", and ", _link("badge.json", "badge.json"), " for shields.io"]


def _states(states: Iterable[State], origins: Origins) -> Table:
    return Table(columns=_STATES, rows=tuple(_row(state, origins) for state in states)).without_empty()


def _row(state: State, origins: Origins) -> tuple[Cell, ...]:
    last = state.last
    return (
        Drawing(lambda: _link(file_of(state.key), state.key.scenario)),
        state.badge,
        link_commit(last.commit, last.commit or last.name, origins),
        f"{last.started_at:%Y-%m-%d}",
        str(state.runs),
        ", ".join(state.creeping),
    )


def _scenario(state: State, shown: Shown, origins: Origins) -> Page:
    own = [(f"series-{number}", *each) for number, each in enumerate(_of(state.key, shown), 1)]
    return Page(
        title=state.key.scenario,
        badge=state.badge,
        setting=(describe_place(state.key),),
        contents=Table(
            title="Metrics now",
            columns=OVERVIEW[1:],
            rows=tuple(_metric(anchor, overview_row(trend)) for anchor, trend, _ in own),
        ).without_empty(),
        blocks=(
            Drawing(lambda: h.p[_link(INDEX, "all scenarios")]),
            *(show_trend(trend, points, origins, anchor=anchor) for anchor, trend, points in own),
        ),
        made=_MADE,
    )


def _of(key: BaselineKey, shown: Shown) -> Iterator[tuple[Trend, Sequence[CommitPoint]]]:
    return ((trend, points) for trend, points in shown if trend.series.key == key)


def _metric(anchor: str, row: tuple[Cell, ...]) -> tuple[Cell, ...]:
    """A row of the overview without its scenario, whose metric leads to its section."""
    _, metric, *others = row
    return (Drawing(lambda: _link(f"#{anchor}", str(metric))), *others)


def _link(address: str, text: str) -> h.Node:
    return h.a(href=address)[said(text)]
