"""The table that says how the environment of another revision is made."""

from __future__ import annotations

import pytest

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.scenario.base import BaseSpec
from pytest_ldos.scenario.settings import parse_table


def test_it_has_defaults():
    assert parse_table({}).base == BaseSpec(setup=(), python=".venv/bin/python")


def test_it_is_read():
    table = {"base": {"setup": ["make", "setup"], "python": "env/bin/python"}}
    assert parse_table(table).base == BaseSpec(setup=("make", "setup"), python="env/bin/python")


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"base": "main"}, r"base is 'main'(.|\n)*write it as a table"),
        ({"base": {"setpu": []}}, "did you mean 'setup'"),
        ({"base": {"setup": "make"}}, r"setup is 'make'(.|\n)*list of its words"),
        ({"base": {"setup": ["make", 3]}}, "list of its words"),
        ({"base": {"python": 3}}, "python is 3"),
        ({"base": {"python": ""}}, "python is empty"),
    ],
)
def test_what_is_wrong_is_told(table, message):
    with pytest.raises(ConfigurationError, match=message):
        parse_table(table)
