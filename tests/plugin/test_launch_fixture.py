"""The fixture for launches where ROS 2 is absent."""

from __future__ import annotations

import pytest

from tests.plugin.conftest import ROOT

FAKE_LAUNCH = """
from pytest_ldos.host.availability import Availability
from pytest_ldos import launching

class Recorded:
    def __init__(self, folder):
        self.folder, self.survivors = folder, []
        folder.trace.mkdir()
        (folder.trace / "data").write_bytes(bytes(5_000_000))

    def close(self):
        self.survivors.append("\\x1b[31mred (42)")

launching.launch_available = lambda: Availability({ok}, "no \\x1b[31mred launch", "none")
launching.RecordedLaunch = Recorded
from tests.fakes.rig import install, noisy
install(noisy(1))
"""


def test_without_ros_the_reason_is_a_skip(project, forked, monkeypatch):
    for name in ("AMENT_PREFIX_PATH", "ROS_DISTRO"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    project.makepyfile(test_scenario="def test_it(ldos_launch, module_ldos_launch): assert False")
    result = forked.run(project.path, "-rs")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["SKIPPED*ROS 2*"])


@pytest.mark.acceptance
def test_control_characters_of_other_programs_are_made_visible(project):
    project.makepyfile(test_scenario="def test_it(ldos_launch): pass")
    project.makeconftest(FAKE_LAUNCH.format(ok=True))
    warned = project.runpytest_subprocess(timeout=300)
    warned.stdout.fnmatch_lines([r"*which were ended: \x1b[[]31mred (42)"])
    project.makeconftest(FAKE_LAUNCH.format(ok=False))
    skipped = project.runpytest_subprocess("-rs", timeout=300)
    skipped.stdout.fnmatch_lines([r"SKIPPED*no \x1b[[]31mred launch*"])
    assert "\x1b[31mred" not in warned.stdout.str() + skipped.stdout.str()


@pytest.mark.acceptance
def test_disk_limit_keeps_launches_of_the_same_run(project):
    launch = "def test_launch(ldos_launch): pass\n"
    project.makepyfile(test_a=launch, test_z=launch)
    project.makeconftest(FAKE_LAUNCH.format(ok=True))
    options = ("--ldos-traces=all", "--ldos-traces-limit-mb=1", "--ldos-trials=4", "--ldos-warmup=0")
    project.runpytest_subprocess(*options, "test_a.py", "test_scenario.py", "test_z.py", timeout=300)
    names = {path.parent.name for path in project.path.glob(".ldos/runs/*/*/trace")}
    assert names >= {"test_launch", "test_launch-2"}
    assert len(list(project.path.glob(".ldos/runs/*"))) == 1


def test_launch_does_not_lock_the_machine(project, forked):
    project.makepyfile(
        test_scenario="""
        from pytest_ldos.host.lock import find_holder
        def test_it(ldos_launch): assert find_holder() is None
        """
    )
    project.makeconftest(FAKE_LAUNCH.format(ok=True))
    forked.run(project.path).assert_outcomes(passed=1)


def test_launch_is_not_recorded_as_a_revisions(project, forked):
    project.makepyfile(test_scenario="def test_it(ldos_launch): assert False")
    project.makeconftest(FAKE_LAUNCH.format(ok=True))
    result = forked.run(project.path, "--ldos-head=HEAD")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*--ldos-head HEAD: only a stack is measured of a revision, and ldos_launch *"])
