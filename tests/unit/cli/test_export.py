"""``ldos export``."""

from __future__ import annotations

import subprocess

import pytest

from pytest_ldos.trace.ctf.read import read_trace
from pytest_ldos.trace.execution.build import build_execution
from pytest_ldos.trace.execution.model import read_model
from tests.builders.command_line import run_ldos
from tests.oracles.perfetto import parse


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def ldos_export(*arguments) -> subprocess.CompletedProcess:
    return run_ldos("export", *arguments)


def test_a_perfetto_file_named_after_the_trace(golden, here):
    done = ldos_export(golden("talker_listener"), "--to=perfetto")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("wrote talker_listener.pftrace: ")
    assert [path.name for path in here.iterdir()] == ["talker_listener.pftrace"]
    model = build_execution(read_trace(golden("talker_listener")))
    read = parse((here / "talker_listener.pftrace").read_bytes())
    assert len(read.of("callback")) == len(model.callback_runs)
    assert any(each.flows for each in read.of("message"))


def test_tables_in_a_directory(golden, here):
    done = ldos_export(golden("talker_listener"), "--to=parquet", "--output", "some/where")
    assert done.returncode == 0, done.stderr
    model = build_execution(read_trace(golden("talker_listener")))
    assert read_model(here / "some/where").publications.equals(model.publications)


@pytest.mark.parametrize("to", ["perfetto", "parquet"])
def test_existing_output_is_replaced_only_on_request(golden, here, to):
    assert ldos_export(golden("talker_listener"), f"--to={to}", "--output=out").returncode == 0
    (file,) = [here / "out"] if to == "perfetto" else (here / "out").glob("hosts.parquet")
    before = file.stat().st_mtime_ns
    refused = ldos_export(golden("talker_listener"), f"--to={to}", "--output=out")
    assert refused.returncode == 2
    assert "out exists" in refused.stderr
    assert "--force" in refused.stderr
    assert file.stat().st_mtime_ns == before
    forced = ldos_export(golden("talker_listener"), f"--to={to}", "--output=out", "--force")
    assert forced.returncode == 0, forced.stderr
    assert file.stat().st_mtime_ns > before


@pytest.mark.parametrize("to", ["perfetto", "parquet"])
def test_foreign_directory_is_never_replaced(golden, here, to):
    (here / "out").mkdir()
    (here / "out/mine.txt").write_text("mine")
    done = ldos_export(golden("talker_listener"), f"--to={to}", "--output=out", "--force")
    assert done.returncode == 2
    assert "is not an output of this export" in done.stderr
    assert (here / "out/mine.txt").read_text() == "mine"


def test_only_some_processes(golden, here):
    whole = build_execution(read_trace(golden("talker_listener")))
    pid = whole.processes["pid"][0]
    assert ldos_export(golden("talker_listener"), "--to=parquet", "--output=out", f"--pid={pid}").returncode == 0
    model = read_model(here / "out")
    owner = dict(model.threads.select("id", "process").iter_rows())
    seen = {model.processes["pid"][owner[thread]] for thread in model.callback_runs["thread"]}
    assert seen == {pid}
    missing = ldos_export(golden("talker_listener"), "--to=perfetto", "--pid=1")
    assert missing.returncode == 2
    assert "process 1 has no events in the trace" in missing.stderr


def test_foreign_file_is_not_replaced(golden, here):
    (here / "mine.txt").write_text("mine")
    done = ldos_export(golden("talker_listener"), "--to=perfetto", "--output=mine.txt", "--force")
    assert done.returncode == 2
    assert "is not an output of this export" in done.stderr
    assert (here / "mine.txt").read_text() == "mine"


def test_unnamed_publisher_is_reported(golden):
    done = ldos_export(golden("late_start"), "--to=perfetto")
    unknown = build_execution(read_trace(golden("late_start"))).unknown
    assert unknown["callbacks"]
    assert f"{unknown['callbacks']} callbacks" in done.stderr


def test_losses_are_reported(golden):
    done = ldos_export(golden("discarded"), "--to=perfetto")
    assert done.returncode == 0
    assert "the trace is incomplete: 1039 events lost" in done.stderr


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda folder: None, "there is no such directory"),
        (lambda folder: folder.mkdir(), "no trace in it"),
        (lambda folder: folder.write_text("text"), "is a file"),
        (lambda folder: (folder.mkdir(), (folder / "metadata").write_bytes(b"")), "empty"),
        (lambda folder: (folder.mkdir(), (folder / "metadata").write_text("what is this")), "metadata"),
    ],
    ids=["missing", "empty", "file", "no metadata", "no TSDL"],
)
def test_file_that_is_not_a_trace_is_refused_and_leaves_nothing(here, make, message):
    make(here / "trace")
    done = ldos_export("trace", "--to=perfetto")
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(here.glob("*.pftrace"))


def test_a_place_that_cannot_be_written(golden, here):
    (here / "file").write_text("")
    for to in ("perfetto", "parquet"):
        done = ldos_export(golden("talker_listener"), f"--to={to}", "--output=file/below")
        assert done.returncode == 2
        assert "file/below cannot be written" in done.stderr
        assert "--output" in done.stderr
        assert "Traceback" not in done.stderr


def test_an_unknown_format_names_the_known_ones(golden):
    done = ldos_export(golden("talker_listener"), "--to=csv")
    assert done.returncode == 2
    assert "perfetto" in done.stderr
    assert "parquet" in done.stderr


def test_names_from_the_trace_are_escaped(golden, here):
    (here / "evil\x1b[31m").symlink_to(golden("talker_listener"))
    done = ldos_export("evil\x1b[31m", "--to=perfetto", "--output=evil\x1b[31m.pftrace")
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout + done.stderr


def test_folder_of_several_traces_is_refused(golden, here):
    for name in ("talker_listener", "tracetools_4"):
        (here / "runs").mkdir(exist_ok=True)
        (here / "runs" / name).symlink_to(golden(name))
    done = ldos_export("runs", "--to=parquet")
    assert done.returncode == 2
    assert "runs holds 2 traces" in done.stderr
    assert "--together" in done.stderr
    assert ldos_export("runs", "--to=parquet", "--together").returncode == 0


def test_missing_events_are_named(golden):
    done = ldos_export(golden("tracetools_4"), "--to=parquet", "--output=out")
    assert done.returncode == 0
    assert "no ros2:rmw_publish.timestamp from humble_app" in done.stderr
