"""Recording with bpftrace, and its failures."""

from __future__ import annotations

import os
import sys

import pytest

from pytest_ldos.base.errors import RecordingFailed
from pytest_ldos.host.kept import AnsweringChild
from pytest_ldos.host.processes import ProcessGroup
from pytest_ldos.instruments.cost_layers import Kind, Layer
from pytest_ldos.instruments.tracing_cost import pairs
from pytest_ldos.instruments.tracing_cost.pairs import Probes, count_records, ebpf_available, is_plain, recording

PROBES = Probes("/usr/lib/libx.so", ("first", "second"))
CHILD = """
import sys
from pytest_ldos.host.kept import say
from pytest_ldos.instruments.tracing_cost.pair_program import time_calls
for line in sys.stdin:
    say(time_calls(int(line)))
"""


@pytest.fixture
def bpftrace(tmp_path, monkeypatch):
    """Puts a fake bpftrace on the path."""

    def put(script: str) -> None:
        program = tmp_path / "bpftrace"
        program.write_text(f"#!/bin/sh\n{script}\n", "utf-8")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        monkeypatch.setattr(os, "geteuid", lambda: 0)
        monkeypatch.setattr(pairs, "_UPROBES", tmp_path)
        pairs._try.cache_clear()

    yield put
    pairs._try.cache_clear()


def test_functions_are_named_with_their_library():
    assert PROBES.points == 'uprobe:"/usr/lib/libx.so":first,uprobe:"/usr/lib/libx.so":second'


def test_records_are_counted_and_other_output_is_ignored(tmp_path):
    output = tmp_path / "ebpf.txt"
    output.write_bytes(
        b"attached\n12 3 first 7f\n13 3 second 0\n14 3 first 7f\nLost 12 events\nLost 1 events\n15 x first 0\n\xff\n12 3"
    )
    assert count_records(output) == ({"first": 2, "second": 1}, 13)


def test_without_bpftrace(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    found = ebpf_available(PROBES)
    assert (found.ok, found.reason, found.remedy) == (False, "bpftrace not found", "sudo apt-get install bpftrace")


def test_without_root(bpftrace, monkeypatch):
    bpftrace("echo attached")
    assert ebpf_available(PROBES).ok
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert ebpf_available(PROBES).reason == "uprobes need root"


def test_without_uprobes(bpftrace, monkeypatch, tmp_path):
    bpftrace("echo attached")
    monkeypatch.setattr(pairs, "_UPROBES", tmp_path / "absent")
    assert ebpf_available(PROBES).reason == "this kernel has no uprobes"


@pytest.mark.parametrize("library", ['/tmp/a"b.so', "/tmp/a\\b.so", "/tmp/a\nb.so"])
def test_library_path_that_needs_quoting(bpftrace, library):
    bpftrace("echo attached")
    assert not is_plain(library)
    assert "cannot name" in ebpf_available(Probes(library, ("f",))).reason


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo 'ERROR: Could not resolve symbol: first' >&2; exit 1", "Could not resolve symbol"),
        ("exit 1", "it printed nothing"),
        ("echo 'not attached'", "not attached"),
    ],
)
def test_error_of_bpftrace_is_quoted(bpftrace, script, message):
    bpftrace(script)
    found = ebpf_available(PROBES)
    assert not found.ok
    assert message in found.reason


def test_early_end_of_bpftrace_is_an_error(bpftrace, tmp_path):
    bpftrace("echo 'no permission' >&2; exit 1")
    with pytest.raises(RecordingFailed, match="does not record") as caught, recording(PROBES, 1, tmp_path):
        pass
    assert "no permission" in caught.value.details


def test_every_call_is_recorded(tmp_path):
    pytest.importorskip("pytest_ldos.robot.dds._lttng", reason="built without LTTng-UST")
    probes = pairs.probes_of(Layer(kind=Kind.EMBEDDED, middleware="rmw_cyclonedds_cpp"))
    able = ebpf_available(probes)
    if not able.ok:
        pytest.skip(able.reason)
    group = ProcessGroup(log_directory=tmp_path)
    try:
        child = AnsweringChild(group.start("child", [sys.executable, "-c", CHILD], talk=True))
        child.ask("1", limit_s=30)
        with recording(probes, child.child.pid, tmp_path) as output:
            child.ask("300", limit_s=60)
        counts, lost = count_records(output)
    finally:
        group.stop()
    assert sum(counts.values()) + lost == 300
