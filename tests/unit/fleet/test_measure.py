"""Measurement of one trace in a worker."""

from __future__ import annotations

import shutil
import socket
from importlib.metadata import version
from pathlib import Path

import fsspec
import pytest

from pytest_ldos.fleet.choose import _faults
from pytest_ldos.fleet.traces import Found, Outcome, Status, find_traces, summarize
from pytest_ldos.measure.metrics.catalogue import OwnSource
from pytest_ldos.measure.metrics.extract import extract_metrics
from pytest_ldos.measure.metrics.model import Interfaces
from pytest_ldos.trace.ctf.read import read_trace
from pytest_ldos.trace.execution.build import build_execution


def test_values_equal_those_of_a_single_trace(golden, request_of):
    summary = summarize(Found.at(golden("workspace_gz")), request_of())
    measured = extract_metrics(build_execution(read_trace(golden("workspace_gz"))), nominal_period_ns=2_000_000)
    expected = [
        (goal_id, name, each.number) for goal_id, goal in measured.items() for name, each in goal.measurements.items()
    ]
    assert [(each.goal_id, each.metric, each.value) for each in summary.values] == expected
    assert (summary.reached, summary.failed, summary.unknown) == (3, 0, 0)
    assert {each.outcome for each in summary.values} == {Outcome.REACHED}
    assert all(
        (each.value is None) == (each.status is not Status.MEASURED) == bool(each.reason) for each in summary.values
    )


def test_losses_are_counted(golden, request_of):
    summary = summarize(Found.at(golden("discarded")), request_of())
    assert (summary.lost_events, summary.damage) == (1039, "1039 discarded events")


def test_archive_and_address_are_read_in_the_worker(golden, tmp_path, request_of):
    packed = Path(shutil.make_archive(str(tmp_path / "packed"), "gztar", golden("talker_listener")))
    files = fsspec.filesystem("memory")
    files.pipe("/bucket/packed.tar.gz", packed.read_bytes())
    found = [summarize(each, request_of()) for each in find_traces([packed, Path("memory://bucket/packed.tar.gz")])]
    files.rm("/bucket", recursive=True)
    assert [each.problem for each in found] == ["", ""]
    assert {each.events for each in found} == {summarize(Found.at(golden("talker_listener")), request_of()).events}


def test_deleted_trace(tmp_path, request_of):
    summary = summarize(Found.at(tmp_path / "gone"), request_of())
    assert summary.problem.startswith(f"{socket.gethostname()} does not see {tmp_path / 'gone'}: ")


def test_skipped_damage(golden, tmp_path, request_of):
    shutil.copytree(golden("discarded"), tmp_path / "cut")
    stream = max((tmp_path / "cut").rglob("*_[0-9]"), key=lambda file: file.stat().st_size)
    content = bytearray(stream.read_bytes())
    content[len(content) // 2 : len(content) // 2 + 4096] = b"\xff" * 4096
    stream.write_bytes(content)
    refused = summarize(Found.at(tmp_path / "cut"), request_of())
    assert "byte" in refused.problem
    skipped = summarize(Found.at(tmp_path / "cut"), request_of(on_corrupt="skip"))
    assert skipped.problem == ""
    assert "corrupt" in skipped.damage


def test_action_without_server(golden, request_of):
    asked = request_of(interfaces=Interfaces(action="/fetch"))
    assert "no action /fetch in the trace" in summarize(Found.at(golden("panda_baseline_1")), asked).problem


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "own.py cannot be loaded: FileNotFoundError"),
        ("def pytest_ldos_metrics():\n    return 1 / 0", "own.py cannot be loaded: ZeroDivisionError"),
    ],
)
def test_metrics_that_cannot_be_loaded_in_the_worker(golden, tmp_path, request_of, content, reason):
    if content is not None:
        (tmp_path / "own.py").write_text(content)
    asked = request_of(own=OwnSource("own.py", str(tmp_path)))
    assert summarize(Found.at(golden("service_action")), asked).problem.startswith(reason)


def test_unexpected_errors_are_rows(golden, request_of):
    summary = summarize(Found.at(golden("workspace_mock")), request_of(nominal_period_ns="two"))
    assert summary.problem.startswith("TypeError: ")


def test_answer_of_a_worker():
    ours = version("pytest-ldos")
    answers = {
        "tcp://a": (ours, "lab-1", []),
        "tcp://b": ("", "lab-2", []),
        "tcp://c": (ours, "lab-3", ["/traces"]),
        "tcp://d": OSError("gone"),
    }
    assert list(_faults(answers)) == [
        f"lab-2 has no pytest-ldos, this is {ours}",
        "lab-3 does not see /traces",
        "tcp://d answers OSError: gone",
    ]
