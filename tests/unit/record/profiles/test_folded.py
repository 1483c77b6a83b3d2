"""Folded stacks are read, written, merged, and refused if invalid."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ldos.base.errors import RecordUnreadable
from pytest_ldos.record.profiles import (
    MOST_FRAMES,
    FoldedStacks,
    frame_name,
    merge,
    parse_folded,
    read_folded,
    render_folded,
)

NAMES = st.text(min_size=1, max_size=30).map(frame_name)
PROFILES = st.dictionaries(st.lists(NAMES, min_size=1, max_size=5).map(tuple), st.integers(1, 10**9), max_size=8)


@given(PROFILES)
def test_folded_stacks_round_trip(counts):
    profile = FoldedStacks(counts)
    assert parse_folded(render_folded(profile), "it") == profile


def test_lines_of_one_stack_add_up():
    assert parse_folded("a;b 2\na;b 3\n\na 1\n", "it").counts == {("a", "b"): 5, ("a",): 1}


def test_profiles_add_up():
    together = merge([FoldedStacks({("a",): 1}), FoldedStacks({("a",): 2, ("b",): 4})])
    assert together.counts == {("a",): 3, ("b",): 4}
    assert together.samples == 7


@pytest.mark.parametrize(
    "line", ["a;b", "a;b x", "a;b -1", "a;b 0", " 5", "a;b ٣", "a;b 1.5", f"a {10**30}", "\x1b[31m"]
)
def test_invalid_line_is_refused_with_its_number(line):
    with pytest.raises(RecordUnreadable, match="it, line 2: no stack"):
        parse_folded(f"a 1\n{line}\n", "it")


def test_hostile_names_are_sanitised():
    name = frame_name("std::vector<a<b>, &c>::f()\x1b[31m;\nevil\u202e")
    assert name == "std::vector<a<b>, &c>::f()\\x1b[31m: evil\\x202e"
    assert len(frame_name("x" * 10_000)) == 400
    assert frame_name(" ") == "?"


def test_long_names_keep_their_ends():
    """Names of templates have common prefixes."""
    long = f"std::_Function_handler<{'rclcpp::AnySubscriptionCallback, ' * 30}>"
    names = {frame_name(f"{long}::_M_invoke"), frame_name(f"{long}::_M_manager")}
    assert len(names) == 2
    assert all(len(name) == 400 and frame_name(name) == name for name in names)


def test_too_deep_stack_loses_its_innermost_frames():
    (stack,) = parse_folded(";".join(["f"] * 100_000) + " 1", "it").counts
    assert len(stack) == MOST_FRAMES


def test_empty_and_missing_files_are_refused(tmp_path):
    empty = tmp_path / "empty.folded"
    empty.write_text("\n")
    with pytest.raises(RecordUnreadable, match="holds no samples"):
        read_folded(empty)
    with pytest.raises(RecordUnreadable, match="No such file"):
        read_folded(tmp_path / "absent.folded")
    with pytest.raises(RecordUnreadable, match="Is a directory"):
        read_folded(tmp_path)


def test_binary_file_is_refused(tmp_path):
    file = tmp_path / "x.folded"
    file.write_bytes(bytes(range(256)))
    with pytest.raises(RecordUnreadable, match="no stack"):
        read_folded(file)
