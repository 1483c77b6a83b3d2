"""Permission to trace other processes."""

from __future__ import annotations

import pytest

from pytest_ldos.host.counters import tracing_permitted

ALL, NONE = "000001ffffffffff", "0000000000000000"


@pytest.mark.parametrize(
    ("scope", "capabilities", "ok"),
    [(None, NONE, True), (0, NONE, True), (1, NONE, False), (1, ALL, True), (2, ALL, True), (3, ALL, False)],
)
def test_the_kernels_rules(tmp_path, scope, capabilities, ok):
    for folder in ("proc/sys/kernel/yama", "proc/self"):
        (tmp_path / folder).mkdir(parents=True)
    if scope is not None:
        (tmp_path / "proc/sys/kernel/yama/ptrace_scope").write_text(f"{scope}\n")
    (tmp_path / "proc/self/status").write_text(f"Name:\tx\nCapEff:\t{capabilities}\n")
    able = tracing_permitted("strace", tmp_path)
    assert able.ok is ok
    if not ok:
        assert f"ptrace_scope is {scope}" in able.reason
        assert "kernel.yama.ptrace_scope" in able.remedy
