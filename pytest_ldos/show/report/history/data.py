"""Trends for other programs: JSON and CSV."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from pytest_ldos.base.text import Rendered
from pytest_ldos.judge.baseline.history.commits import CommitPoint
from pytest_ldos.judge.baseline.history.creep import PIN, ROLLING, START
from pytest_ldos.judge.baseline.history.levels import Change
from pytest_ldos.judge.baseline.history.trend import Trend
from pytest_ldos.judge.baseline.key import KEY_COLUMNS
from pytest_ldos.show.page.data_text import finite, to_csv, to_json

KIND: Final = "pytest-ldos history trends"
SCHEMA_VERSION: Final = 2

Shown = Sequence[tuple[Trend, Sequence[CommitPoint]]]
"""Trends, each with the commits of it that are asked for."""

_COLUMNS: Final = (
    *KEY_COLUMNS, "metric", "unit", "commit", "branch", "first_run_at", "runs", "trials", "failed",
    "verdicts", "median", "location", "low", "high", "step", "step_low", "step_high", "from_pin", "from_pin_low",
    "from_pin_high", "from_start", "from_start_low", "from_start_high", "from_rolling", "from_rolling_low",
    "from_rolling_high", "change_point", "creep_since_pin", "creep_since_start", "creep_since_rolling",
)  # fmt: skip


def render_json(shown: Shown) -> Rendered:
    """One object a series; changes are relative, and what is infinite or unknown is null."""
    document = {"kind": KIND, "schema": SCHEMA_VERSION, "series": [_series(trend, points) for trend, points in shown]}
    return to_json(document)


def render_csv(shown: Shown) -> Rendered:
    """One row a commit and series."""
    rows = (_row(trend, point) for trend, points in shown for point in points)
    return to_csv(_COLUMNS, ([row[name] for name in _COLUMNS] for row in rows))


def _row(trend: Trend, point: CommitPoint) -> dict[str, Any]:
    commit = _commit(trend, point)
    return {
        **vars(trend.series.key),
        "metric": trend.series.metric,
        "unit": trend.series.unit,
        **commit,
        "verdicts": " ".join(commit["verdicts"]),
    }


def _series(trend: Trend, points: Sequence[CommitPoint]) -> dict[str, Any]:
    series = trend.series
    return {
        **vars(series.key),
        "metric": series.metric,
        "title": series.title,
        "unit": series.unit,
        "better": series.better.value,
        "source": series.source,
        "runs": len(series.runs),
        "pinned": trend.pinned or None,
        "anchor": finite(trend.anchor),
        "rolling_anchor": finite(trend.rolling),
        "rolling_window": trend.window,
        "floor": trend.floor,
        "run_deviation": finite(trend.run_deviation),
        "correlation": trend.correlation,
        "notes": list(trend.notes),
        "commits": [_commit(trend, point) for point in points],
    }


def _commit(trend: Trend, point: CommitPoint) -> dict[str, Any]:
    """A commit's numbers; either those since the pinned commit or those since the first runs are null."""
    return {
        "commit": point.label,
        "branch": point.runs[0].branch,
        "first_run_at": point.runs[0].started_at.isoformat(),
        "runs": len(point.runs),
        "trials": point.count,
        "failed": point.failed,
        "verdicts": [run.verdict for run in point.runs],
        "median": finite(point.median),
        "location": finite(point.location),
        "low": finite(point.low),
        "high": finite(point.high),
        **dict(_bounds("step", point.step)),
        **{name: value for each in (PIN, START) for name, value in _bounds(f"from_{each}", _since(trend, point, each))},
        **dict(_bounds("from_rolling", point.from_rolling)),
        "change_point": bool(point.change_point),
        **{f"creep_since_{each}": each in point.creeps for each in (PIN, START, ROLLING)},
    }


def _since(trend: Trend, point: CommitPoint, anchor: str) -> Change | None:
    return point.from_anchor if trend.anchor_name == anchor else None


def _bounds(name: str, change: Change | None) -> Iterator[tuple[str, float | None]]:
    yield name, None if change is None else finite(change.effect)
    yield f"{name}_low", None if change is None else finite(change.low)
    yield f"{name}_high", None if change is None else finite(change.high)
