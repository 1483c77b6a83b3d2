"""Baselines that are stored, for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_ldos.base.errors import RecordUnreadable
from pytest_ldos.base.text import Rendered
from pytest_ldos.judge.baseline.store import StoredBaseline
from pytest_ldos.measure.trial.artifacts import read_trials
from pytest_ldos.show.page.formats import Format, render
from pytest_ldos.show.page.model import Column, Kind, Page, Section, Table
from pytest_ldos.show.report.sentences import describe_place

_COLUMNS = (
    Column("scenario", Kind.NAME),
    Column("where", Kind.WORD),
    Column("trials"),
    Column("recorded", Kind.WORD),
    Column("commit", Kind.WORD),
    Column("machine", Kind.NAME),
)


def render_baselines(stored: Sequence[StoredBaseline], *, width: int, color: bool) -> Rendered:
    """A table for each stack and host class."""
    sections = []
    for place in dict.fromkeys(each.key.place for each in stored):
        own = [each for each in stored if each.key.place == place]
        table = Table(columns=_COLUMNS, rows=tuple(map(_row, own)))
        sections.append(Section(describe_place(place), (table,)))
    return render(Page(title="", blocks=tuple(sections)), Format.TERMINAL, width=width, color=color)


def _row(baseline: StoredBaseline) -> tuple[str, ...]:
    where = "local" if baseline.is_local else "repository"
    name = f"{baseline.key.scenario} (pinned)" if baseline.is_pinned else baseline.key.scenario
    try:
        trials = read_trials(baseline.file)
    except RecordUnreadable:
        return name, where, "unreadable", "", "", ""
    recorded = (str(len(trials.trials)), trials.started_at[:10], trials.commit[:12], trials.fingerprint.hostname)
    return name, where, *recorded
