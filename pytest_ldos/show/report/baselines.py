"""Baselines that are stored, for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_ldos.base.errors import RecordUnreadable
from pytest_ldos.base.text import Rendered
from pytest_ldos.judge.baseline.store import StoredBaseline
from pytest_ldos.measure.trial.artifacts import read_trials
from pytest_ldos.show.report.console import Line, line, print_to_text
from pytest_ldos.show.report.tables import INDENT, column, tabulate

_COLUMNS = (
    column("scenario", is_name=True),
    column("where", is_text=True),
    column("trials"),
    column("recorded", is_text=True),
    column("commit", is_text=True),
    column("machine", is_name=True),
)


def render_baselines(stored: Sequence[StoredBaseline], *, width: int, color: bool) -> Rendered:
    """A table for each stack and host class."""
    lines: list[Line] = []
    for stack, host_class in dict.fromkeys((each.key.stack, each.key.host_class) for each in stored):
        own = [each for each in stored if (each.key.stack, each.key.host_class) == (stack, host_class)]
        lines.append(line(f"{stack}, host class {host_class}"))
        lines += tabulate(_COLUMNS, [_row(each) for each in own], width=width, indent=INDENT)
    return print_to_text(lines, color=color)


def _row(baseline: StoredBaseline) -> tuple[str, ...]:
    where = "local" if baseline.is_local else "repository"
    name = f"{baseline.key.scenario} (pinned)" if baseline.is_pinned else baseline.key.scenario
    try:
        trials = read_trials(baseline.file)
    except RecordUnreadable:
        return name, where, "unreadable", "", "", ""
    recorded = (str(len(trials.trials)), trials.started_at[:10], trials.commit[:12], trials.fingerprint.hostname)
    return name, where, *recorded
