"""The fixture for launches where ROS 2 is absent."""

from __future__ import annotations

from tests.plugin.conftest import ROOT


def test_without_ros_the_reason_is_a_skip(project, monkeypatch):
    for name in ("AMENT_PREFIX_PATH", "ROS_DISTRO"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    project.makepyfile(test_scenario="def test_it(ldos_launch, module_ldos_launch): assert False")
    result = project.runpytest_subprocess("-rs", timeout=60)
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["SKIPPED*ROS 2*"])
