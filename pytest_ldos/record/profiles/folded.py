"""Folded stacks: number of samples per call stack.

As text, one line per stack: frames from the outermost on, separated by ``;``, a space, the number of samples.
Reference: the form that Brendan Gregg's FlameGraph made common; perf's and py-spy's tools write and read it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pytest_ldos.base.errors import RecordUnreadable
from pytest_ldos.base.text import one_line

Stack = tuple[str, ...]
"""Frame names, the outermost (the process) first; at least one."""

MOST_FRAMES: Final = 512
"""Largest depth of a stack; perf's own limit is 127. Deeper stacks lose their innermost frames."""

_LONGEST_NAME: Final = 400
_KEPT_END: Final = 150
"""Characters kept from the end of a name, where names of templates differ."""

_SEPARATOR: Final = ";"
_LARGEST: Final = 2**53
_REMEDY: Final = "name a .folded file as ldos, perf's stackcollapse or py-spy (--format raw) write it"


def frame_name(text: str) -> str:
    """Turns a name from another program into a frame name: one line, without the separator of frames."""
    name = one_line(text).replace(_SEPARATOR, ":").strip()
    if len(name) > _LONGEST_NAME:
        name = f"{name[: _LONGEST_NAME - _KEPT_END - 1]}…{name[-_KEPT_END:]}"
    return name or "?"


@dataclass(frozen=True)
class FoldedStacks:
    """Samples by stack.

    Attributes:
        counts: number of samples, each at least 1.
    """

    counts: Mapping[Stack, int]

    @property
    def samples(self) -> int:
        return sum(self.counts.values())

    def __bool__(self) -> bool:
        return bool(self.counts)


def merge(profiles: Iterable[FoldedStacks]) -> FoldedStacks:
    """Sum of all samples."""
    together: Counter[Stack] = Counter()
    for each in profiles:
        together.update(each.counts)
    return FoldedStacks(dict(together))


def render_folded(profile: FoldedStacks) -> str:
    """Text that `parse_folded` reads, in a fixed order."""
    return "".join(f"{_SEPARATOR.join(stack)} {count}\n" for stack, count in sorted(profile.counts.items()))


def parse_folded(text: str, source: str) -> FoldedStacks:
    """Parses folded stacks.

    Args:
        source: named in errors.

    Raises:
        RecordUnreadable: a line is no stack with a number; the message names the line.
    """
    counts: Counter[Stack] = Counter()
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        frames, space, count = line.rstrip().rpartition(" ")
        if not (space and frames.strip() and count.isascii() and count.isdigit() and 0 < int(count[:20]) < _LARGEST):
            raise RecordUnreadable(f"{source}, line {number}: no stack with a number of samples", remedy=_REMEDY)
        counts[tuple(frame_name(each) for each in frames.split(_SEPARATOR)[:MOST_FRAMES])] += int(count)
    return FoldedStacks(dict(counts))


def read_folded(file: Path) -> FoldedStacks:
    """Reads a file; see `parse_folded`.

    Raises:
        RecordUnreadable: also if there is no such file, or no sample in it.
    """
    try:
        text = file.read_text("utf-8", errors="replace")
    except OSError as error:
        raise RecordUnreadable(f"{file} cannot be read: {error.strerror}", remedy=_REMEDY) from None
    profile = parse_folded(text, str(file))
    if not profile:
        raise RecordUnreadable(f"{file} holds no samples", remedy="profile for longer, or something that runs")
    return profile
