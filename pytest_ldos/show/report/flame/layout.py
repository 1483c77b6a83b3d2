"""Places of the frames of a flame graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pytest_ldos.record.profiles.tree import Frame

Weight = Callable[[Frame], float]
"""Width of a frame as a share of the whole; siblings together are no wider than their caller."""


@dataclass(frozen=True)
class Place:
    """A frame's place.

    Attributes:
        left, width: as shares of the whole.
    """

    frame: Frame
    left: float
    width: float


def place_frames(tree: Frame, weight: Weight, *, narrowest: float) -> Iterator[Place]:
    """Every frame that is wide enough; what it called stands within it, in order of names.

    Args:
        narrowest: share of the whole.
    """
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
