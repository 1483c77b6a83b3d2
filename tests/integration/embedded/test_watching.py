"""The real embedded stack, sampled and its system calls counted."""

from __future__ import annotations

import pytest

from pytest_ldos.record.profiles import read_folded
from tests.builders.watchers import needs_watchers
from tests.integration.project import Project

pytestmark = needs_watchers


@pytest.mark.acceptance
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
