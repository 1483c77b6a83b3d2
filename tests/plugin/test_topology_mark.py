"""``@pytest.mark.ldos_topology``: a topology of nodes that is gated."""

from __future__ import annotations

from tests.builders.topologies import TWO, text_of

TEST = """
import pytest
from pytest_ldos.middleware.topology.target import missed_limits

@pytest.mark.ldos_topology(file="two.json", seconds=1.0, rounds=4, sampling=0.2{more})
def test_nodes(ldos_study):
    assert len(ldos_study.study.rounds) == 4
    assert not missed_limits(ldos_study.study)
    ldos_study.check()
"""


def test_a_topology_is_recorded_as_a_baseline(pytester):
    pytester.makefile(".json", two=text_of(TWO))
    pytester.makepyfile(TEST.format(more=""))
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*recorded as the first baseline*"])
    (baseline,) = pytester.path.rglob("topology-two.json")
    kept = baseline.read_text("utf-8")
    assert all(f'"{name}"' in kept for name in ("mean", "p99", "late", "lost", "cpu", "rss"))


def test_a_bad_file_is_told_with_its_line(pytester):
    pytester.makefile(".json", two='{"nodes": [\n{"node_name": "a", "subscribers": 1}]}')
    pytester.makepyfile(TEST.format(more=""))
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*two.json, line 2: nodes?0?.subscribers: is 1*"])


def test_an_unknown_setting_is_told(pytester):
    pytester.makefile(".json", two=text_of(TWO))
    pytester.makepyfile(TEST.format(more=", second=1"))
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*did you mean 'seconds'*"])
