"""A search for a breaking point, as page, sentences and JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, Final, assert_never

from pytest_ldos.base.text import Rendered, format_quantity, percent
from pytest_ldos.campaign.bisection import Finding
from pytest_ldos.campaign.breaking_cause import ERROR, FACTOR, TELLING, Cause, StageReport
from pytest_ldos.campaign.breaking_result import (
    LEVEL_CONFIDENCE,
    BreakingResult,
    EstimateBy,
    LevelSummary,
    MetricBeyond,
)
from pytest_ldos.show.page import model as page
from pytest_ldos.show.page.formats import Format, render, to_json

_UNITS: Final = {"hz": "Hz", "ms": "ms", "bytes": "B", "mb": "MB", "mbps": "Mbit/s", "percent": "%", "s": "s"}
"""Unit by the end of a field's name."""

_UNEXPLAINED: Final = (
    f"no stage explains it: none that left its calm range is longer in {percent(TELLING, 0)} of pairs of a broken "
    "and a sound trial near the threshold"
)


def level_of(result: BreakingResult, level: float) -> str:
    unit = _UNITS.get(result.plan.address.rpartition("_")[2], "")
    number = f"{level:.0f}" if float(level).is_integer() else f"{level:.6g}"
    return f"{number} {unit}".rstrip()


def answer(result: BreakingResult) -> str:
    name = "the arm" if result.template is None else result.template.scenario
    return f"{name} {_found(result)}; {result.trials} trials in {result.starts} starts of the stack"


def _found(result: BreakingResult) -> str:
    scale, address = result.plan.search.scale, result.plan.address
    calm, limit = level_of(result, scale.calm), f" ({result.limit})" if result.limit else ""
    what, sure = f"{result.plan.criterion.describe()}{limit}", f"{100 * result.plan.search.confidence:g} % confidence"
    match result.finding:
        case Finding.BREAKS:
            found = _threshold(result, what, sure)
        case Finding.HOLDS:
            way = "down" if scale.is_falling else "up"
            found = f"does not break {way} to {address} = {level_of(result, scale.harsh)}, {sure}: nowhere {what}"
        case Finding.BROKEN_WHEN_CALM:
            found = f"is broken already at {address} = {calm}, {sure}: there {what}"
        case Finding.OUT_OF_REACH:
            found = _out_of_reach(result, sure)
        case Finding.UNDECIDED:
            held = "" if result.holds is None else f" beyond {level_of(result, result.holds)}, which holds"
            found = f"could not be decided{held}: whether {what}"
        case Finding.UNMEASURED:
            reasons = (each.mishaps[-1] for each in result.levels if each.mishaps)
            reason = next(reasons, result.stopped or "nothing was measured")
            found = f"could not be measured at {address} = {calm}: {reason}"
        case _:
            assert_never(result.finding)
    return found


def _threshold(result: BreakingResult, what: str, sure: str) -> str:
    assert result.estimate is not None
    assert result.holds is not None
    assert result.breaks is not None
    ends = sorted((result.holds, result.breaks))
    is_wide = not result.plan.search.scale.is_near(result.holds, result.breaks)
    between, address = f"between {level_of(result, ends[0])} and {level_of(result, ends[1])}", result.plan.address
    if result.estimate_by is EstimateBy.MIDDLE and is_wide:
        return f"breaks at {address} somewhere {between} ({sure}): from there on {what}"
    return f"breaks at {address} = {level_of(result, result.estimate)} ({between}, {sure}): from there on {what}"


def _out_of_reach(result: BreakingResult, sure: str) -> str:
    assert result.ceiling is not None
    reached = "" if result.reached is None else f"; the most that was reached is {level_of(result, result.reached)}"
    held = "was not shown to hold anywhere" if result.holds is None else f"holds up to {level_of(result, result.holds)}"
    at = f"{result.plan.address} = {level_of(result, result.ceiling.level)}"
    return f"{held} ({sure}); {at} could not be measured: {result.ceiling.mishaps[-1]}{reached}"


def remarks(result: BreakingResult) -> Iterator[str]:
    if result.estimate_by is not None:
        yield f"where the estimate comes from: {result.estimate_by}"
    if result.stopped:
        yield result.stopped
    if result.finding is Finding.HOLDS:
        yield "levels in between were tested once, in the middle; the others are assumed to be between their neighbours"
    yield from result.notes


def cause_of(result: BreakingResult) -> Iterator[str]:
    if (cause := result.cause) is None:
        return
    left = []
    for each in cause.stages:
        if each.first_left is not None:
            ratio = next(level.ratio for level in each.levels if level.level == each.first_left)
            times = f"{ratio:.1f} times {format_quantity(each.calm, 'ms')}"
            left.append(f"{each.stage} at {level_of(result, each.first_left)} ({times})")
    if left:
        yield f"what leaves its calm range first: {', then '.join(left)}"
    else:
        yield f"no stage left its calm range (median {FACTOR:g} times the calm one) at any level"
    stayed = [each.stage for each in cause.stages if each.first_left is None]
    if left and stayed:
        yield f"within their calm range at every level: {', '.join(stayed)}"
    if result.breaks is not None:
        yield _UNEXPLAINED if cause.blamed is None else _blame(result, cause.blamed)
    if cause.failed:
        failures = (
            f"{each.count} {each.outcome}{f' ({each.message})' if each.message else ''}" for each in cause.failures
        )
        failed = f"{cause.failed} of {cause.trials} trials at {level_of(result, cause.level)} failed"
        yield f"{failed}: {'; '.join(failures)}"
    elif result.breaks is not None:
        yield f"no trial at {level_of(result, cause.level)} failed: it is slower or less regular, but arrives"


