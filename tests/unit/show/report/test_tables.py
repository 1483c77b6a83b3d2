"""Tables of a terminal: as wide as it is, numbers whole, names broken where their parts meet."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ldos.show.page.model import Column, Kind, Table, Words
from pytest_ldos.show.page.terminal import INDENT, draw_table, print_to_text

NAMES = (
    "/panda_arm_controller/follow_joint_trajectory/_action/feedback",
    "moveit::planning_scene_monitor::PlanningSceneMonitor::onStateUpdate(std::shared_ptr<sensor_msgs::JointState>)",
    "/controller_manager: /controller_manager/switch_controller",
    "runs/20261121-134646-0bd7b1/baseline/trace",
)


def lines_of(columns, rows, width):
    """Without what stands before a table."""
    drawn = print_to_text(draw_table(Table(columns=tuple(columns), rows=tuple(rows)), width + INDENT), color=False)
    return [line.removeprefix(" " * INDENT) for line in drawn.splitlines()]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("width", range(26, 120, 7))
def test_names_are_broken_between_words(name, width):
    _, *lines = lines_of([Column("name", Kind.NAME), Column("n")], [(name, "12345")], width)
    assert max(map(len, lines)) <= width
    assert "12345" in lines[0]
    parts = [line.replace("12345", "").strip() for line in lines]
    assert "".join(parts).replace(" ", "") == name.replace(" ", "")
    longest = max(map(len, re.findall(r"\w+?(?:_|\b)", name)))
    if width - 7 > longest:
        assert not [one for one, other in pairwise(parts) if (one[-1] + other[0]).isalnum()]


def test_lines_break_before_slashes_and_brackets_and_after_colons():
    (_, *lines) = lines_of([Column("name", Kind.NAME)], [(NAMES[1],), (NAMES[0],)], 40)
    assert lines == [
        "moveit::planning_scene_monitor::",
        "PlanningSceneMonitor::onStateUpdate",
        "(std::shared_ptr<sensor_msgs::",
        "JointState>)",
        "/panda_arm_controller",
        "/follow_joint_trajectory/_action",
        "/feedback",
    ]


def test_wide_characters_are_not_split():
    (_, *lines) = lines_of([Column("name", Kind.NAME)], [("大" * 30,)], 25)
    assert "".join(lines) == "大" * 30
    assert max(Words(line).width for line in lines) <= 25


@given(st.lists(st.text(max_size=40), min_size=1, max_size=4), st.integers(20, 120))
def test_names_are_never_truncated(names, width):
    _, *lines = lines_of([Column("name", Kind.NAME)], [(name,) for name in names], width)
    shown = re.sub(r"\s", "", "".join(lines))
    assert shown == re.sub(r"\s", "", "".join(Words(name).text for name in names))
    assert all(Words(line).width <= max(width, 16) + 3 for line in lines)  # a command to a log is written out


@pytest.mark.parametrize("width", [60, 80, 100])
def test_overwide_table_is_split_into_blocks(width):
    columns = [Column("goal", Kind.NAME), *(Column(f"metric {number}") for number in range(12))]
    rows = [(f"reach {number}", *[f"{number}.25 ms"] * 12) for number in range(3)]
    lines = lines_of(columns, rows, width)
    assert max(map(len, lines)) <= width
    assert sum(line.count("1.25 ms") for line in lines) == 12
    counts = {line.count("ms") for line in lines if "ms" in line}
    assert max(counts) - min(counts) <= 1


def test_titles_wrap_to_make_room():
    columns = [Column("topic", Kind.NAME), *(Column(f"far too late {number}") for number in range(4))]
    rows = [("/a", *["1"] * 4)]
    wide, narrow = (lines_of(columns, rows, width) for width in (100, 50))
    assert "far too late 3" in wide[0]
    assert [line.split() for line in narrow][:2] == [["topic", *["far"] * 4], ["too"] * 4]


def test_important_columns_are_kept_and_empty_ones_dropped():
    columns = [Column("name", Kind.WORD), Column("a", rank=2), Column("b", rank=1), Column("empty", rank=1)]
    rows = [("x", "1" * 20, "2" * 20, "")]
    heading, line = lines_of(columns, rows, 30)
    assert heading.split() == ["name", "b"]
    assert line.split() == ["x", "2" * 20]
