"""Sets of messages from a YAML file."""

from __future__ import annotations

import pytest

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.robot.stack.protocol import read_cases, single_case

FILE = """
goal_sets:
  corners:
    - {name: near, message: {pose: {position: {x: 1.0}}}}
    - {name: far}
reset: {pose: {}}
"""


def written(folder, text):
    file = folder / "goals.yaml"
    file.write_text(text)
    return file


def test_messages_keep_their_fields(tmp_path):
    book = read_cases(written(tmp_path, FILE))
    assert [(case.name, case.message) for case in book.cases("corners")] == [
        ("near", {"pose": {"position": {"x": 1.0}}}),
        ("far", {}),
    ]
    assert book.reset == {"pose": {}}
    assert list(book.all_messages) == ["goal set 'corners', goal 'near'", "goal set 'corners', goal 'far'", "reset"]


def test_the_only_set_is_the_default_one(tmp_path):
    assert len(read_cases(written(tmp_path, FILE)).cases("reach")) == 2
    assert single_case("window").cases("reach")[0].name == "window"


def test_missing_set_is_named(tmp_path):
    with pytest.raises(ConfigurationError, match="no goal set 'edges'") as caught:
        read_cases(written(tmp_path, FILE)).cases("edges")
    assert "corners" in caught.value.remedy


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("goal_sets: {a: []}", "not a list of goals"),
        ("goal_sets: {}", "no goal set"),
        ("goal_sets: {a: [{message: {}}]}", "lacks name"),
        ("goal_sets: {a: [{name: b, mesage: {}}]}", "mesage"),
        ("goal_sets: {a: [{name: b, message: 3}]}", "must be a table"),
        ("home: {}", "home"),
        ("{", "not YAML"),
    ],
)
def test_invalid_file_is_refused_with_the_place(tmp_path, text, message):
    with pytest.raises(ConfigurationError, match=message):
        read_cases(written(tmp_path, text))
