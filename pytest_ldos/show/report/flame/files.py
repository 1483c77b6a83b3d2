"""Every drawing of a profile, by the ending of its file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pytest_ldos.base.text import Rendered
from pytest_ldos.campaign.watch_files import Drawings
from pytest_ldos.record.profiles.difference import Difference
from pytest_ldos.record.profiles.folded import FoldedStacks
from pytest_ldos.show.page.formats import Format, require_format
from pytest_ldos.show.report.flame.words import describe_noise

SVG: Final = ".svg"


def render_flame(profile: FoldedStacks, title: str, notes: Sequence[str] = ()) -> Rendered:
    """A flame graph as SVG.

    Raises:
        Unavailable: what draws it is not installed.
    """
    require_format(Format.HTML)
    from pytest_ldos.show.report.flame import drawing  # noqa: PLC0415 - its library need not be installed

    return drawing.draw_flame(profile, title=title, notes=notes)


def render_flame_difference(difference: Difference, title: str) -> Rendered:
    """A differential flame graph as SVG; see `render_flame`."""
    require_format(Format.HTML)
    from pytest_ldos.show.report.flame import drawing  # noqa: PLC0415

    return drawing.draw_difference(difference, title=title, notes=list(describe_noise(difference)))


DRAWINGS: Final = Drawings(render_flame, render_flame_difference)
