"""Badges of verdicts."""

from __future__ import annotations

from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.show.page.model import Badge, Tone
from pytest_ldos.show.report.document import MetricReport
from pytest_ldos.show.report.words import describe_apart, verdict_word


def badge_of(verdict: Verdict | None) -> Badge:
    """The verdict as a badge; without a tone if nothing was judged."""
    return Badge(verdict_word(verdict), tone_of(verdict))


def badge_of_metric(metric: MetricReport, *, by_name: bool = False) -> Badge | str:
    """The verdict on a metric, and what it must not hide; empty if the metric was not compared.

    Args:
        by_name: whether the verdict is written as commands and files do.
    """
    if metric.verdict is None:
        return ""
    apart, word = describe_apart(metric), metric.verdict.value if by_name else metric.verdict.word
    return Badge(f"{word}, {apart}", Tone.DOUBT) if apart else Badge(word, tone_of(metric.verdict))


def tone_of(verdict: Verdict | None) -> Tone:
    """The tone of a verdict; plain if nothing was judged."""
    return Tone.PLAIN if verdict is None else Tone(verdict.tone)
