"""Parses files, folders, shares and times on the command line."""

from __future__ import annotations

import math
import os
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.judge.baseline.store import BaselineStores
from pytest_ldos.measure.trial.artifacts import RUNS, TRIALS_FILE, read_trials
from pytest_ldos.measure.trial.record import TrialSet
from pytest_ldos.scenario.options import OPTIONS
from pytest_ldos.scenario.project import find_settings_file
from pytest_ldos.scenario.settings import Sources, read_environment, read_sources

ANOTHER_OUTPUT = "name another path with --output"
LATEST = "latest"


def sources_here() -> Sources:
    """The settings of the working directory's project, whose folder is "." if it is the working directory."""
    found = find_settings_file(Path.cwd())
    if found is not None and found.parent == Path.cwd():
        found = Path(found.name)
    return read_sources(found, root=Path(), here=Path(), command_line={}, environment=read_environment(os.environ))


def stores_here() -> BaselineStores:
    """The baselines of the working directory's project."""
    return BaselineStores.of(sources_here())


def load_run(name: str) -> list[TrialSet]:
    """The trial sets of a run folder, a scenario folder, a file of trials, or ``latest``.

    Raises:
        ConfigurationError: there are none.
        RecordUnreadable: a file is damaged.
    """
    return [read_trials(file) for file in find_trials(name)]


def find_trials(name: str) -> list[Path]:
    """The files of trials of a run folder, a scenario folder, a file of trials, or ``latest``.

    Raises:
        ConfigurationError: there are none.
    """
    path = _latest() if name == LATEST else Path(name)
    if path.is_file():
        return [path]
    found = [own] if (own := path / TRIALS_FILE).is_file() else sorted(path.glob(f"*/{TRIALS_FILE}"))
    if not found:
        raise ConfigurationError(
            f"{path} holds no trials", remedy=f"name a run folder (.ldos/runs/…), a file of trials, or '{LATEST}'"
        )
    return found


def _latest() -> Path:
    output = sources_here().folder("output")
    runs = sorted({file.parents[1] for file in (output / RUNS).glob(f"*/*/{TRIALS_FILE}")})
    if not runs:
        raise ConfigurationError(f"there are no runs in {output / RUNS}", remedy="make one: pytest -m baseline")
    return runs[-1]


def is_strict() -> bool:
    """True if an inconclusive comparison is an error: as configured, or by default on CI."""
    asked = sources_here().value(OPTIONS["strict"].name)
    return bool(os.environ.get("CI")) if asked is None else bool(asked)


def terminal() -> tuple[int, bool]:
    """Width of the terminal, and True if it supports colours."""
    is_terminal = sys.stdout.isatty()
    width = os.get_terminal_size().columns if is_terminal else int(os.environ.get("COLUMNS", "100"))
    return width, is_terminal and "NO_COLOR" not in os.environ


def metric_names(runs: Iterable[TrialSet]) -> set[str]:
    """Names of all metrics in the runs, including a user's own."""
    return {metric.name for trials in runs for metric in trials.metrics}


def by_scenario(runs: Sequence[TrialSet]) -> dict[str, TrialSet]:
    """The last trial set of each scenario."""
    return {trials.scenario: trials for trials in runs}


_SECONDS: Final = {"s": 1.0, "min": 60.0, "h": 3600.0}


def parse_share(text: str, *, what: str) -> float:
    """``15%`` or ``0.15``.

    Raises:
        ConfigurationError: it is not a positive number.
    """
    plain = text.strip()
    try:
        value = float(plain.removesuffix("%").strip()) / (100 if plain.endswith("%") else 1)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        raise ConfigurationError(f"{what} is {text!r}", remedy="write it as 15% or 0.15")
    return value


def parse_duration_s(text: str, *, what: str) -> float:
    """``90s``, ``10min`` or ``1.5h``; a number alone is seconds.

    Raises:
        ConfigurationError: it is not a duration.
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(s|min|h)?\s*", text)
    if match is None:
        raise ConfigurationError(f"{what} is {text!r}", remedy="write it as 90s, 10min or 1h")
    return float(match[1]) * _SECONDS[match[2] or "s"]


def parse_confidence(text: str) -> float:
    """The value of ``--confidence``.

    Raises:
        ConfigurationError: it is not a share between 0.5 and 1.
    """
    confidence = parse_share(text, what="--confidence")
    if not 0.5 < confidence < 1:
        raise ConfigurationError(f"--confidence is {text!r}", remedy="it must be between 0.5 and 1, as 0.9 or 90%")
    return confidence
