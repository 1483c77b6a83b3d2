"""A calibration for a terminal, and for programs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import Any, Final

from pytest_ldos.base.text import Rendered
from pytest_ldos.base.units import counted
from pytest_ldos.campaign.calibrate import CalibrationResult, Suggestion
from pytest_ldos.campaign.promise import Planted, Promise, Share
from pytest_ldos.campaign.resample import Design
from pytest_ldos.show.report.console import Line, Words, line, print_to_text, wrapped
from pytest_ldos.show.report.data_text import to_json
from pytest_ldos.show.report.tables import plain_table

SCHEMA: Final = 1
_NARROWEST: Final = 80
_METRICS_A_TABLE: Final = 8
_HOW: Final = {
    Design.INTERLEAVED: "in turns with the base (--ldos-base)",
    Design.SEQUENTIAL: "beside a stored baseline",
}


def render_calibration(result: CalibrationResult, *, file: str, width: int, color: bool) -> Rendered:
    """What was learned, how the gate treats equal versions by it, and how many trials a change needs."""
    width = max(width, _NARROWEST)
    made = result.calibration
    draws = result.promises[0].alarms.draws
    measured = f": {counted(made.trials, 'trial')} of {counted(made.starts, 'start')} of one version"
    lines = [
        line(Words(made.scenario, "bold"), measured),
        line(),
        *_noise_table(result, width),
        line(),
        line(f"equal versions, judged by the gate ({counted(draws, 'pair')} drawn for each number)", style="bold"),
        *_alarm_table(result.promises, width),
        *(line(f"  {text}") for text in _describe_failures(result.promises)),
    ]
    for design, promises in groupby(result.promises, key=lambda each: each.design):
        lines += [line(), *_detectable_tables(f"smallest change that is reported, {design}", list(promises), width)]
    lines += [line(), line(f"trials of each version to see a change of {_percent(result.effect)}", style="bold")]
    lines += _suggestion_table(result, width)
    for suggestion in result.suggestions:
        lines += wrapped(_describe_suggestion(suggestion), width, indent=2)
    lines += [line()]
    for note in (*_provenance(result.promises), *result.notes):
        lines += wrapped(note, width, style="dim")
    lines += [line(f"stored: {file}")]
    return print_to_text(lines, color=color)


def _noise_table(result: CalibrationResult, width: int) -> list[Line]:
    rows = [
        (
            name,
            _percent(noise.trial_sd),
            _percent(noise.start_sd),
            _percent(noise.run_sd),
            f"{noise.run_df:.1f}",
            _percent(noise.floor),
        )
        for name, noise in result.calibration.metrics.items()
    ]
    titles = ("deviation between", "trials", "starts", "runs", "known by (df)", "floor")
    return plain_table(titles, rows, width=width)


def _alarm_table(promises: Sequence[Promise], width: int) -> list[Line]:
    designs = list(dict.fromkeys(each.design for each in promises))
    counts = list(dict.fromkeys(each.trials for each in promises))
    found = {(each.design, each.trials): each for each in promises}
    titles = ["trials of each", *(title for design in designs for title in (f"{design}: red", "undecided"))]
    rows = [
        (
            str(count),
            *(
                cell
                for design in designs
                for cell in (_share(found[design, count].alarms), _percent(found[design, count].undecided.value))
            ),
        )
        for count in counts
    ]
    return plain_table(titles, rows, width=width)


def _describe_failures(promises: Sequence[Promise]) -> list[str]:
    """How many alarms no metric raised."""
    failed = sum(each.by_failures.count for each in promises)
    alarms = sum(each.alarms.count for each in promises)
    return [f"{failed} of these {alarms} are red by failed trials alone, not by a metric"] if failed else []


def _detectable_tables(title: str, promises: Sequence[Promise], width: int) -> list[Line]:
    names = list(dict.fromkeys(name for each in promises for name in each.mde))
    lines: list[Line] = []
    for first in range(0, len(names), _METRICS_A_TABLE):
        chosen = names[first : first + _METRICS_A_TABLE]
        rows = [(_numbered(each), *(_percent(each.mde.get(name, math.inf)) for name in chosen)) for each in promises]
        lines += [line(title, style="bold"), *plain_table(("trials of each", *chosen), rows, width=width)]
    return lines


def _numbered(promise: Promise) -> str:
    return f"{promise.trials}{'*' if promise.modelled else ''}"


def _suggestion_table(result: CalibrationResult, width: int) -> list[Line]:
    """Of each metric: how many trials, and how often the change was found where it was planted."""
    planted = {(each.design, each.metric): each for each in result.planted}
    names = dict.fromkeys(name for each in result.suggestions for name in each.by_metric)
    titles = ["", *(title for each in result.suggestions for title in (each.design.value, "planted: found"))]
    rows = [
        (name, *(cell for each in result.suggestions for cell in _suggested(each, name, planted))) for name in names
    ]
    return plain_table(titles, rows, width=width)


def _suggested(suggestion: Suggestion, name: str, planted: Mapping[tuple[Design, str], Planted]) -> tuple[str, str]:
    trials = suggestion.by_metric.get(name)
    if trials is None:
        return "none tried", ""
    found = planted[suggestion.design, name].found
    return str(trials), f"{_percent(found.value)} ({100 * found.low:.0f} … {100 * found.high:.0f})"


def _describe_suggestion(suggestion: Suggestion) -> str:
    how = _HOW[suggestion.design]
    if suggestion.trials is None:
        return f"{how}: no number of trials that was tried is enough for any metric"
    decided = [name for name, trials in suggestion.by_metric.items() if trials is not None]
    blind = f"; not for {', '.join(suggestion.unreachable)}" if suggestion.unreachable else ""
    return f"{how}: {suggestion.trials} trials are enough for {', '.join(decided)}{blind}"


def _provenance(promises: Sequence[Promise]) -> list[str]:
    notes = []
    modelled = any(each.modelled for each in promises)
    if modelled:
        notes.append("* starts were given more trials than they had: others' trials, moved to their level")
    held_out = [each for each in promises if each.held_out >= 1]
    if held_out:
        counts = "; ".join(
            f"{design} {', '.join(str(each.trials) for each in those)}"
            for design, those in groupby(held_out, key=lambda each: each.design)
        )
        notes.append(f"judged by the noise of starts that are not in the pair: {counts}")
    if len(held_out) < len(promises):
        notes.append("the other numbers were proven on the starts they were learned from, and are as good as that")
    notes.append("pairs share these starts: no interval here speaks of starts and days that were not measured")
    return notes


def render_calibration_json(results: Sequence[tuple[CalibrationResult, str]]) -> Rendered:
    """The same as one JSON object; what is infinite is null."""
    scenarios = [_to_plain(*each) for each in results]
    document = {"schema": SCHEMA, "kind": "pytest-ldos calibration report", "scenarios": scenarios}
    return to_json(_finite(document), indent=2)


def _to_plain(result: CalibrationResult, file: str) -> dict[str, Any]:
    return {
        "scenario": result.calibration.scenario,
        "file": file,
        "calibration": asdict(result.calibration),
        "effect": result.effect,
        "promises": [
            {
                "design": each.design.value,
                "trials": each.trials,
                "false_alarms": share_to_plain(each.alarms),
                "by_failures": share_to_plain(each.by_failures),
                "undecided": share_to_plain(each.undecided),
                "detectable": dict(each.mde),
                "judged_by_other_starts": each.held_out,
                "modelled": each.modelled,
            }
            for each in result.promises
        ],
        "suggestions": [
            {"design": each.design.value, "trials": each.trials, "by_metric": dict(each.by_metric)}
            for each in result.suggestions
        ],
        "planted": [
            {
                "design": each.design.value,
                "metric": each.metric,
                "trials": each.trials,
                "effect": each.effect,
                "found": share_to_plain(each.found),
            }
            for each in result.planted
        ],
        "notes": list(result.notes),
    }


def share_to_plain(share: Share) -> dict[str, float]:
    return {"count": share.count, "of": share.draws, "share": share.value, "low": share.low, "high": share.high}


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _share(share: Share) -> str:
    return f"{share.count} (≤ {_percent(share.high)})"


def _percent(value: float) -> str:
    if not math.isfinite(value) or value > 99.99:
        return "–"
    digits = 2 if 0 < value < 0.00995 else 1 if value < 0.0995 else 0
    return f"{100 * value:.{digits}f} %"
