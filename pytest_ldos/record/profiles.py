"""Folded stacks (samples per call stack): trees, differences of two versions, export to speedscope.

As text, one line per stack: frames from the outermost on, separated by ``;``, a space, the number of samples. Brendan
Gregg's FlameGraph, perf's and py-spy's tools have the same format.

Samples are counts, so a share has sampling error. The interval of a difference is Agresti
and Caffo's, with the family-wise error divided over all frames by Bonferroni's rule. If a version was
sampled in several starts, overdispersion between starts widens all intervals (the dispersion of quasi-likelihood;
Student's distribution accounts for the uncertainty of its estimate). With a single start it is unknown, and
`Difference.knows_starts` is false.

References: A. Agresti, B. Caffo, "Simple and effective confidence intervals for proportions and differences of
proportions result from adding two successes and two failures", The American Statistician 54, 2000;
P. McCullagh, J. A. Nelder, "Generalized Linear Models", 2nd ed., 4.5;
https://www.speedscope.app/file-format-schema.json (``sampled`` profiles).
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from statistics import NormalDist
from typing import Any, Final

from scipy.special import stdtrit

from pytest_ldos.base.errors import ProfilingFailed, RecordUnreadable
from pytest_ldos.base.text import one_line

Stack = tuple[str, ...]  # frame names, the outermost (the process) first; at least one

MOST_FRAMES: Final = 512  # Largest depth of a stack; perf's limit is 127. Deeper stacks lose their innermost frames.
_LONGEST_NAME: Final = 400
_KEPT_END: Final = 150  # number of characters kept at the end of a long name, where names of templates differ
_SEPARATOR: Final = ";"
_LARGEST: Final = 2**53
_REMEDY: Final = "name a .folded file as ldos, perf's stackcollapse or py-spy (--format raw) write it"


def frame_name(text: str) -> str:
    """Converts an untrusted name to a frame name: one line, without the separator of frames."""
    name = one_line(text).replace(_SEPARATOR, ":").strip()
    if len(name) > _LONGEST_NAME:
        name = f"{name[: _LONGEST_NAME - _KEPT_END - 1]}…{name[-_KEPT_END:]}"
    return name or "?"


@dataclass(frozen=True)
class FoldedStacks:
    """Samples by stack; each number of samples is at least 1. `files` are libraries by function, if known."""

    counts: Mapping[Stack, int]
    files: Mapping[str, str] = field(default_factory=dict, compare=False)

    @property
    def samples(self) -> int:
        return sum(self.counts.values())

    def __bool__(self) -> bool:
        return bool(self.counts)


def merge(profiles: Iterable[FoldedStacks]) -> FoldedStacks:
    together: Counter[Stack] = Counter()
    files: dict[str, str] = {}
    for each in profiles:
        together.update(each.counts)
        files.update(each.files)
    return FoldedStacks(dict(together), files)


def render_folded(profile: FoldedStacks) -> str:
    """Text in the format of `parse_folded`, in a fixed order."""
    return "".join(f"{_SEPARATOR.join(stack)} {count}\n" for stack, count in sorted(profile.counts.items()))


def parse_folded(text: str, source: str) -> FoldedStacks:
    """Parses folded stacks; raises `RecordUnreadable`, with `source` and the number of the line, if one is invalid."""
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
    """Reads a file; raises `RecordUnreadable` if it is missing, has no sample, or as `parse_folded` does."""
    try:
        text = file.read_text("utf-8", errors="replace")
    except OSError as error:
        raise RecordUnreadable(f"{file} cannot be read: {error.strerror}", remedy=_REMEDY) from None
    profile = parse_folded(text, str(file))
    if not profile:
        raise RecordUnreadable(f"{file} holds no samples", remedy="profile for longer, or something that runs")
    return profile


@dataclass(eq=False)
class Frame:
    """A function in the context of its callers."""

    path: Stack  # from the outermost frame to this one; empty for the root
    # counts, own: samples in it and its callees, and in the function itself; one number per profile
    counts: list[int]
    own: list[int]
    children: dict[str, Frame] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.path[-1] if self.path else "all"

    @property
    def depth(self) -> int:
        return len(self.path)

    def walk(self) -> Iterator[Frame]:
        """Yields this frame and all below it in depth-first order, children sorted by name."""
        waiting = [self]
        while waiting:
            frame = waiting.pop()
            yield frame
            waiting.extend(frame.children[name] for name in sorted(frame.children, reverse=True))


def build_tree(profiles: Iterable[FoldedStacks]) -> Frame:
    given = list(profiles)
    whole = Frame((), [0] * len(given), [0] * len(given))
    for number, profile in enumerate(given):
        for stack, count in profile.counts.items():
            frame = whole
            frame.counts[number] += count
            for depth, name in enumerate(stack, 1):
                if name not in frame.children:
                    frame.children[name] = Frame(stack[:depth], [0] * len(given), [0] * len(given))
                frame = frame.children[name]
                frame.counts[number] += count
            frame.own[number] += count
    return whole


ALPHA: Final = 0.05  # upper limit of the probability of any false alarm between equal versions
_FEWEST_EXPECTED: Final = 5.0
"""Fewest expected samples of a stack per start that contributes to the spread between starts."""

_FEWEST_DEGREES: Final = 0.5


@dataclass(frozen=True)
class Change:
    """Change of a frame's share (0 to 1) of all samples, including its callees; `low` and `high` are its interval."""

    path: Stack
    base: float
    head: float
    low: float
    high: float

    @property
    def change(self) -> float:
        return self.head - self.base

    @property
    def is_certain(self) -> bool:
        """True if the interval excludes 0."""
        return self.low > 0 or self.high < 0


