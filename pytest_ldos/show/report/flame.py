"""Drawings of a profile, by suffix of the file, and sentences about frames and their changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from pytest_ldos.base.text import Rendered, counted, percent
from pytest_ldos.campaign.watching import Drawings
from pytest_ldos.record.profiles import Change, Difference, FoldedStacks, Frame
from pytest_ldos.show.page.formats import Format, render, require_format
from pytest_ldos.show.page.model import Page, Table, numbers, words

_EXAMPLES: Final = (0.02, 0.1, 0.5)
_MOST: Final = 12
_LONGEST_WAY: Final = 6
_MOST_OF: Final = 0.8


def describe_frame(frame: Frame, whole: int) -> str:
    count, own = frame.counts[0], frame.own[0]
    return f"{frame.name}: {count} of {whole} samples ({percent(count / whole)}), {percent(own / whole)} in itself"


def describe_change(change: Change, frame: Frame) -> str:
    """``inner: 12.0 % → 20.0 %, +8.0 % (+5.1 % … +10.9 %): 120 and 210 samples``."""
    interval = f"{percent(change.low, signed=True)} … {percent(change.high, signed=True)}"
    doubt = "" if change.is_certain else "; may be chance"
    shares = f"{percent(change.base)} → {percent(change.head)}"
    counts = f"{frame.counts[0]} and {frame.counts[1]} samples"
    return f"{frame.name}: {shares}, {percent(change.change, signed=True)} of all ({interval}{doubt}); {counts}"


def describe_noise(difference: Difference) -> Iterator[str]:
    if not difference.has_common_frame:
        yield "the profiles have no frame in common: are they of the same program?"
    yield f"{difference.base_samples} samples of the base, {difference.head_samples} of the head; width: mean share"
    shown = ", ".join(f"{percent(difference.half_width(share))} at {percent(share)}" for share in _EXAMPLES)
    yield f"coloured: significant changes of share (red more, blue less; 95 % confidence in all together); MDE: {shown}"
    if difference.knows_starts:
        varies = f"counts vary {difference.dispersion:.2f} × as much between starts as by chance"
        yield f"{varies}; the intervals include this"
    else:
        unknown = "one start of a version: the variation between starts is unknown and not in the intervals"
        yield f"{unknown} (give several files)"


def describe_changes(difference: Difference) -> Iterator[str]:
    """Significant changes, the largest first; one for each chain of calls that changed alike."""
    changes = _one_of_each_chain(difference)
    if not changes:
        yield "no frame's share changed significantly"
    for each in changes[:_MOST]:
        interval = f"{percent(each.low, signed=True)} … {percent(each.high, signed=True)}"
        path = each.path if len(each.path) <= _LONGEST_WAY else (each.path[0], "…", *each.path[2 - _LONGEST_WAY :])
        yield f"{percent(each.change, signed=True):>9} ({interval})  {';'.join(path)}"
    if len(changes) > _MOST:
        yield f"… and {len(changes) - _MOST} more"


def _one_of_each_chain(difference: Difference) -> list[Change]:
    """The largest changes, each attributed to the innermost frame that has most of it."""
    frames = {frame.path: frame for frame in difference.tree.walk()}
    found: list[Change] = []
    for change in difference.certain():
        if any(_is_one_chain(change, each) for each in found):
            continue
        innermost, inner = change, [change]
        while inner:
            innermost = inner[0]
            called = [difference.changes[child.path] for child in frames[innermost.path].children.values()]
            inner = [each for each in called if each.is_certain and each.change / change.change >= _MOST_OF]
        found.append(innermost)
    return found


def _is_one_chain(one: Change, other: Change) -> bool:
    """True if one was called within the other, and both changed in the same direction."""
    shared = min(len(one.path), len(other.path))
    return one.path[:shared] == other.path[:shared] and one.change * other.change > 0


SVG: Final = ".svg"


def render_flame(profile: FoldedStacks, title: str, notes: Sequence[str] = ()) -> Rendered:
    """A flame graph as SVG; raises `Unavailable` without the drawing library."""
    require_format(Format.HTML)
    from pytest_ldos.show.report import drawings as drawing  # noqa: PLC0415 - its library need not be installed

    return drawing.draw_flame(profile, title=title, notes=notes)


def render_flame_difference(difference: Difference, title: str) -> Rendered:
    require_format(Format.HTML)
    from pytest_ldos.show.report import drawings as drawing  # noqa: PLC0415

    return drawing.draw_difference(difference, title=title, notes=list(describe_noise(difference)))


DRAWINGS: Final = Drawings(render_flame, render_flame_difference)


Weight = Callable[[Frame], float]
"""Width of a frame as a share of the whole; siblings together are no wider than their caller."""


@dataclass(frozen=True)
class Place:
    """A frame's place: left edge and width as shares of the whole."""

    frame: Frame
    left: float
    width: float


def place_frames(tree: Frame, weight: Weight, *, narrowest: float) -> Iterator[Place]:
    """Frames of at least the share `narrowest`; callees are placed within their caller, in order of names."""
    waiting = [Place(tree, 0.0, 1.0)]
    while waiting:
        here = waiting.pop()
        yield here
        left = here.left
        for name in sorted(here.frame.children):
            child = here.frame.children[name]
            width = weight(child)
            if width >= narrowest:
                waiting.append(Place(child, left, width))
            left += width


_WIDEST: Final = 10_000  # columns; names of functions are on one line, so that they can be copied


def render_profile(profile: FoldedStacks, most: int) -> Rendered:
    """Functions by their own samples; a recursive function counts once per sample."""
    whole: Counter[str] = Counter()
    own: Counter[str] = Counter()
    for stack, count in profile.counts.items():
        own[stack[-1]] += count
        whole.update(dict.fromkeys(stack, count))
    rows = tuple(
        (percent(count / profile.samples), percent(whole[name] / profile.samples), name)
        for name, count in own.most_common(most)
    )
    columns = (*numbers("itself", "with calls"), *words("function"))
    page = Page(title=counted(profile.samples, "sample"), blocks=(Table(columns=columns, rows=rows),))
    return render(page, Format.TERMINAL, width=_WIDEST)