def _blame(result: BreakingResult, stage: StageReport) -> str:
    assert stage.at_threshold is not None
    assert result.breaks is not None
    at = stage.at_threshold
    pairs = "of pairs of a broken and a sound trial near the threshold the broken one has more of it"
    share = "" if stage.separation is None else f"; in {percent(stage.separation, 0)} {pairs}"
    but = ""
    if isinstance(result.plan.criterion, MetricBeyond) and not stage.is_criterion:
        but = f" other than {result.plan.criterion.metric.name} itself"
    return (
        f"what explains most of it{but}: {stage.stage} ({stage.quantity}), {format_quantity(at.median, 'ms')} at "
        f"{level_of(result, result.breaks)}, {at.ratio:.1f} times the calm {format_quantity(stage.calm, 'ms')}{share}"
    )


def _level_row(result: BreakingResult, level: LevelSummary) -> tuple[str, ...]:
    tested, criterion = ("", "", ""), result.plan.criterion
    if level.trials:
        interval = f"{percent(level.low, 0)} … {percent(level.high, 0)}"
        tested = (f"{level.broken} of {level.trials}", percent(level.broken / level.trials, 0), interval)
    median = "" if level.median is None else format_quantity(level.median, criterion.unit)
    medians = (median,) if criterion.metric_name else ()
    return (level_of(result, level.level), *tested, *medians, str(level.starts), level.standing.value)


def mishaps(result: BreakingResult) -> Iterator[str]:
    """Reasons why starts were excluded."""
    for level in result.levels:
        yield from (f"{level_of(result, level.level)}: {each}" for each in dict.fromkeys(level.mishaps))


def stage_table(result: BreakingResult, cause: Cause) -> page.Table:
    rows = []
    for each in cause.stages:
        at = each.at_threshold
        numbers = ("", "") if at is None else (format_quantity(at.median, "ms"), f"{at.ratio:.1f}")
        left = "never" if each.first_left is None else level_of(result, each.first_left)
        separation = "" if each.separation is None else percent(each.separation, 0)
        rows.append((each.stage, format_quantity(each.calm, "ms"), *numbers, left, separation))
    titles = ("calm", "at the threshold", "times calm", "left its calm range at", "separation")
    return page.Table(columns=(*page.names("stage"), *page.numbers(*titles)), rows=tuple(rows))


def legend(result: BreakingResult) -> Iterator[str]:
    broken = "failed, or beyond the limit" if result.plan.criterion.metric_name else "failed"
    yield (
        f"broken: {broken}; interval: of the probability of a trial to break, {100 * LEVEL_CONFIDENCE:g} %, whenever "
        f"one looks; a level is broken above {percent(result.plan.search.boundary, 0)}"
    )
    yield (
        f"left its calm range: median {FACTOR:g} times the calm one or more, and a rank-sum test "
        f"({100 * ERROR:g} % for all stages and levels together, if starts are alike); separation: share of pairs "
        "near the threshold in which the broken trial has more of it than the sound one"
    )


def to_plain(result: BreakingResult) -> dict[str, Any]:
    search, template = result.plan.search, result.template
    return {
        "kind": "pytest-ldos breaking point",
        "schema": 1,
        "answer": answer(result),
        "finding": result.finding.value,
        "finished": result.is_finished,
        "address": result.plan.address,
        "criterion": result.plan.criterion.describe(),
        "limit": result.limit or None,
        **{name: getattr(template, name, None) for name in ("scenario", "stack", "commit")},
        "range": {"low": search.scale.low, "high": search.scale.high, "spacing": search.scale.spacing.value},
        "confidence": search.confidence,
        **{name: getattr(result, name) for name in ("holds", "breaks", "estimate", "estimate_by", "reached")},
        "trials": result.trials,
        "starts": result.starts,
        "remarks": list(remarks(result)),
        "levels": [asdict(each) for each in result.levels],
        "cause": None if result.cause is None else {**asdict(result.cause), "in_words": list(cause_of(result))},
    }


_MEANINGS: Final = (
    ("●", "share of broken trials of a level; the line is its interval; green holds, red breaks, grey is inconclusive"),
    ("dashed line", "logistic curve through all trials; drawn if there are enough levels"),
    ("shaded field", "holds the threshold"),
)


def render_breaking_as(result: BreakingResult, kind: Format, *, width: int = 100, color: bool = False) -> Rendered:
    """The result in a format, which may be `Unavailable`; width and colour apply to a terminal only."""
    if kind is Format.JSON:
        return to_json(to_plain(result))
    return render(compose_page(result), kind, width=width, color=color)


def compose_page(result: BreakingResult) -> page.Page:
    ran, stages = result.template, () if result.cause is None else (stage_table(result, result.cause),)
    return page.Page(
        title="ldos: breaking point",
        setting=() if ran is None else (ran.stack, ran.recorder, f"commit {ran.commit or 'unknown'}"),
        answer=answer(result),
        blocks=(
            page.Bullets(tuple(remarks(result))),
            page.Section(f"Levels of {result.plan.address}", tuple(_levels(result))),
            page.Section("What breaks", (page.Bullets(tuple(cause_of(result))), *stages)),
            page.Section(
                "How to read this", (page.Legend(_MEANINGS), page.Bullets(tuple(legend(result)), page.Tone.QUIET))
            ),
        ),
    )


def _levels(result: BreakingResult) -> Iterator[page.Block]:
    if any(each.trials for each in result.levels):
        yield page.drawn_by("pytest_ldos.show.report.figures:draw_levels", result)
    titles = ("broken", "share", "interval", *(["median"] if result.plan.criterion.metric_name else []), "starts")
    yield page.Table(
        columns=(*page.names("level"), *page.numbers(*titles), *page.words("result")),
        rows=tuple(_level_row(result, each) for each in result.levels),
    )
    yield page.Bullets(tuple(mishaps(result)))