@dataclass(frozen=True)
class Difference:
    """Comparison of two profiles."""

    tree: Frame  # tree of both; the first count of a frame is the base's
    changes: dict[Stack, Change]  # change of every frame except the root, by path
    dispersion: float  # ratio of the counts' variance between starts to the Poisson variance; at least 1
    degrees: float  # degrees of freedom of the dispersion; 0 if it was not estimated

    @property
    def knows_starts(self) -> bool:
        """True if the variation between starts is known."""
        return self.degrees > 0

    @property
    def base_samples(self) -> int:
        return self.tree.counts[0]

    @property
    def head_samples(self) -> int:
        return self.tree.counts[1]

    @property
    def has_common_frame(self) -> bool:
        return any(all(frame.counts) for frame in self.tree.walk() if frame.path)

    def certain(self) -> list[Change]:
        """Changes whose interval excludes 0, the largest first."""
        return sorted((each for each in self.changes.values() if each.is_certain), key=lambda each: -abs(each.change))

    def half_width(self, share: float) -> float:
        """Half-width of the interval for a frame with this share in both versions."""
        low, high = _interval(
            (share * self.base_samples, self.base_samples),
            (share * self.head_samples, self.head_samples),
            _quantile(len(self.changes), self.degrees) * math.sqrt(self.dispersion),
        )
        return (high - low) / 2


def compare_profiles(base: Sequence[FoldedStacks], head: Sequence[FoldedStacks]) -> Difference:
    """Compares shares of two versions, one profile per start; raises `ProfilingFailed` if a version has no samples."""
    for name, parts in (("base", base), ("head", head)):
        if not any(parts):
            raise ProfilingFailed(f"the {name} has no samples to compare", remedy="profile for longer")
    tree = build_tree([merge(base), merge(head)])
    frames = [frame for frame in tree.walk() if frame.path]
    squares, degrees = (sum(each) for each in zip(*map(_deviations, (base, head)), strict=True))
    dispersion = max(1.0, squares / degrees) if degrees else 1.0
    width = _quantile(len(frames), degrees) * math.sqrt(dispersion)
    changes = {}
    bases, heads = tree.counts
    for frame in frames:
        base_count, head_count = frame.counts
        low, high = _interval((base_count, bases), (head_count, heads), width)
        changes[frame.path] = Change(frame.path, base_count / bases, head_count / heads, low, high)
    return Difference(tree, changes, dispersion, degrees)


@dataclass(frozen=True)
class Growth:
    """A function whose share of CPU time grew from the base to this version.

    Attributes:
        process: name of its process.
        function: its name.
        file: its source file (Python) or library; empty if unknown.
        base: its share of the base's CPU time, 0 to 1, without functions that it calls.
        head: likewise, of this version's.
        callers: functions through which it was mostly called in this version, up to three, the innermost last.
    """

    process: str
    function: str
    file: str
    base: float
    head: float
    callers: tuple[str, ...]


@dataclass(frozen=True)
class Evidence:
    """Comparison of both versions' profiles after a regression.

    Attributes:
        tools: profilers, and their rate.
        starts: number of profiled stack starts of both versions together.
        smallest: growth that is reported of a function with 1 % of CPU time, as a share of CPU time.
        grown: up to three functions whose share of CPU time grew for certain, the largest growth first.
        files: changed files, those in packages of functions that grew if there are any, with added and removed lines.
    """

    tools: str
    starts: int
    smallest: float
    grown: tuple[Growth, ...]
    files: tuple[str, ...] = ()


