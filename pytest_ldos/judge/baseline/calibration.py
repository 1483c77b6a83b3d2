"""Calibrated noise of a host, for each metric of a scenario, as values and as JSON.

The schema has a version; a file of another version is refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from pytest_ldos.base.errors import RecordUnreadable
from pytest_ldos.base.plain import left_by_git, read_plain
from pytest_ldos.host.fingerprint import Fingerprint

ENOUGH_RUNS: Final = 5
"""Fewest runs at different times from which the variation between runs is measured rather than assumed."""


@dataclass(frozen=True, kw_only=True)
class MetricNoise:
    """Variation of one metric between equal versions.

    Standard deviations of logarithms, which for small values are relative deviations.

    Attributes:
        trial_sd: between trials of one stack start, after covariates.
        start_sd: between starts of one session, beyond what the variation of their trials explains.
        start_df: degrees of freedom of `start_sd`.
        run_sd: between runs at different times, beyond what the variation of their trials explains.
        run_df: degrees of freedom of what runs add to `start_sd`; 0 if unknown, as from one run.
        floor: relative effect below which nothing is reported on this host.
    """

    trial_sd: float
    start_sd: float
    start_df: float
    run_sd: float
    run_df: float
    floor: float


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """Noise of equal versions, as measured on one host.

    Attributes:
        made_at: ISO 8601, UTC.
        starts, trials: numbers of stack starts and trials it is based on.
        runs: number of runs, at different times, that the starts belong to.
    """

    scenario: str
    stack_kind: str
    fingerprint: Fingerprint
    made_at: str
    commit: str
    starts: int
    trials: int
    metrics: Mapping[str, MetricNoise]
    runs: int = 1


KIND: Final = "pytest-ldos calibration"
SCHEMA_VERSION: Final = 1
_REMEDY: Final = "delete it, or calibrate again: ldos calibrate"


def encode_calibration(calibration: Calibration) -> str:
    """JSON text of a calibration; numbers keep their full precision."""
    document = {"kind": KIND, "schema": SCHEMA_VERSION, **asdict(calibration)}
    return json.dumps(document, indent=1, allow_nan=False) + "\n"


def decode_calibration(text: str, path: Path) -> Calibration:
    """Decodes a calibration from JSON text; `path` is named in errors.

    Raises:
        RecordUnreadable: not JSON, not a calibration, of another schema version, or damaged.
    """
    try:
        document = json.loads(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError) as error:
        if (left := left_by_git(text)) is not None:
            raise RecordUnreadable(f"{path} {left[0]}", remedy=left[1]) from None
        raise RecordUnreadable(f"{path} is not JSON: {error}", remedy=_REMEDY) from None
    if not isinstance(document, dict) or document.get("kind") != KIND:
        raise RecordUnreadable(f"{path} is not a calibration of pytest-ldos", remedy=_REMEDY)
    if document.get("schema") != SCHEMA_VERSION:
        raise RecordUnreadable(
            f"{path} has schema version {document.get('schema')}, this is pytest-ldos with version {SCHEMA_VERSION}",
            remedy="use the pytest-ldos that wrote it, or calibrate again: ldos calibrate",
        )
    try:
        return _to_calibration(document)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        raise RecordUnreadable(f"{path} is damaged: {type(error).__name__}: {error}", remedy=_REMEDY) from None


def _to_calibration(document: Mapping[str, Any]) -> Calibration:
    values = {name: value for name, value in document.items() if name not in ("kind", "schema")}
    calibration: Calibration = read_plain(Calibration, values, "the calibration")
    for name in {"starts", "trials", "runs"} & values.keys():
        if values[name] < 1:
            raise ValueError(f"{name} is {values[name]!r}")
    for noise in calibration.metrics.values():
        _require_deviations(noise)
    return calibration if "runs" in values else _of_one_run(calibration)


def _of_one_run(calibration: Calibration) -> Calibration:
    """A calibration that does not state its runs, treated as one run: its groups may be halves of a single run."""
    metrics = {name: replace(noise, run_df=0.0) for name, noise in calibration.metrics.items()}
    return replace(calibration, metrics=metrics)


def _require_deviations(noise: MetricNoise) -> None:
    for name, number in vars(noise).items():
        if number < 0:
            raise ValueError(f"{name} is {number}")
