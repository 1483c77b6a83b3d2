"""The real embedded stack, sampled and its system calls counted."""

from __future__ import annotations

import pytest

from pytest_ldos.profiles.folded import read_folded
from pytest_ldos.recording.perf import perf_available
from pytest_ldos.recording.strace import strace_available
from tests.integration.project import Project

ABLE = [each for each in (perf_available(), strace_available()) if not each.ok]
pytestmark = pytest.mark.skipif(bool(ABLE), reason="; ".join(each.reason for each in ABLE) or "all can watch")


def test_every_process_is_in_the_profile_and_their_calls_are_counted(project: Project, leaves_nothing):
    code, output = project.run(
        "--ldos-trials=2", "--ldos-warmup=1", "--ldos-profile", "--ldos-profiler=perf", "--ldos-syscalls"
    )
    assert code == 11, output
    assert "system calls were counted with strace" in output
    assert " a message (" in output
    (folder,) = project.path.glob(".ldos/runs/*/baseline/profile")
    profile = read_folded(folder / "start-1.folded")
    assert {stack[0] for stack in profile.counts} >= {"simulator", "move_group", "state_publisher"}
    assert any(frame.startswith("mj_step") for stack in profile.counts for frame in stack), "MuJoCo was not unwound"
    calls = {line.split()[-1] for line in (folder / "syscalls.txt").read_text().splitlines()}
    assert {"futex", "sendmsg", "recvmsg"} <= calls
    assert project.saved().distortion
    assert not list(project.path.glob(".ldos/baselines/**/*.json"))
