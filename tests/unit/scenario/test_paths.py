"""The ``[[tool.ldos.paths]]`` tables, and refusals."""

from __future__ import annotations

import math

import pytest

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.base.ros2 import BUILT_IN_PATHS, LinkRule, LinkSpec, PathSpec
from pytest_ldos.scenario.settings import parse_paths, parse_table

LINK = {"rule": "partial_sync", "node": "/fusion", "inputs": ["/a", "/b"], "outputs": ["/out"]}
PATH = {"name": "fusion", "via": ["/a", "/out"]}


def test_a_whole_path():
    table = PATH | {"deadline_ms": 2.5, "hard": True, "links": [LINK]}
    (path,) = parse_paths([table])
    link = LinkSpec(rule=LinkRule.PARTIAL_SYNC, node="/fusion", inputs=("/a", "/b"), outputs=("/out",))
    assert path == PathSpec(name="fusion", via=("/a", "/out"), deadline_ms=2.5, hard=True, links=(link,))
    assert (path.of_phases, path.deadline_ns) == (False, 2_500_000)


def test_a_path_of_phases_without_a_deadline():
    (path,) = parse_paths([{"name": "goal", "via": ["goal_sent", "result"]}])
    assert (path.of_phases, path.deadline_ns, path.hard, path.links) == (True, None, False, ())


def test_no_paths():
    assert parse_paths([]) == ()
    assert parse_table({}).paths == BUILT_IN_PATHS


def test_a_path_replaces_the_built_in_one_of_its_name():
    own = {"name": "state feedback", "via": ["/joint_states", "/pose"]}
    paths = {path.name: path for path in parse_table({"paths": [own, PATH]}).paths}
    assert paths["state feedback"].via == ("/joint_states", "/pose")
    assert set(paths) == {"fusion", *(path.name for path in BUILT_IN_PATHS)}


@pytest.mark.parametrize("tables", [{"name": "x"}, "x", 3, [PATH, "x"], [[PATH]]])
def test_value_that_is_not_a_list_of_tables(tables):
    with pytest.raises(ConfigurationError, match=r"paths must be tables\n.*\[\[tool.ldos.paths\]\]"):
        parse_paths(tables)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"deadline": 3}, r"unknown key \[\[tool.ldos.paths\]\] fusion 'deadline'\n.*did you mean 'deadline_ms'\?"),
        ({"name": None}, r"\[\[tool.ldos.paths\]\] lacks name\n.*add that key"),
        ({"name": ""}, r"a path has no name\n.*name = "),
        ({"name": 7}, r"name is 7\n.*must be a text"),
        ({"via": None}, r"fusion lacks via\n"),
        ({"via": "/a"}, r"fusion via is '/a'\n.*a list of texts"),
        ({"via": ["/a", 3]}, r"fusion via is \['/a', 3\]\n.*a list of texts"),
        ({"via": []}, r"path 'fusion' needs a beginning and an end\n.*via = \[FROM, …, TO\]"),
        ({"via": ["/a"]}, r"path 'fusion' needs a beginning and an end"),
        (
            {"via": ["/a", "result"]},
            r"leads through /a, result\n.*topics only .* or phases only \(goal_sent, .*result\)",
        ),
        ({"via": ["/a", "b"]}, r"leads through /a, b\n"),
        ({"via": ["sent", "result"]}, r"leads through sent, result\n"),
        ({"via": ["result", "goal_sent"]}, r"each phase of path 'fusion' once, in the order goal_sent, .*, result"),
        ({"via": ["planning", "planning"]}, r"each phase of path 'fusion' once"),
        ({"deadline_ms": 0}, r"deadline_ms of path 'fusion' must be above 0"),
        ({"deadline_ms": -1.0}, r"deadline_ms of path 'fusion' must be above 0"),
        ({"deadline_ms": math.nan}, r"deadline_ms of path 'fusion' must be above 0"),
        ({"deadline_ms": math.inf}, r"deadline_ms of path 'fusion' must be above 0 and finite"),
        ({"deadline_ms": "soon"}, r"fusion deadline_ms is 'soon'\n.*must be a number"),
        ({"deadline_ms": True}, r"fusion deadline_ms is True\n"),
        ({"hard": "maybe"}, r"fusion hard is 'maybe'\n.*true or false"),
        ({"hard": 1}, r"fusion hard is 1\n"),
        ({"links": 3}, r"fusion links is 3\n.*a list of tables"),
        ({"links": LINK}, r"fusion links is \{.*\n.*a list of tables"),
        ({"links": "partial_sync"}, r"fusion links is 'partial_sync'\n"),
        ({"links": [3]}, r"fusion links 1 is 3\n.*write it as a table"),
    ],
)
def test_a_wrong_path_is_refused(changes, message):
    table = {key: value for key, value in (PATH | changes).items() if value is not None}
    with pytest.raises(ConfigurationError, match=message):
        parse_paths([table])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"input": ["/a"]}, r"unknown key .* fusion links 1 'input'\n.*did you mean 'inputs'\?"),
        ({"rule": None}, r"fusion links 1 lacks rule\n"),
        ({"rule": "sync"}, r"fusion links 1 rule is 'sync'\n.*periodic_async, partial_sync"),
        ({"node": None}, r"links 1 lacks node"),
        ({"node": ""}, r"needs inputs and outputs\n.*node = "),
        ({"inputs": None}, r"links 1 lacks inputs"),
        ({"inputs": "/a"}, r"links 1 inputs is '/a'\n.*a list of texts"),
        ({"outputs": [1]}, r"links 1 outputs is \[1\]\n.*a list of texts"),
        ({"inputs": []}, r"a link of /fusion needs inputs and outputs"),
        ({"outputs": []}, r"a link of /fusion needs inputs and outputs"),
    ],
)
def test_a_wrong_link_is_refused(changes, message):
    link = {key: value for key, value in (LINK | changes).items() if value is not None}
    with pytest.raises(ConfigurationError, match=message):
        parse_paths([PATH | {"links": [link]}])


def test_two_paths_of_one_name():
    with pytest.raises(ConfigurationError, match=r"two paths are called 'fusion'\n.*its own name"):
        parse_paths([PATH, PATH | {"via": ["/b", "/out"]}])


def test_built_in_paths_match_the_design():
    deadlines = {path.name: path.deadline_ms for path in BUILT_IN_PATHS}
    assert deadlines == {"planning": 5000, "state feedback": 10, "execution": None, "goal": None}
