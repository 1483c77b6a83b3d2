"""A profile for a terminal: its functions by the time that they took."""

from __future__ import annotations

from collections import Counter

from pytest_ldos.base.text import Rendered
from pytest_ldos.base.units import counted
from pytest_ldos.record.profiles.folded import FoldedStacks
from pytest_ldos.show.report.console import line, print_to_text
from pytest_ldos.show.report.flame.words import percent
from pytest_ldos.show.report.tables import column, tabulate


def render_profile(profile: FoldedStacks, most: int) -> Rendered:
    """Functions by the samples in themselves; a function that calls itself counts once a sample."""
    whole: Counter[str] = Counter()
    own: Counter[str] = Counter()
    for stack, count in profile.counts.items():
        own[stack[-1]] += count
        whole.update(dict.fromkeys(stack, count))
    columns = (column("itself"), column("with calls"), column("function", is_text=True))
    rows = [
        (percent(count / profile.samples), percent(whole[name] / profile.samples), name)
        for name, count in own.most_common(most)
    ]
    return print_to_text([line(counted(profile.samples, "sample")), *tabulate(columns, rows, indent=2)], color=False)
