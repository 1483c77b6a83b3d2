"""First part of a scenario's report: reasons, changes and advice; and badges of verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.show.page.model import Badge, Block, Bullets, Tone
from pytest_ldos.show.page.model import Section as Shown
from pytest_ldos.show.report.document import MetricReport, Section
from pytest_ldos.show.report.words import (
    describe_mdes,
    describe_median_gap,
    describe_move,
    describe_paths,
    moved_metrics,
    verdict_word,
)


def show_findings(section: Section, *, most: int | None = None) -> Iterator[Block]:
    """The reasons, then advice, MDEs and reasons for more trials under headings.

    Args:
        most: most sentences of one list; ``None`` for all.
    """
    yield _listed(section.reasons, most)
    for title, lines in (
        ("What moved", [*map(describe_move, moved_metrics(section)), *describe_paths(section)]),
        ("What to do", section.advice),
        ("Minimum detectable effects", describe_mdes(section)),
        ("More trials would help", section.undecided),
    ):
        yield Shown(title, (_listed(lines, most),))


def _listed(lines: Iterable[str], most: int | None) -> Bullets:
    """The first lines, and the number of the others."""
    found = tuple(lines)
    more = (f"… and {len(found) - most} more",) if most is not None and len(found) > most else ()
    return Bullets((*found[:most], *more))


def badge_of(verdict: Verdict | None) -> Badge:
    """The verdict as a badge; without a tone if nothing was judged."""
    return Badge(verdict_word(verdict), tone_of(verdict))


def badge_of_metric(metric: MetricReport, *, by_name: bool = False) -> Badge | str:
    """The verdict on a metric with its caveat; empty if the metric was not compared.

    Args:
        by_name: True to write the verdict as commands and files do.
    """
    if metric.verdict is None:
        return ""
    gap, word = describe_median_gap(metric), metric.verdict.value if by_name else metric.verdict.word
    return Badge(f"{word}, {gap}", Tone.DOUBT) if gap else Badge(word, tone_of(metric.verdict))


def tone_of(verdict: Verdict | None) -> Tone:
    """The tone of a verdict; plain if nothing was judged."""
    return Tone.PLAIN if verdict in {None, Verdict.SHOWN} else Tone(verdict.tone)
