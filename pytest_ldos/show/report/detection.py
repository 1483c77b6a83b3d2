"""A self-test for a terminal, and for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from pytest_ldos.base.text import Rendered
from pytest_ldos.base.units import counted
from pytest_ldos.campaign.detection import SUCCESS, Detection, Keeping, Promised, is_trustworthy
from pytest_ldos.campaign.faults import FAULTS
from pytest_ldos.campaign.promise import Share
from pytest_ldos.campaign.selftest import SelfTestResult
from pytest_ldos.show.page.data_text import finite, to_json
from pytest_ldos.show.page.formats import Format, render
from pytest_ldos.show.page.model import Bullets, Column, Kind, Page, Section, Table, Text, Tone
from pytest_ldos.show.report.calibration import share_to_plain

SCHEMA: Final = 1
_BAR: Final = 10
_WITH_BARS: Final = 100
_MOST_NAMES: Final = 2
_LARGEST: Final = 99.99


def render_self_test(result: SelfTestResult, *, width: int, color: bool) -> Rendered:
    """The self-test for a terminal; a wide one has a bar beside each share."""
    page = compose_page(result, has_bars=width >= _WITH_BARS)
    return render(page, Format.TERMINAL, width=width, color=color)


def compose_page(result: SelfTestResult, *, has_bars: bool) -> Page:
    """The detection curve: a row for each size of each fault, then what explains them, then the verdict."""
    trials = counted(len(result.base.trials), "trial")
    return Page(
        title=f"{result.base.scenario}: {trials} without a fault, then faults planted in the running stack",
        blocks=(
            Table(columns=_COLUMNS, rows=tuple(_row(each, has_bar=has_bars) for each in result.detections)),
            Section("explanations", (Bullets(tuple(_explain(result.detections))),)),
            Section("notes", (Bullets((*result.notes, *_legend(result.detections)), Tone.QUIET),)),
            _verdict(result.detections),
        ),
    )


_COLUMNS: Final = (
    Column("fault", Kind.NAME),
    Column("size"),
    Column("found"),
    Column("trials"),
    *(Column(title, Kind.WORD) for title in ("share", "seen by", "promise")),
)


def _explain(detections: Sequence[Detection]) -> Iterator[str]:
    for each in detections:
        if each.blamed:
            yield f"{_title(each)} {_size(each)}: explained by {each.blamed}"
        if each.problem:
            yield f"{_title(each)} {_size(each)}: {each.problem}"


def _row(detection: Detection, *, has_bar: bool) -> tuple[str, ...]:
    return (
        _title(detection),
        _size(detection),
        "yes" if detection.is_found else (detection.verdict.value if detection.problem else "no"),
        str(detection.spent),
        _share(detection.share, has_bar=has_bar),
        _names(detection.seen_by),
        _promise(detection),
    )


def _share(share: Share, *, has_bar: bool) -> str:
    if not share.draws:
        return ""
    bar = f"{'█' * round(_BAR * share.value):·<{_BAR}} " if has_bar else ""
    return f"{bar}{100 * share.value:3.0f} %"


def _title(detection: Detection) -> str:
    return detection.fault.replace("_", " ")


def _size(detection: Detection) -> str:
    return FAULTS[detection.fault].describe(detection.size) if detection.size else "0"


def _names(names: Sequence[str]) -> str:
    if len(names) <= _MOST_NAMES:
        return " ".join(names)
    shown = names[: _MOST_NAMES - 1]
    return f"{' '.join(shown)} +{len(names) - len(shown)}"


def _promise(detection: Detection) -> str:
    promised = detection.promised
    if detection.size == 0:
        return detection.keeping.value if detection.is_found else "kept"
    if promised is None:
        return ""
    if detection.keeping is Keeping.NONE:
        return f"{_compared(promised, '<')}"
    return f"{detection.keeping} {_compared(promised, '≥')}"


def _compared(promised: Promised, sign: str) -> str:
    return f"{_percent(promised.effect)} {sign} {_percent(promised.mde)}"


def _percent(value: float) -> str:
    if value > _LARGEST:
        return "any"
    return f"{100 * value:.1f} %" if value < 0.0995 else f"{100 * value:.0f} %"


def _legend(detections: Sequence[Detection]) -> list[str]:
    notes = [
        "share: of sessions with the same trials resampled, in how many it was found",
        "promise: the effect a fault has on its metric, beside the smallest (≥) that the gate said it would find",
    ]
    if any(each.keeping is Keeping.BY_CHANCE for each in detections):
        notes.append(f"{Keeping.BY_CHANCE}: it was missed, as an effect hardly above it may be in one of five sessions")
    if any(each.promised is None and each.size for each in detections):
        notes.append("nothing is promised where the effect depends on the machine, or reaches no metric")
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
    """The same as one JSON object; what is infinite is null."""
    document = {
        "schema": SCHEMA,
        "kind": "pytest-ldos self-test",
        "scenario": result.base.scenario,
        "kept": is_trustworthy(result.detections),
        "points": [_to_plain(each) for each in result.detections],
        "notes": list(result.notes),
    }
    return to_json(document, indent=2)


def _to_plain(detection: Detection) -> dict[str, Any]:
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
