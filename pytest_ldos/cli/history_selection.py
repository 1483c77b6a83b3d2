"""Selection of a history and of series in it, and the site made of them."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Final

import polars as pl
import typer

from pytest_ldos.base.errors import ConfigurationError, refuse_unknown
from pytest_ldos.base.text import Rendered
from pytest_ldos.base.writable import require_writable_folder, write_atomically, writing
from pytest_ldos.cli.paths import sources_here, stores_here
from pytest_ldos.cli.say import say
from pytest_ldos.host.checkout import read_subjects
from pytest_ldos.judge.baseline.history.series import COLUMNS, MetricSeries, build_series, latest_runs
from pytest_ldos.judge.baseline.history.store import HistoryStore, Pin, read_pin
from pytest_ldos.judge.baseline.history.trend import Trend, build_trend
from pytest_ldos.judge.baseline.key import KEY_COLUMNS, BaselineKey
from pytest_ldos.judge.baseline.lookup import Calibrated, find_calibration_of
from pytest_ldos.measure.metrics.catalogue import METRICS
from pytest_ldos.measure.metrics.model import USUAL_FLOOR
from pytest_ldos.show.page.formats import Format, require_format, to_json
from pytest_ldos.show.report.history.table import Origins, Shown

Directory = Annotated[Path | None, typer.Option("--dir", help="The history; by default the one that is configured.")]
Scenario = Annotated[str, typer.Option(help="Only this scenario.")]
HostClass = Annotated[str, typer.Option(help="Only this host class.")]
Stack = Annotated[str, typer.Option(help="Only this stack.")]


@dataclass(frozen=True)
class Wanted:
    """Selection of series; empty texts select all."""

    scenario: str
    host_class: str
    stack: str
    metric: str = ""

    def choose(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Rows of these series.

        Raises:
            ConfigurationError: there are none; names the nearest match.
        """
        for column, value in vars(self).items():
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


def read_trends(store: HistoryStore, wanted: Wanted, window: int, *, runs: int) -> list[Trend]:
    """Trends of the last `runs` runs of each series (0 for all), and of pinned runs."""
    read = store.read(metrics=[wanted.metric] if wanted.metric else (), columns=COLUMNS)
    for damaged in read.damaged:
        say(f"ldos: {damaged}", err=True)
    rows = read.table
    if rows.is_empty() and wanted.metric:  # all metrics are needed to name the nearest one
        rows = store.read(columns=COLUMNS).table
    rows = wanted.choose(rows)
    pins = _read_pins(store, rows)
    latest = latest_runs(rows, runs, keep=[_key(pin) for pin in pins.values()]) if runs else rows
    notes = (
        () if len(latest) == len(rows) else ((f"only the last {runs} runs were considered; --since shows older ones"),)
    )
    series = build_series(latest)
    if not series:
        raise ConfigurationError("no run has a value there", remedy="see `ldos history` for what has")
    trends = [
        build_trend(
            each,
            pin=pins.get(each.key),
            window=window,
            floor=_floor(each),
        )
        for each in series
    ]
    return [replace(trend, notes=(*trend.notes, *notes)) for trend in trends]


def _floor(series: MetricSeries) -> float:
    """The configured floors, or those of this host's calibration."""
    configured = sources_here().toml.gate.get("floors", {}).get(series.metric)
    if configured is not None:
        return float(configured)
    known = find_calibration_of(stores_here(), series.key)
    noise = known.noise.get(series.metric) if isinstance(known, Calibrated) else None
    if noise is not None:
        return noise.floor
    return METRICS[series.metric].usual_floor if series.metric in METRICS else USUAL_FLOOR


def _read_pins(store: HistoryStore, rows: pl.DataFrame) -> dict[BaselineKey, Pin]:
    keys = map(BaselineKey.of_row, rows.select(KEY_COLUMNS).unique().to_dicts())
    pins = {key: read_pin(store.folder(key)) for key in keys}
    return {key: pin for key, pin in pins.items() if pin is not None}


def _key(pin: Pin) -> str:
    return pin.commit or pin.trials


def describe_runs(store: HistoryStore, wanted: Wanted) -> pl.DataFrame:
    """Commit, run, version and series of each set of trials."""
    columns = ("run", "started_at", "version", "commit", *KEY_COLUMNS)
    rows = store.read(columns=columns).table.select("trials", *columns).unique()
    return wanted.choose(rows)


_MANIFEST: Final = "ldos-site.json"
_KIND: Final = "pytest-ldos history site"
_SCHEMA_VERSION: Final = 1
_OURS: Final = re.compile(r"[A-Za-z0-9-]+\.(?:html|svg|json)")
_ANOTHER: Final = "name another folder"


def require_site(folder: Path) -> None:
    """Refuses a folder in which a site cannot be written.

    Raises:
        NotWritten, ConfigurationError: it cannot be written, or it contains files of another site.
        Unavailable: a library is missing.
    """
    require_format(Format.HTML)
    require_writable_folder(folder, otherwise=_ANOTHER)
    _read_manifest(folder)


def write_site(folder: Path, shown: Shown, repository: str) -> Path:
    """Writes the site, and removes pages of an earlier one; returns its first page.

    Args:
        repository: address of the repository's pages; if empty, taken from GitHub's variables.

    Raises:
        NotWritten, ConfigurationError: see `require_site`.
    """
    from pytest_ldos.show.report.history.page import INDEX, render_site  # noqa: PLC0415 - its library is optional

    files = render_site(shown, Origins(repository or _repository_here(), read_subjects(Path())))
    earlier = _read_manifest(folder)
    _refuse_foreign(folder, files, earlier)
    _write_manifest(folder, {*files, *earlier})
    for name, content in files.items():
        write_atomically(folder / name, content)
    for name in earlier - files.keys():
        with writing(folder / name):
            (folder / name).unlink(missing_ok=True)
    _write_manifest(folder, {*files})
    return folder / INDEX


def _repository_here() -> str:
    server, name = (os.environ.get(f"GITHUB_{each}", "") for each in ("SERVER_URL", "REPOSITORY"))
    return f"{server}/{name}" if server and name else ""


def _refuse_foreign(folder: Path, files: Mapping[str, Rendered], earlier: set[str]) -> None:
    foreign = sorted(name for name in files if name not in earlier and os.path.lexists(folder / name))
    if foreign:
        raise ConfigurationError(f"{folder / foreign[0]} exists and is not one of our pages", remedy=_ANOTHER)


def _write_manifest(folder: Path, names: set[str]) -> None:
    document = {"kind": _KIND, "schema": _SCHEMA_VERSION, "files": sorted(names)}
    write_atomically(folder / _MANIFEST, to_json(document))


def _read_manifest(folder: Path) -> set[str]:
    """Our files in a folder; none if there is no site yet."""
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
