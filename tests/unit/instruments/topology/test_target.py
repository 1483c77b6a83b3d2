"""Performance targets: content and comparison."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.instruments.study import Shape
from pytest_ldos.instruments.topology.edges import Limits
from pytest_ldos.instruments.topology.instrument import judge_target, read_target, target_figures, target_table
from pytest_ldos.instruments.topology.rounds import analyse
from tests.builders.topologies import arrivals, recorded, topology

SEEDS = {
    "topology_file": "two.json",
    "platform": "a board",
    "additional_options": "-t 600",
    "comments": "calm",
    "resources": {"cpu[%]": 25.5, "rss[KB]": 10240},
    "latency_total": {"late[%]": 50, "too_late[%]": 0.1, "lost[%]": 0.0},
}


@pytest.fixture
def target_file(tmp_path):
    def write(content):
        file = tmp_path / "target.json"
        file.write_text(content if isinstance(content, str) else json.dumps(content, indent=1), "utf-8")
        return file

    return write


def analysed(**changes):
    start = recorded(arrivals({0: 1.0, 1: 3.0, 2: 1.0}), **changes)
    return analyse(topology(), [start], Limits(), case="two", rounds=1, cores=2)


def verdicts(target, analysis) -> dict[str, str]:
    return {each.name: each.verdict for each in judge_target(target, analysis)}


def test_limits_are_met_up_to_their_value(target_file):
    target = read_target(target_file(SEEDS))
    assert verdicts(target, analysed()) == dict.fromkeys(
        ["cpu[%]", "rss[KB]", "late[%]", "too_late[%]", "lost[%]"], "passed"
    )
    assert not target.differs_from(topology())


@pytest.mark.parametrize(
    ("part", "name", "most"),
    [("resources", "cpu[%]", 24.9), ("resources", "vsz[KB]", 20479), ("latency_total", "late[%]", 33),
     ("latency_total", "mean[us]", 1600), ("latency_total", "late[#]", 0)],
)  # fmt: skip
def test_exceeded_limit_fails(target_file, part, name, most):
    target = read_target(target_file({part: {name: most}}))
    assert verdicts(target, analysed()) == {name: "failed"}


def test_lost_messages_exceed_a_limit_of_zero(target_file):
    target = read_target(target_file({"latency_total": {"lost[%]": 0.0}}))
    assert verdicts(target, analysed(sent={0: 4})) == {"lost[%]": "failed"}


def test_failed_run_meets_no_limit(target_file):
    target = read_target(target_file(SEEDS))
    assert set(verdicts(target, analysed(failure="it died")).values()) == {"not measured"}


def test_result_is_shown_as_table_and_bars(target_file):
    target = read_target(target_file(SEEDS))
    judged = judge_target(target, analysed())
    assert target_table(target, judged).rows[0] == ("cpu[%]", 25.0, 25.5, "passed")
    cpu, memory, shares = target_figures(judged)
    assert (cpu.shape, cpu.x.names, cpu.y.unit) == (Shape.BAR, ("cpu[%]",), "%")
    assert shares.x.names == ("late[%]", "too_late[%]", "lost[%]")
    assert [curve.label for curve in memory.curves] == ["measured", "target"]
    assert [point.y for curve in memory.curves for point in curve.points] == [10240, 10240]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"resources": {"cpu": 1}}, ["line 3", "resources.cpu: unknown key 'cpu'", "did you mean 'cpu[%]'?"]),
        ({"latency_total": {"late[%]": "1"}}, ["line 3", 'latency_total.late[%]: is "1"', "must be a number"]),
        ({"latency_total": {"lost[%]": -1}}, ["line 3", "is -1", "0 or more"]),
        ({"resource": {}}, ["line 2", "unknown key 'resource'", "did you mean 'resources'?"]),
        ({"platform": "x"}, ["line 1", "sets no limit"]),
        ({"platform": 5, "resources": {"cpu[%]": 1}}, ["line 2", "platform: is 5"]),
        ("{", ["line 1"]),
    ],
)
def test_bad_targets_are_refused_with_line_and_key(target_file, content, words):
    with pytest.raises(ConfigurationError) as refused:
        read_target(target_file(content))
    assert all(each in str(refused.value) for each in ("target.json", *words)), refused.value


def test_unreadable_target_is_refused(tmp_path):
    with pytest.raises(ConfigurationError, match=r"no\.json cannot be read"):
        read_target(tmp_path / "no.json")
    with pytest.raises(ConfigurationError, match="the target /dev/zero is a pipe or a device"):
        read_target(Path("/dev/zero"))
    with pytest.raises(ConfigurationError, match=r"the target .* cannot be read: Is a directory"):
        read_target(tmp_path)
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe\xfa")
    with pytest.raises(ConfigurationError, match="is no UTF-8"):
        read_target(tmp_path / "bytes.json")
