"""A profile for a terminal: its functions by the time that they took."""

from __future__ import annotations

from collections import Counter
from typing import Final

from pytest_ldos.base.text import Rendered
from pytest_ldos.base.units import counted
from pytest_ldos.record.profiles.folded import FoldedStacks
from pytest_ldos.show.page.formats import Format, render
from pytest_ldos.show.page.model import Column, Kind, Page, Table
from pytest_ldos.show.report.flame.words import percent

_WIDEST: Final = 10_000
"""Columns; names of functions are to be copied, and stand on one line."""


def render_profile(profile: FoldedStacks, most: int) -> Rendered:
    """Functions by the samples in themselves; a function that calls itself counts once a sample."""
    whole: Counter[str] = Counter()
    own: Counter[str] = Counter()
    for stack, count in profile.counts.items():
        own[stack[-1]] += count
        whole.update(dict.fromkeys(stack, count))
    rows = tuple(
        (percent(count / profile.samples), percent(whole[name] / profile.samples), name)
        for name, count in own.most_common(most)
    )
    columns = (Column("itself"), Column("with calls"), Column("function", Kind.WORD))
    page = Page(title=counted(profile.samples, "sample"), blocks=(Table(columns=columns, rows=rows),))
    return render(page, Format.TERMINAL, width=_WIDEST)
