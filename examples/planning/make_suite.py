"""Writes suite.yaml: problems for a Panda, from reaching over a table to narrow passages, two of them without solution.

Metres, degrees and radians; the base of the arm is at the origin, and x is ahead of it. The grades of the present file
are kept; measure_suite.py measures them.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field, replace
from pathlib import Path

SUITE = Path(__file__).with_name("suite.yaml")
JOINTS = [f"panda_joint{number}" for number in range(1, 8)]
READY = [0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785]

Quaternion = tuple[float, float, float, float]


def about(axis: str, degrees: float) -> Quaternion:
    half = math.radians(degrees) / 2
    x, y, z = (math.sin(half) if each == axis else 0.0 for each in "xyz")
    return x, y, z, math.cos(half)


def times(one: Quaternion, other: Quaternion) -> Quaternion:
    (a, b, c, d), (e, f, g, h) = one, other
    return (
        d * e + a * h + b * g - c * f,
        d * f - a * g + b * h + c * e,
        d * g + a * f - b * e + c * h,
        d * h - a * e - b * f - c * g,
    )


def pointing(*, tilt: float = 180, azimuth: float = 0, is_flat: bool = True) -> Quaternion:
    """The hand points ahead at a tilt of 90 degrees, down at 180; the fingers' line is level, or across that."""
    # The hand is turned by 45 degrees against panda_link8.
    return times(times(about("z", azimuth), about("y", tilt)), about("z", 45 if is_flat else -45))


def box(name: str, size: list[float], at: list[float], turned: float = 0) -> dict:
    return {"name": name, "box": size, "position": at, **({"orientation": [*about("z", turned)]} if turned else {})}


def pole(name: str, height: float, radius: float, at: list[float], axis: str = "z") -> dict:
    turned = {"x": about("y", 90), "y": about("x", 90)}.get(axis)
    return {
        "name": name,
        "cylinder": [height, radius],
        "position": at,
        **({"orientation": [*turned]} if turned else {}),
    }


def ball(name: str, radius: float, at: list[float]) -> dict:
    return {"name": name, "sphere": [radius], "position": at}


FLOOR = box("floor", [3, 3, 0.02], [0, 0, -0.03])


def table(height: float, *, near: float = 0.35) -> list[dict]:
    """A table of 0.7 x 1.2 m, whose edge is `near` the arm."""
    legs = [
        pole(f"leg {number}", height - 0.04, 0.02, [near + x, y, (height - 0.04) / 2])
        for number, (x, y) in enumerate([(0.03, 0.57), (0.03, -0.57), (0.67, 0.57), (0.67, -0.57)], 1)
    ]
    return [FLOOR, box("table", [0.7, 1.2, 0.04], [near + 0.35, 0, height - 0.02]), *legs]


def wall_on_table(height: float) -> list[dict]:
    return [*table(0.2, near=0.25), box("wall", [0.7, 0.02, height], [0.6, 0, 0.2 + height / 2])]


def bin_on_table(width: float, depth: float) -> list[dict]:
    """An open box of `width` x `width` and `depth`, ahead and to the right."""
    x, y, floor, thick = 0.5, -0.2, 0.1, 0.015
    half, middle = (width + thick) / 2, floor + depth / 2
    return [
        *table(0.1, near=0.25),
        box("bin back", [thick, width + 2 * thick, depth], [x + half, y, middle]),
        box("bin front", [thick, width + 2 * thick, depth], [x - half, y, middle]),
        box("bin left", [width, thick, depth], [x, y + half, middle]),
        box("bin right", [width, thick, depth], [x, y - half, middle]),
    ]


def shelf(*, is_divided: bool = False) -> list[dict]:
    """Boards at 0.15, 0.45, 0.75 and 1.05 m, 0.3 m deep and 1 m wide, with walls."""
    boards = [box(f"board {number}", [0.3, 1.0, 0.02], [0.7, 0, 0.15 + 0.3 * number]) for number in range(4)]
    walls = [
        box("left wall", [0.3, 0.02, 0.92], [0.7, 0.51, 0.6]),
        box("right wall", [0.3, 0.02, 0.92], [0.7, -0.51, 0.6]),
        box("back wall", [0.02, 1.04, 0.92], [0.86, 0, 0.6]),
    ]
    return [FLOOR, *boards, *walls, *([box("divider", [0.3, 0.02, 0.88], [0.7, 0, 0.6])] if is_divided else [])]


