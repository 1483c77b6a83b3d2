"""A document for a terminal or a log."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pytest_ldos.base.text import Rendered
from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.show.page.lines import Line, line, print_to_text
from pytest_ldos.show.page.model import Cell, Column, Kind, Table, Tone, Words
from pytest_ldos.show.page.text_table import draw_table
from pytest_ldos.show.report.badges import tone_of
from pytest_ldos.show.report.document import Change, Document, MetricReport, Section
from pytest_ldos.show.report.paths import describe_paths
from pytest_ldos.show.report.words import (
    NEVER,
    change_of,
    describe_gaps,
    describe_measurement,
    describe_setting,
    describe_sources,
    describe_success,
    interval_of,
    median_of,
    percent,
    told_metrics,
)

_NARROWEST: Final = 80


def render(document: Document, *, width: int, color: bool, setting: bool = True) -> Rendered:
    """The whole document; tables have at most `width` columns, other lines are not broken.

    Args:
        setting: whether stack, tracer and host stand above the scenarios.
    """
    width = max(width, _NARROWEST)
    lines = [line(each, tone=Tone.QUIET) for each in (describe_setting(document) if setting else ())]
    for section in document.sections:
        lines += [line(), *_render_section(section, width)]
    return print_to_text(lines, color=color)


def _render_section(section: Section, width: int) -> list[Line]:
    """The verdict and why, what moved and where, what to do; then all numbers."""
    verdict = () if section.verdict is None else (_verdict(section.verdict), "; ")
    told = told_metrics(section)
    return [
        line(Words(section.scenario, Tone.STRONG), ": ", *verdict, describe_success(section)),
        *(line(f"  {each}") for each in section.reasons),
        *(line(f"  {each}") for each in describe_paths(section)),
        *(line(f"  → {each}", tone=Tone.STRONG) for each in section.advice),
        *(draw_table(Table(columns=_COLUMNS, rows=tuple(map(_row, told))), width) if told else ()),
        *(line(f"  {each}", tone=Tone.QUIET) for each in describe_sources(section)),
        *(line(f"  {each}", tone=Tone.DOUBT) for each in describe_gaps(section)),
        *(line(f"  {each}", tone=Tone.QUIET) for each in describe_measurement(section)),
    ]


_COLUMNS: Final = (
    Column("", Kind.WORD),
    Column("", Kind.WORD, rank=8),
    Column("median", rank=2),
    Column("CV", rank=6),
    Column("adjusted", rank=7),
    Column("baseline", rank=5),
    Column("change", rank=1),
    Column("interval", rank=3),
    Column("detectable", rank=4),
    Column("verdict", Kind.WORD, rank=1),
)


def _row(metric: MetricReport) -> tuple[Cell, ...]:
    def compared(of: Callable[[Change], str]) -> str:
        return "" if metric.change is None else of(metric.change)

    return (
        metric.name,
        metric.title,
        median_of(metric, metric.head),
        NEVER if metric.head is None else percent(metric.head.cv),
        _adjusted(metric),
        compared(lambda _: median_of(metric, metric.base)),
        compared(change_of),
        compared(interval_of),
        compared(lambda change: percent(change.detectable)),
        "" if metric.verdict is None else _verdict(metric.verdict),
    )


def _adjusted(metric: MetricReport) -> str:
    """Variation that is left when covariates are taken out."""
    return "" if metric.head is None or metric.head.adjusted_cv is None else percent(metric.head.adjusted_cv)


def _verdict(verdict: Verdict) -> Words:
    """A verdict by the name that commands and files use."""
    return Words(verdict.value, tone_of(verdict))
