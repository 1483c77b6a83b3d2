"""First part of a scenario's report, in every format with headings: why, what moved, what to do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pytest_ldos.show.page.model import Block, Bullets
from pytest_ldos.show.page.model import Section as Shown
from pytest_ldos.show.report.document import Section
from pytest_ldos.show.report.paths import describe_paths
from pytest_ldos.show.report.words import describe_move, describe_unseen, moved_metrics


def show_findings(section: Section, *, most: int | None = None) -> Iterator[Block]:
    """The reasons, and below headings what they mean for metrics, the user and the number of trials.

    Args:
        most: sentences of one list; all without it.
    """
    yield _listed(section.reasons, most)
    for title, lines in (
        ("What moved", [*map(describe_move, moved_metrics(section)), *describe_paths(section)]),
        ("What to do", section.advice),
        ("What could not have been detected", describe_unseen(section)),
        ("More trials would help", section.undecided),
    ):
        yield Shown(title, (_listed(lines, most),))


def _listed(lines: Iterable[str], most: int | None) -> Bullets:
    """The first lines, and the number of the others."""
    found = tuple(lines)
    more = (f"… and {len(found) - most} more",) if most is not None and len(found) > most else ()
    return Bullets((*found[:most], *more))