def cage(*, bars: int, radius: float = 0.42, has_lid: bool = True) -> list[dict]:
    """Vertical bars of 3 cm on a circle around the arm, with one missing in front; a lid of two crossed beams."""
    found = [FLOOR]
    for number in range(1, bars):
        angle = 2 * math.pi * number / bars
        at = [radius * math.cos(angle), radius * math.sin(angle), 0.5]
        found.append(pole(f"bar {number}", 1.0, 0.015, at))
    if has_lid:
        found += [pole(f"beam {axis}", 2 * radius, 0.015, [0, 0, 1.0], axis) for axis in "xy"]
    return found


def gate(gap: float) -> list[dict]:
    """Two walls ahead of the arm with a vertical gap between them."""
    width = 0.6
    return [
        FLOOR,
        box("left wall", [0.04, width, 1.0], [0.42, (gap + width) / 2, 0.5]),
        box("right wall", [0.04, width, 1.0], [0.42, -(gap + width) / 2, 0.5]),
    ]


def slot(gap: float, *, height: float = 0.5) -> list[dict]:
    """A wall ahead of the arm with a level gap at a height."""
    return [
        FLOOR,
        box("below", [0.04, 1.4, height - gap / 2], [0.42, 0, (height - gap / 2) / 2]),
        box("above", [0.04, 1.4, 1.2 - height - gap / 2], [0.42, 0, (1.2 + height + gap / 2) / 2]),
    ]


def windows(gap: float) -> list[dict]:
    """A wall ahead with two square windows, left and right."""
    at, z = 0.25, 0.45
    side = 0.7 - at - gap / 2
    return [
        FLOOR,
        box("below", [0.04, 1.4, z - gap / 2], [0.42, 0, (z - gap / 2) / 2]),
        box("above", [0.04, 1.4, 1.2 - z - gap / 2], [0.42, 0, (1.2 + z + gap / 2) / 2]),
        box("middle", [0.04, 2 * at - gap, gap], [0.42, 0, z]),
        box("left", [0.04, side, gap], [0.42, 0.7 - side / 2, z]),
        box("right", [0.04, side, gap], [0.42, side / 2 - 0.7, z]),
    ]


def forest() -> list[dict]:
    low = [(0.4, 0.25, 0.35), (0.5, 0.0, 0.25), (0.45, -0.3, 0.5)]
    high = [(0.6, 0.2, 0.6), (0.3, 0.2, 0.85), (0.6, -0.15, 0.7)]
    return [FLOOR, *(ball(f"ball {number}", 0.09, [*place]) for number, place in enumerate(low + high, 1))]


def divided() -> list[dict]:
    """A wall through the arm's axis, closed but for a hole of 0.28 x 0.15 m around the shoulder.

    There is no way from one side to the other: the elbow would cross the wall's plane, where the upper arm lies in it.
    """
    return [
        FLOOR,
        box("front", [1.1, 0.02, 1.5], [0.69, 0, 0.74]),
        box("back", [1.0, 0.02, 1.5], [-0.75, 0, 0.74]),
        box("top", [0.5, 0.02, 1.0], [-0.05, 0, 0.98]),
    ]


@dataclass
class Problem:
    """A scene by its function and arguments, a start, and a goal: joints, or a pose of panda_link8."""

    name: str
    objects: list[dict]
    goal: list[float] | tuple[list[float], Quaternion]
    start: list[float] = field(default_factory=lambda: [*READY])
    grade: str = ""


LEFT = [1.2, 0.3, 0.0, -1.9, 0.0, 2.2, 0.785]
RIGHT = [-1.2, 0.3, 0.0, -1.9, 0.0, 2.2, 0.785]
IN_WINDOW = [1.478, 1.032, -1.38, -1.59, 2.469, 3.132, 2.483]
ASIDE_LEFT = [1.57, 0.7, 0.0, -1.9, 0.0, 2.6, 0.785]
ASIDE_RIGHT = [-1.57, 0.7, 0.0, -1.9, 0.0, 2.6, 0.785]


