"""A calibration and a self-test, for a terminal and for programs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import Any, Final

from pytest_ldos.base.text import Rendered, counted, percent
from pytest_ldos.campaign.calibrate import CalibrationResult, Promise, Share, Suggestion
from pytest_ldos.campaign.detection import FAULTS, SUCCESS, Detection, Keeping, is_trustworthy
from pytest_ldos.campaign.noise import Design
from pytest_ldos.campaign.selftest import SelfTestResult
from pytest_ldos.show.page.formats import Format, finite, render, to_json
from pytest_ldos.show.page.model import ABSENT, Bullets, Page, Section, Table, Text, Tone, names, numbers, words

SCHEMA: Final = 1
_HOW: Final = {
    Design.INTERLEAVED: "interleaved with the base (--ldos-base)",
    Design.SEQUENTIAL: "against a stored baseline",
}


def render_calibration(result: CalibrationResult, *, file: str, width: int, color: bool) -> Rendered:
    """Estimated noise, verdicts of the gate on equal versions, and trials required to detect a change."""
    made = result.calibration
    draws = counted(result.promises[0].alarms.draws, "pair")
    by_design = groupby(result.promises, key=lambda each: each.design)
    alarms, failures = _alarm_table(result.promises), Bullets(tuple(_describe_failures(result.promises)))
    page = Page(
        title=f"{made.scenario}: {counted(made.trials, 'trial')} of {counted(made.starts, 'start')} of one version",
        blocks=(
            _noise_table(result),
            Section(f"equal versions, judged by the gate ({draws} drawn for each number)", (alarms, failures)),
            *(Section(f"MDE, {design}", (_mde_table(list(promises)),)) for design, promises in by_design),
            Section(
                f"trials of each version to detect a change of {_known_percent(result.effect)}",
                (_suggestion_table(result), Bullets(tuple(map(_describe_suggestion, result.suggestions)))),
            ),
            Section("notes", (Bullets((*_provenance(result.promises), *result.notes), Tone.QUIET),)),
            Text(f"stored: {file}", is_whole=True),
        ),
    )
    return render(page, Format.TERMINAL, width=width, color=color)


def _noise_table(result: CalibrationResult) -> Table:
    rows = []
    for name, each in result.calibration.metrics.items():
        deviations = map(_known_percent, (each.trial_sd, each.start_sd, each.run_sd))
        rows.append((name, *deviations, f"{each.run_df:.1f}", _known_percent(each.floor)))
    return _named("deviation between", ("trials", "starts", "runs", "degrees of freedom", "floor"), rows)


def _named(name: str, titles: Iterable[str], rows: Iterable[tuple[str, ...]]) -> Table:
    return Table(columns=(*names(name), *numbers(*titles)), rows=tuple(rows))


def _alarm_table(promises: Sequence[Promise]) -> Table:
    designs = list(dict.fromkeys(each.design for each in promises))
    found = {(each.design, each.trials): each for each in promises}
    rows = []
    for count in dict.fromkeys(each.trials for each in promises):
        row = [str(count)]
        for each in (found[design, count] for design in designs):
            row += (f"{each.alarms.count} (≤ {_known_percent(each.alarms.high)})", _known_percent(each.undecided.value))
        rows.append(tuple(row))
    return _named("trials of each", [title for design in designs for title in (f"{design}: red", "inconclusive")], rows)


def _describe_failures(promises: Sequence[Promise]) -> list[str]:
    failed = sum(each.by_failures.count for each in promises)
    alarms = sum(each.alarms.count for each in promises)
    return [f"{failed} of these {alarms} are red by failed trials alone, not by a metric"] if failed else []


def _mde_table(promises: Sequence[Promise]) -> Table:
    metrics = list(dict.fromkeys(name for each in promises for name in each.mde))
    counts = (f"{each.trials}{'*' if each.modelled else ''}" for each in promises)
    mdes = ([_known_percent(each.mde.get(name, math.inf)) for name in metrics] for each in promises)
    return _named("trials of each", metrics, ((count, *row) for count, row in zip(counts, mdes, strict=True)))


def _suggestion_table(result: CalibrationResult) -> Table:
    planted = {(each.design, each.metric): each.found for each in result.planted}
    rows = []
    for name in dict.fromkeys(name for each in result.suggestions for name in each.by_metric):
        row = [name]
        for each in result.suggestions:
            if (trials := each.by_metric.get(name)) is None:
                row += ("none tried", "")
                continue
            found = planted[each.design, name]
            row += (str(trials), f"{_known_percent(found.value)} ({100 * found.low:.0f} … {100 * found.high:.0f})")
        rows.append(tuple(row))
    return _named("", [title for each in result.suggestions for title in (each.design.value, "planted: found")], rows)


def _describe_suggestion(suggestion: Suggestion) -> str:
    how = _HOW[suggestion.design]
    if suggestion.trials is None:
        return f"{how}: no tested number of trials is enough for any metric"
    decided = [name for name, trials in suggestion.by_metric.items() if trials is not None]
    blind = f"; not for {', '.join(suggestion.unreachable)}" if suggestion.unreachable else ""
    return f"{how}: {suggestion.trials} trials are enough for {', '.join(decided)}{blind}"


def _provenance(promises: Sequence[Promise]) -> list[str]:
    notes = []
    if any(each.modelled for each in promises):
        notes.append("* some starts have more trials than were measured: other starts' trials, shifted to their level")
    held_out = [each for each in promises if each.held_out >= 1]
    if held_out:
        counts = "; ".join(
            f"{design} {', '.join(str(each.trials) for each in those)}"
            for design, those in groupby(held_out, key=lambda each: each.design)
        )
        notes.append(f"judged by the noise of starts that are not in the pair: {counts}")
    if len(held_out) < len(promises):
        notes.append("the other numbers were tested on the starts they were estimated from, without held-out starts")
    notes.append("pairs share these starts: intervals do not cover starts and days that were not measured")
    return notes


def render_calibration_json(results: Sequence[tuple[CalibrationResult, str]]) -> Rendered:
    """The same as one JSON object; infinite numbers are null."""
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
                "mde": dict(each.mde),
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
            {**vars(each), "design": each.design.value, "found": share_to_plain(each.found)} for each in result.planted
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


def _known_percent(value: float) -> str:
    return percent(value, None) if value <= 99.99 else ABSENT


_BAR: Final = 10
_WITH_BARS: Final = 100
_MOST_NAMES: Final = 2
_LARGEST: Final = 99.99


def render_self_test(result: SelfTestResult, *, width: int, color: bool) -> Rendered:
    """The detection curve, with bars in a wide terminal, then what explains it, then the verdict."""
    trials = counted(len(result.base.trials), "trial")
    columns = (*names("fault"), *numbers("size", "found", "trials"), *words("share", "seen by", "promise"))
    page = Page(
        title=f"{result.base.scenario}: {trials} without a fault, then faults planted in the running stack",
        blocks=(
            Table(columns=columns, rows=tuple(_row(each, has_bar=width >= _WITH_BARS) for each in result.detections)),
            Section("explanations", (Bullets(tuple(_explain(result.detections))),)),
            Section("notes", (Bullets((*result.notes, *_legend(result.detections)), Tone.QUIET),)),
            _verdict(result.detections),
        ),
    )
    return render(page, Format.TERMINAL, width=width, color=color)


def _explain(detections: Sequence[Detection]) -> Iterator[str]:
    for each in detections:
        reasons = (f"explained by {each.blamed}" if each.blamed else "", each.problem)
        yield from (f"{_title(each)} {_size(each)}: {reason}" for reason in reasons if reason)


def _row(detection: Detection, *, has_bar: bool) -> tuple[str, ...]:
    share, seen = detection.share, detection.seen_by
    bar = f"{'█' * round(_BAR * share.value):·<{_BAR}} " if has_bar else ""
    return (
        _title(detection),
        _size(detection),
        "yes" if detection.is_found else (detection.verdict.value if detection.problem else "no"),
        str(detection.spent),
        f"{bar}{100 * share.value:3.0f} %" if share.draws else "",
        " ".join(seen if len(seen) <= _MOST_NAMES else (*seen[: _MOST_NAMES - 1], f"+{len(seen) - _MOST_NAMES + 1}")),
        _promise(detection),
    )


def _title(detection: Detection) -> str:
    return detection.fault.replace("_", " ")


def _size(detection: Detection) -> str:
    return FAULTS[detection.fault].describe(detection.size) if detection.size else "0"


def _promise(detection: Detection) -> str:
    promised = detection.promised
    if detection.size == 0:
        return detection.keeping.value if detection.is_found else "kept"
    if promised is None:
        return ""
    effect, mde = _effect(promised.effect), _effect(promised.mde)
    return f"{effect} < {mde}" if detection.keeping is Keeping.NONE else f"{detection.keeping} {effect} ≥ {mde}"


def _effect(value: float) -> str:
    return "any" if value > _LARGEST else percent(value, None)


def _legend(detections: Sequence[Detection]) -> list[str]:
    notes = [
        "share: of resampled sessions in which it was found",
        "promise: effect of the fault on its metric, compared (≥) with the gate's MDE",
    ]
    if any(each.keeping is Keeping.BY_CHANCE for each in detections):
        notes.append(f"{Keeping.BY_CHANCE}: it was missed, as effects close to the MDE are in one of five sessions")
    if any(each.promised is None and each.size for each in detections):
        notes.append("nothing is promised if the effect depends on the machine, or affects no metric")
    return notes


def _verdict(detections: Sequence[Detection]) -> Text:
    if is_trustworthy(detections):
        due = sum(each.keeping is Keeping.KEPT and each.size > 0 for each in detections)
        kept = f"the gate kept its promises ({counted(due, 'was due', 'were due')}), and did not call an equal version "
        return Text(f"{kept}regressed", Tone.DOUBT if any(each.problem for each in detections) else Tone.GOOD)
    reasons = [
        "an equal version was called regressed"
        if each.keeping is Keeping.FALSE_ALARM
        else f"{_title(each)} {_size(each)} was missed"
        for each in detections
        if each.keeping in {Keeping.BROKEN, Keeping.FALSE_ALARM}
    ]
    return Text(f"the gate did not keep its promises: {'; '.join(reasons)}", Tone.BAD)


def render_self_test_json(result: SelfTestResult) -> Rendered:
    """The same as one JSON object; infinite numbers are null."""
    document = {
        "schema": SCHEMA,
        "kind": "pytest-ldos self-test",
        "scenario": result.base.scenario,
        "kept": is_trustworthy(result.detections),
        "points": [_point(each) for each in result.detections],
        "notes": list(result.notes),
    }
    return to_json(document, indent=2)


def _point(detection: Detection) -> dict[str, Any]:
    promised = detection.promised
    return {
        "fault": detection.fault,
        "size": detection.size,
        "verdict": detection.verdict.value,
        "found": detection.is_found,
        "trials": detection.spent,
        "resampled": share_to_plain(detection.share),
        "seen_by": list(detection.seen_by),
        "blamed": detection.blamed,
        "promise": promised
        and {
            "what": "success rate" if promised.what == SUCCESS else promised.what,
            "effect": promised.effect,
            "mde": finite(promised.mde),
        },
        "keeping": detection.keeping.value,
        "problem": detection.problem,
    }