_PLACED: Final = re.compile(r"(.+) \(([^()]+\.py)(?::\d+)?\)")  # a frame of py-spy: ``plan (planner.py:12)``


def find_grown(base: Sequence[FoldedStacks], head: Sequence[FoldedStacks], *, tools: str) -> Evidence:
    """Compares functions without their callees; an edit may shift their lines. Raises as `compare_profiles`."""
    by_function = (
        [merge(FoldedStacks({_function_of(stack): count}) for stack, count in each.counts.items()) for each in profiles]
        for profiles in (base, head)
    )
    found = compare_profiles(*by_function)
    whole, grown = merge(head), []
    heaviest = {_function_of(stack): stack for stack, _ in sorted(whole.counts.items(), key=lambda item: item[1])}
    for change in [each for each in found.certain() if each.change > 0 and len(each.path) > 1][:3]:
        process, name = change.path
        placed = _PLACED.fullmatch(name)
        function, file = placed.groups() if placed else (name, whole.files.get(name, ""))
        callers = tuple(_PLACED.sub(r"\1", each) for each in heaviest[change.path][1:-1][-3:])
        grown.append(Growth(process, function, file, change.base, change.head, callers))
    return Evidence(tools, len(base) + len(head), found.half_width(0.01), tuple(grown))


def _function_of(stack: Stack) -> Stack:
    """The process and the innermost function."""
    return (stack[0], *(_PLACED.sub(r"\1 (\2)", each) for each in stack[1:][-1:]))


def _quantile(frames: int, degrees: float) -> float:
    """Quantile for simultaneous intervals: Student's if the dispersion was estimated, else normal."""
    beyond = ALPHA / 2 / max(frames, 1)
    return float(-stdtrit(degrees, beyond)) if degrees else NormalDist().inv_cdf(1 - beyond)


def _interval(base: tuple[float, int], head: tuple[float, int], width: float) -> tuple[float, float]:
    shares = [(count + 1) / (total + 2) for count, total in (base, head)]
    variance = sum(share * (1 - share) / (total + 2) for share, (_, total) in zip(shares, (base, head), strict=True))
    middle, reach = shares[1] - shares[0], width * math.sqrt(variance)
    return max(-1.0, middle - reach), min(1.0, middle + reach)


def _deviations(parts: Sequence[FoldedStacks]) -> tuple[float, float]:
    """Pearson's chi-squared of frequent stacks over starts, and its degrees of freedom; 0 if it cannot be estimated.

    If all stacks are frequent, there is one degree less, because their shares sum to 1.
    """
    sampled = [part for part in parts if part]
    whole = merge(sampled)
    shares = [part.samples / whole.samples for part in sampled]
    frequent = [stack for stack, count in whole.counts.items() if min(shares) * count >= _FEWEST_EXPECTED]
    covered = sum(whole.counts[stack] for stack in frequent) / whole.samples
    degrees = (len(sampled) - 1) * (len(frequent) - covered)
    if degrees < _FEWEST_DEGREES:
        return 0.0, 0.0
    expected = (
        (part, stack, share * whole.counts[stack])
        for part, share in zip(sampled, shares, strict=True)
        for stack in frequent
    )
    return sum((part.counts.get(stack, 0) - each) ** 2 / each for part, stack, each in expected), degrees


SCHEMA: Final = "https://www.speedscope.app/file-format-schema.json"


def render_speedscope(profile: FoldedStacks, name: str) -> str:
    """JSON text with a profile of all samples, followed by one profile per process."""
    frames: dict[str, int] = {}
    stacks = sorted(profile.counts.items())
    for stack, _ in stacks:
        for frame in stack:
            frames.setdefault(frame, len(frames))
    profiles = [_sampled("all processes", stacks, frames)]
    profiles += [_sampled(each, list(own), frames) for each, own in groupby(stacks, lambda pair: pair[0][0])]
    document = {
        "$schema": SCHEMA,
        "name": name,
        "exporter": f"pytest-ldos {version('pytest-ldos')}",
        "activeProfileIndex": 0,
        "shared": {"frames": [{"name": each} for each in frames]},
        "profiles": profiles,
    }
    return json.dumps(document, allow_nan=False) + "\n"


def _sampled(name: str, stacks: list[tuple[tuple[str, ...], int]], frames: dict[str, int]) -> dict[str, Any]:
    weights = [count for _, count in stacks]
    return {
        "type": "sampled",
        "name": name,
        "unit": "none",
        "startValue": 0,
        "endValue": sum(weights),
        "samples": [[frames[frame] for frame in stack] for stack, _ in stacks],
        "weights": weights,
    }
