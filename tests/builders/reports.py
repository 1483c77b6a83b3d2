"""Documents that say everything a report can say, and some that say it in hostile words."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from enum import StrEnum
from typing import Any

from pytest_ldos.judge.baseline.store import CalibrationLookup
from pytest_ldos.judge.gate.case import Policy
from pytest_ldos.judge.gate.decide import GateResult, decide, judge_alone
from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.judge.judging import Judged
from pytest_ldos.judge.summary import Drift, Score
from pytest_ldos.measure.trial.record import Look, TrialSet
from pytest_ldos.record.profiles import Evidence, Growth
from pytest_ldos.show.report.compose import compose_section
from pytest_ldos.show.report.document import (
    Additions,
    CalibrationReport,
    CaseReport,
    Change,
    Difference,
    DifferenceKind,
    Document,
    Failure,
    Gap,
    Interleaving,
    Load,
    MetricReport,
    Origin,
    PathReport,
    Place,
    Point,
    Sample,
    Section,
    Segment,
    Version,
)


def section_of(
    head: TrialSet,
    base: TrialSet | None = None,
    *,
    result: GateResult | None = None,
    policy: Policy | None = None,
    calibration: CalibrationLookup | None = None,
    notes: Sequence[str] = (),
) -> Section:
    """The section of trials that are compared with a base, or judged alone.

    Args:
        result: shown instead of the gate's own.
    """
    policy = policy or Policy()
    own = judge_alone(head, policy)
    found = result or (own if base is None else decide(head, base, policy))
    judged = Judged(head=head, result=found, own=own, base=base, calibration=calibration)
    return compose_section(judged, notes=notes)


SCRIPT = "<script>alert(1)</script>"
HOSTILE = (
    SCRIPT,
    "<img src=x onerror=alert(1)>",
    "\" onmouseover=\"alert(1)' onfocus='alert(1)",
    "</td></table></style></svg></title><iframe src=//evil.example>",
    "a | b\n\n| c |\n# heading\n- item\n> quote\n    code",
    "`code` ``` ~~~ **bold** _under_ [link](https://evil.example) ![picture](https://evil.example/x.png)",
    "@everyone team@evil.example owner/repo#1 #1 https://evil.example www.evil.example $x$ :tada:",
    "<!-- comment --> &lt; &#64;user <details>",
    "::error file=x::injected",
    "\n::set-output name=x::y\n##[error]injected",
    "\x1b[31mred\x07 \x1b]0;title\x07 \u202egnp.exe \u2066 \u200f \u2028 \x00 \x85 \ud800",
    "[bold]rich[/bold] [link=https://evil.example]x[/link]",
    "{{ 1 }} {% raw %} ${x} $(touch x)",
    "1. one",
    "10. ten",
    "12) twelve",
    "GH-12 gh-13",
    "- one",
    "",
)
"""Names and messages as somebody might choose them."""


def sample(*values: float | None, first_block: int = 0, per_block: int = 5, step: int = 1) -> Sample:
    """Values of trials, five a block; ``None`` failed."""
    finite = sorted(value for value in values if value is not None)
    return Sample(
        median=finite[len(finite) // 2] if finite else None,
        cv=0.05,
        adjusted_cv=0.04,
        censored=len(values) - len(finite),
        points=tuple(
            Point(trial=number + 1, block=first_block + step * (number // per_block), goal="reach", value=value)
            for number, value in enumerate(values)
        ),
    )


def change(ratio: float | None, low: float | None, high: float | None, **changes: Any) -> Change:
    plain = Change(ratio=ratio, low=low, high=high, tail=0.004, p_value=0.001, floor=0.05, mde=0.12)
    return dataclasses.replace(plain, **changes)


def segment(name: str, change_ns: float, *, share: float = 0.0, certain: bool = True) -> Segment:
    return Segment(
        name=name,
        base_ns=1e6,
        head_ns=1e6 + change_ns,
        change_ns=change_ns,
        low_ns=change_ns - 1e5 if certain else None,
        high_ns=change_ns + 1e5,
        share=share,
        is_certain=certain,
    )


def case(name: str, changed: Change, **changes: Any) -> CaseReport:
    numbers: dict[str, Any] = {"trials": 10, "successes": 9, "base_trials": 10, "base_successes": 10}
    medians: dict[str, Any] = {"median": 14.0, "low": 13.0, "high": None, "base_median": 10.0, **changes}
    return CaseReport(name=name, change=changed, stage="planning stage: search", **numbers, **medians)


def version(label: str, **changes: Any) -> Version:
    plain = Version(
        label=label,
        commit="0123456789ab",
        started_at="2026-01-01T00:00:00+00:00",
        asked=10,
        trials=10,
        successes=9,
        incomplete="the simulator ended",
        stack="embedded (test)",
        recorder="LTTng 2.13",
        host_class="test-cpu_4-cores",
        discarded_events=3,
        file="baselines/baseline.json",
        failures=(Failure(outcome="planning_failed", code=-31, goal="reach", message="no way", trials=(3, 7)),),
        loads=(Load(summary="4000 messages a second", shortfall="200 fewer"),),
    )
    return dataclasses.replace(plain, **changes)


def metrics() -> tuple[MetricReport, ...]:
    base, head = sample(10.0, 11.0, 10.5, 9.8, 10.2, 10.9), sample(14.0, 15.0, None, 14.8, 14.2, 13.9)
    common: dict[str, Any] = {"unit": "ms", "base": base, "head": head}
    return (
        MetricReport(
            name="T1",
            title="planning latency",
            verdict=Verdict.REGRESSED,
            change=change(1.4, 1.3, 1.5),
            cases=(case("shelf", change(None, 1.2, None), median=None), case("table", change(0.9, None, 1.1))),
            **common,
        ),
        MetricReport(
            name="T3",
            title="control-loop jitter",
            verdict=Verdict.INCONCLUSIVE,
            change=change(1.1, None, None, mde=None),
            origins=(Origin(name="/joint_states publications", caveat="when they were sent", is_usual=False),),
            **common,
        ),
        MetricReport(
            name="T4", title="total latency", verdict=Verdict.IMPROVED, change=change(0.5, 0.4, 0.6), **common
        ),
        MetricReport(
            name="T4_p99",
            title="failed trials only",
            verdict=Verdict.REGRESSED,
            change=change(None, None, None, mde=None, is_endless=True),
            unit="ms",
            head=sample(None, None),
            base=base,
        ),
        MetricReport(
            name="grip",
            title="a user's own",
            unit="N",
            verdict=Verdict.NOT_COMPARABLE,
            head=head,
            incomparable="grip was taken elsewhere",
            gaps=(Gap(reason="no sensor", trials=(2,)), Gap(reason="events lost", trials=(1, 3), is_fault=True)),
        ),
        MetricReport(name="T5", title="simulation step", unit="ms"),
    )


def full_section(**changes: Any) -> Section:
    parts = (segment("transport: /joint_states → /robot", 4e6, share=0.8), segment("callback", 1e6, certain=False))
    more = tuple(segment(f"segment {number}", -1e4 * number) for number in range(10))
    plain = Section(
        scenario="msg_load",
        verdict=Verdict.REGRESSED,
        reasons=("T1 (planning latency) regressed: +40.0 %",),
        undecided=("T3 needs more trials",),
        advice=("look first at transport",),
        head=version("this run"),
        base=version("main~1"),
        metrics=metrics(),
        paths=(
            PathReport(path="planning", metrics=("T1",), whole=segment("latency", 5e6), segments=(*parts, *more)),
            PathReport(path="state feedback", metrics=(), whole=segment("latency", 2e5), segments=parts),
            PathReport(path="empty", metrics=(), whole=segment("latency", 0.0, certain=False), segments=()),
        ),
        differences=(
            Difference(kind=DifferenceKind.ENVIRONMENT, name="mujoco", base="3.2", head="3.3"),
            Difference(kind=DifferenceKind.SETTING, name="faults.planning_delay_ms", base="0.0", head="6.0"),
        ),
        evidence=Evidence(
            tools="perf at 499 Hz",
            starts=4,
            smallest=0.01,
            grown=(
                Growth(process="move_group", function="plan", file="libplan.so", base=0.01, head=0.2, callers=("run",)),
            ),
            files=("src/plan.cpp +5 -2",),
        ),
        score=Score(value=1.1, without=("T5",)),
        interleaving=Interleaving(
            blocks=4,
            order=("base", "head", "head", "base"),
            drifts=(
                Drift(metric="T1", change=0.01, p_value=0.4, is_notable=False),
                Drift(metric="T3", change=0.2, p_value=0.001, is_notable=True),
            ),
        ),
        additions=Additions(
            looks=(Look(head=10, base=10), Look(head=20, base=20)),
            limit=Look(head=30, base=30),
            added=10,
        ),
        calibration=CalibrationReport(
            made_at="2026-01-01", commit="abc", starts=12, trials=60, metrics=("T1",), file="x"
        ),
        notes=("trace: /somewhere",),
        test=Place(file="tests/scenarios/test_msg_load.py", line=12),
        is_suite=True,
    )
    return dataclasses.replace(plain, **changes)


def full_document(**changes: Any) -> Document:
    """Every part of a document, and a scenario that could not be measured."""
    infra = Section(scenario="cpu_load", verdict=Verdict.INFRA, reasons=("the stack did not start",))
    plain = Document(sections=(full_section(), infra), made_at="2026-01-01T00:00:00+00:00", made_by="pytest-ldos 0")
    return dataclasses.replace(plain, **changes)


def in_words(value: Any, text: str) -> Any:
    """The same document with `text` wherever somebody else's words can stand."""
    if isinstance(value, tuple):
        return tuple(in_words(each, text) for each in value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [each.name for each in dataclasses.fields(value)]
        return dataclasses.replace(value, **{name: in_words(getattr(value, name), text) for name in names})
    return text if isinstance(value, str) and not isinstance(value, StrEnum) else value
