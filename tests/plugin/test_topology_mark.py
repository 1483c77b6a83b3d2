"""``@pytest.mark.ldos_topology``: a topology of nodes that is gated."""

from __future__ import annotations

from tests.builders.topologies import TWO, text_of

TEST = """
import pytest

@pytest.mark.ldos_topology(file="two.json", seconds=1.0, rounds=4, sampling=0.2{more})
def test_nodes(ldos_study):
    assert len(ldos_study.study.rounds) == 4
    ldos_study.check()
"""


def test_a_topology_is_recorded_as_a_baseline(project, forked):
    project.makefile(".json", two=text_of(TWO))
    project.makepyfile(test_nodes=TEST.format(more=""))
    result = forked.run(project.path, "test_nodes.py")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*recorded as the first baseline*"])
    (baseline,) = project.path.glob(".ldos/baselines/*/*/topology.json")
    kept = baseline.read_text("utf-8")
    assert all(f'"{name}"' in kept for name in ("mean", "p99", "late", "lost", "cpu", "rss"))


def test_missed_target_fails_the_test(project, forked):
    project.makefile(
        ".json", two=text_of(TWO), target='{"resources": {"rss[KB]": 1}, "latency_total": {"lost[%]": 100}}'
    )
    project.makepyfile(test_nodes=TEST.format(more=', target="target.json"'))
    result = forked.run(project.path, "test_nodes.py")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*'topology-two': the target was missed: rss?KB?"])


def test_invalid_file_is_reported_with_its_line(project, forked):
    project.makefile(".json", two='{"nodes": [\n{"node_name": "a", "subscribers": 1}]}')
    project.makepyfile(test_nodes=TEST.format(more=""))
    result = forked.run(project.path, "test_nodes.py")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*two.json, line 2: nodes?0?.subscribers: is 1*"])


def test_unknown_setting_is_reported(project, forked):
    project.makefile(".json", two=text_of(TWO))
    project.makepyfile(test_nodes=TEST.format(more=", second=1"))
    result = forked.run(project.path, "test_nodes.py")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*did you mean 'seconds'*"])