def problems() -> list[Problem]:
    flat, upright, lowered = pointing(tilt=90), pointing(tilt=90, is_flat=False), pointing(tilt=110)
    down, across = pointing(), pointing(is_flat=False)
    low, high = table(0.2, near=0.25), table(0.7, near=0.5)
    pillar = [FLOOR, pole("pillar", 1.0, 0.05, [0.45, 0.15, 0.5])]
    shelves, compartments = shelf(), shelf(is_divided=True)
    return [
        Problem("free: joints", [FLOOR], [1.2, -0.3, 0.0, -1.8, 0.0, 1.571, 0.785]),
        Problem("free: pose", [FLOOR], ([0.4, 0.3, 0.5], down)),
        Problem("table: to a place on it", low, ([0.5, 0.25, 0.36], down)),
        Problem("table: from left to right", low, RIGHT, LEFT),
        Problem("table: over a low wall", wall_on_table(0.2), RIGHT, LEFT),
        Problem("table: over a high wall", wall_on_table(0.45), RIGHT, LEFT),
        Problem("table: under a high one", high, ([0.62, 0.0, 0.45], lowered)),
        Problem("table: under a low one", table(0.6, near=0.4), ([0.6, 0.2, 0.2], flat)),
        Problem("pillar: past it", pillar, ([0.45, 0.4, 0.4], down)),
        Problem("pillar: around it", pillar, LEFT, RIGHT),
        Problem("balls: between them", forest(), ([0.6, 0.0, 0.45], flat)),
        Problem("balls: through them", forest(), LEFT, RIGHT),
        Problem("box: wide and shallow", bin_on_table(0.4, 0.15), ([0.5, -0.2, 0.25], down)),
        Problem("box: deep", bin_on_table(0.35, 0.3), ([0.5, -0.2, 0.25], down)),
        Problem("box: narrow and deep", bin_on_table(0.28, 0.25), ([0.5, -0.2, 0.27], across)),
        Problem("shelf: low", shelves, ([0.58, 0.2, 0.3], flat)),
        Problem("shelf: middle", shelves, ([0.58, -0.2, 0.6], flat)),
        Problem("shelf: high", shelves, ([0.58, 0.0, 0.9], flat)),
        Problem("shelf: low, divided", compartments, ([0.58, 0.22, 0.3], upright)),
        Problem("shelf: high, divided", compartments, ([0.58, -0.22, 0.9], upright)),
        Problem("cage: out between ten bars", cage(bars=10), ([0.6, 0.0, 0.45], flat)),
        Problem("cage: out between fourteen bars", cage(bars=14), ([0.6, 0.0, 0.5], upright)),
        Problem("cage: turn inside", cage(bars=10, radius=0.5), [2.5, -1.2, 0.0, -2.6, 0.0, 1.8, 0.785]),
        Problem("passage: wide gate", gate(0.4), ([0.62, 0.0, 0.5], flat)),
        Problem("passage: narrow gate", gate(0.2), ([0.62, 0.0, 0.5], pointing(tilt=110, is_flat=False))),
        Problem("passage: slot", slot(0.2), ([0.62, 0.0, 0.5], flat)),
        Problem("passage: through a window", windows(0.3), ([0.6, 0.25, 0.45], pointing(tilt=100))),
        Problem("passage: window to window", windows(0.3), ([0.6, -0.25, 0.45], pointing(tilt=100)), IN_WINDOW),
        Problem("no way: joints", divided(), ASIDE_RIGHT, ASIDE_LEFT),
        Problem("no way: pose", divided(), ([0.3, -0.4, 0.5], down), ASIDE_LEFT),
    ]


def numbers(values: object) -> str:
    return f"[{', '.join(f'{round(each, 4) + 0.0:g}' for each in values)}]"


def joints(values: list[float]) -> str:
    return f"{{{', '.join(f'{name}: {value:g}' for name, value in zip(JOINTS, values, strict=True))}}}"


def to_yaml(found: list[Problem]) -> str:
    lines = [
        "# Written by make_suite.py. Metres and radians.",
        "group: panda_arm",
        "frame: world",
        f"start: {joints(READY)}",
        "problems:",
    ]
    for problem in found:
        lines += [f"  - name: '{problem.name}'", *([f"    set: {problem.grade}"] if problem.grade else [])]
        lines += ["    objects:"]
        for each in problem.objects:
            values = {key: value if key == "name" else numbers(value) for key, value in each.items()}
            lines.append(f"      - {{{', '.join(f'{key}: {value}' for key, value in values.items())}}}")
        if problem.start != READY:
            lines.append(f"    start: {joints(problem.start)}")
        if isinstance(problem.goal, tuple):
            at, turned = map(numbers, problem.goal)
            lines.append(f"    goal: {{link: panda_link8, pose: {{position: {at}, orientation: {turned}}}}}")
        else:
            lines.append(f"    goal: {{joints: {joints(problem.goal)}}}")
    return "\n".join(lines) + "\n"


def graded() -> list[Problem]:
    """The problems, with the grades of the present file."""
    written = SUITE.read_text("utf-8") if SUITE.is_file() else ""
    grades = dict(re.findall(r"name: '(.*)'\n    set: (.*)", written))
    return [replace(problem, grade=grades.get(problem.name, "")) for problem in problems()]


if __name__ == "__main__":
    SUITE.write_text(to_yaml(graded()), "utf-8")
