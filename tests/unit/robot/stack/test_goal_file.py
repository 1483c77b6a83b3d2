"""Goal sets from a file; what is wrong in one is named."""

from __future__ import annotations

import pytest

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.robot.stack.goals import Goal, Pose, read_goals

GOOD = """
home: {joints: {a: 0, b: -0.5}}
goal_sets:
  reach:
    - name: high
      link: tool0
      pose: {position: [0.4, 0, 0.5], orientation: [1, 0, 0, 0]}
    - {name: wave, joints: {a: 0.5, b: 0.25}}
"""


def read(tmp_path, text: str):
    file = tmp_path / "goals.yaml"
    file.write_text(text)
    return read_goals(file)


@pytest.mark.parametrize("text", [GOOD, f"\ufeff{GOOD}"], ids=["plain", "behind a byte order mark"])
def test_a_file_of_goals(tmp_path, text):
    book = read(tmp_path, text)
    assert book.home == Goal("home", joints={"a": 0.0, "b": -0.5})
    assert book.goals("reach") == (
        Goal("high", pose=Pose((0.4, 0.0, 0.5), (1.0, 0.0, 0.0, 0.0)), link="tool0"),
        Goal("wave", joints={"a": 0.5, "b": 0.25}),
    )
    with pytest.raises(ConfigurationError, match=r"no goal set 'dance'\n.*known are: reach"):
        book.goals("dance")


@pytest.mark.parametrize(
    ("was", "becomes", "message"),
    [
        ("home: {joints: {a: 0, b: -0.5}}", "", "home is None"),
        (
            "home: {joints: {a: 0, b: -0.5}}",
            "home: {joints: {}}",
            "home joints: goal 'home' has no joints\n.*position of every joint",
        ),
        ("goal_sets:", "goal_set:", "unknown key of .* 'goal_set'\n.*'goal_sets'"),
        ("name: high", "nane: high", "unknown key .*goal set 'reach'.* 'nane'\n.*'name'"),
        ("[0.4, 0, 0.5]", "[0.4, 0]", r"goal 'high' pose position is \[0.4, 0\]\n.*a list of 3 finite numbers"),
        ("[1, 0, 0, 0]", "[0, 0, 0, 0]", "is not a rotation"),
        ("[1, 0, 0, 0]", "[1, 0, 0, yes]", "orientation is .*\n.*a list of 4 finite numbers"),
        ("a: 0.5", "a: half", "'wave' joints is .*'half'.*\n.*a table of finite numbers"),
        ("a: 0.5", f"a: {10**400}", "'wave' joints is .*\n.*a table of finite numbers"),
        ("a: 0.5", "a: .inf", "'wave' joints is .*inf.*\n.*a table of finite numbers"),
        ("home:", "1: 2\nhome:", "unknown key of .* '1'"),
        ("link: tool0", "link: null", "goal 'high' link is None\n.*a text"),
        ("name: high", "name: high\n      3: 4", "unknown key .*'high' '3'"),
        ("{name: wave, joints: {a: 0.5, b: 0.25}}", "{name: wave}", "'wave' must have either a pose or joints"),
        ("{name: wave, joints: {a: 0.5, b: 0.25}}", "wave", "goal set 'reach' is 'wave'"),
        ("  reach:", "  reach: []\n  more:", "goal set 'reach' is not a list of goals"),
        ("home:", "home: [", "is not YAML"),
    ],
)
def test_errors_are_named(tmp_path, was, becomes, message):
    assert was in GOOD
    with pytest.raises(ConfigurationError, match=message):
        read(tmp_path, GOOD.replace(was, becomes))


def test_no_file(tmp_path):
    with pytest.raises(ConfigurationError, match="cannot be read: No such file"):
        read_goals(tmp_path / "none.yaml")
