"""`ldos analyze`."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import pytest

from pytest_ldos.base.errors import ConfigurationError, TraceUnreadable
from pytest_ldos.cli import traces
from pytest_ldos.cli.analyze import find_clock_offsets
from pytest_ldos.measure.trial.artifacts import ScenarioFolder
from pytest_ldos.measure.trial.conduct import conduct
from pytest_ldos.robot.stack.goals import PANDA_GOALS
from pytest_ldos.scenario.model import ScenarioSpec, StackSpec
from pytest_ldos.trace.ctf.read import read_trace
from pytest_ldos.trace.execution.model import read_model
from pytest_ldos.trace.execution.threads import shift_clocks
from tests.builders.command_line import invoke_ldos, run_ldos
from tests.builders.ros2 import Recording
from tests.fakes.rig import PID, Motion, open_fake_rig
from tests.oracles import babeltrace


@pytest.fixture
def analyze(monkeypatch, tmp_path):
    """Runs the command in an empty project; faults are raised."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments):
        return invoke_ldos("analyze", *arguments)

    return run


def test_analysis_is_shown(analyze, golden):
    output = analyze(golden("pipeline_single_links")).stdout
    assert "7446 events: 4 processes, 5 nodes, 372 publications; no event of the trace is missing" in output
    rows = {line.split()[0]: line.split() for line in output.splitlines() if line}
    assert rows["/src_a"][:4] == ["/src_a", "100", "20.0", "100"]
    assert "/async_cache: timer of 100 ms" in output


def test_unknown_and_lost_parts_are_reported(analyze, golden):
    output = analyze(golden("late_start")).stdout
    assert "1 publisher without an init event (made before tracing began)" in output
    assert "8891 publications; 1039 discarded events" in analyze(golden("discarded")).stdout


def test_topic_name_is_not_executed_as_a_workflow_command(analyze, golden, tmp_path):
    """Its name begins with a line end: as somebody's node could have it that a pull request brings."""
    trace = tmp_path / "trace"
    shutil.copytree(golden("talker_listener"), trace)
    for file in filter(Path.is_file, trace.rglob("*")):
        file.chmod(0o644)
        file.write_bytes(file.read_bytes().replace(b"/chatter\0", b"\n::e::xy\0"))
    shown = analyze(trace).stdout
    assert "e::xy" in shown
    assert not [line for line in shown.splitlines() if line.lstrip().startswith("::")]


def test_the_projects_paths_are_shown(analyze, golden, tmp_path):
    (tmp_path / "pyproject.toml").write_text(
        '[[tool.ldos.paths]]\nname = "whole"\nvia = ["/src_a", "/sync_out"]\ndeadline_ms = 12.2\n'
    )
    output = analyze(golden("pipeline_single_links")).stdout
    (row,) = [line.split() for line in output.splitlines() if line.startswith("  whole ")]
    assert row[1] == "50"
    assert "timer wait: /async_cache: timer of 100 ms" in output


def test_tables_are_written(analyze, golden, tmp_path):
    output = analyze(golden("talker_listener"), "--output", tmp_path / "tables").stdout
    assert f"tables: {tmp_path / 'tables'}" in output
    assert len(read_model(tmp_path / "tables").publications) == 112


@pytest.mark.parametrize("name", ["trace.html", "trace.md", "trace.json"])
def test_a_report_by_its_name(analyze, golden, tmp_path, name):
    output = analyze(golden("pipeline_single"), "--output", tmp_path / name).stdout
    assert f"report: {tmp_path / name}" in output
    assert "/async_cache" in (tmp_path / name).read_text("utf-8").replace("\\_", "_")
    analyze(golden("pipeline_single"), "--output", tmp_path / name)  # written again, without a question


def test_report_of_a_trace_in_progress(analyze, golden, tmp_path):
    analyze(golden("truncated_live_meta"), "--output", tmp_path / "trace.html")
    page = (tmp_path / "trace.html").read_text("utf-8")
    assert "<h1>" in page
    assert "truncated" in page or "bytes" in page


def test_two_traces_side_by_side(analyze, golden, tmp_path):
    output = analyze(
        golden("pipeline_single_links"), "--against", golden("pipeline_multi_links"), "--output", tmp_path / "a.html"
    ).stdout
    assert "base: pipeline_multi_links" in output
    assert "head: pipeline_single_links" in output
    assert "pipeline_single_links compared with pipeline_multi_links" in (tmp_path / "a.html").read_text("utf-8")
    with pytest.raises(ConfigurationError, match="no tables"):
        analyze(golden("talker_listener"), "--against", golden("talker_listener"), "--output", tmp_path / "tables")


def test_several_runs_per_side(analyze, golden, tmp_path):
    heads = golden("pipeline_single"), golden("pipeline_single_links")
    bases = golden("pipeline_single_fastdds"), golden("pipeline_multi_links")
    analyze(*heads, "--against", *bases, "--output", tmp_path / "a.json")
    found = json.loads((tmp_path / "a.json").read_text("utf-8"))
    assert found["head"] == ["pipeline_single", "pipeline_single_links"]
    assert found["base"] == ["pipeline_single_fastdds", "pipeline_multi_links"]
    assert found["evidence"] == "separation"
    assert "/src_a" in {each["name"] for each in found["compared"]}


def test_traces_of_the_same_name_are_distinguished(analyze, golden, tmp_path):
    for side, name in (("after", "pipeline_single"), ("before", "pipeline_single_links")):
        shutil.copytree(golden(name), tmp_path / side / "baseline" / "trace")
    output = analyze("after/baseline/trace", "--against", "before/baseline/trace").stdout
    assert "base: before/baseline/trace" in output
    assert "head: after/baseline/trace" in output


def test_a_folder_of_runs_is_a_side(analyze, golden, tmp_path):
    for side, names in (("after", ["pipeline_single"]), ("before", ["pipeline_single_links", "pipeline_multi_links"])):
        for name in names:
            (tmp_path / side).mkdir(exist_ok=True)
            shutil.copytree(golden(name), tmp_path / side / name)
    output = analyze("after", "--against", "before").stdout
    assert re.search(
        r"base: pipeline_multi_links, \d+ events; pipeline_single_links, \d+ events", " ".join(output.split())
    )
    assert "2 runs of base and 1 run of head" in " ".join(output.split())


def test_incomparable_traces_are_refused(analyze, golden, tmp_path):
    with pytest.raises(ConfigurationError, match="named 2 times"):
        analyze(golden("pipeline_single"), "--against", golden("pipeline_single"))
    with pytest.raises(ConfigurationError, match="named 2 times"):
        analyze(golden("pipeline_single"), golden("pipeline_single"), "--against", golden("pipeline_multi_links"))
    copy = shutil.make_archive(str(tmp_path / "copy"), "gztar", golden("pipeline_single"))
    with pytest.raises(ConfigurationError, match=r"pipeline_single and copy\.tar\.gz are the same trace"):
        analyze(copy, "--against", golden("pipeline_single"))
    with pytest.raises(ConfigurationError, match="no node in common"):
        analyze(golden("talker_listener"), "--against", golden("pipeline_single"))
    with pytest.raises(ConfigurationError, match="--pid belongs to one trace"):
        analyze(golden("pipeline_single"), golden("pipeline_single_links"), "--against", copy, "--pid", 1)


def test_base_takes_all_arguments_up_to_the_next_option(analyze, golden, tmp_path):
    bases = golden("pipeline_single_links"), golden("pipeline_multi_links")
    head = golden("pipeline_single")
    for words in (
        ["--against", *bases],
        [f"--against={bases[0]}", bases[1]],
        ["--against", bases[0], "--against", bases[1]],
    ):
        assert "2 runs of base and 1 run of head" in " ".join(analyze(head, *words, "--all").stdout.split())
    assert analyze("--against", *bases, "--", head).exit_code == 0
    missing = analyze("--against", *bases)
    assert missing.exit_code == 2
    assert "Missing argument 'TRACE…'" in missing.stderr


def test_an_archive_is_read(analyze, golden, tmp_path):
    place = shutil.make_archive(str(tmp_path / "packed"), "gztar", golden("talker_listener"))
    assert "/chatter" in analyze(place).stdout


def test_missing_trace_is_refused(analyze, tmp_path):
    with pytest.raises(TraceUnreadable, match="there is no such directory"):
        analyze(tmp_path / "nothing")


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("vm=soon", "has no number"),
        ("moon=5", "no host 'moon'"),
        ("missing.toml", "cannot be read from missing.toml"),
    ],
)
def test_invalid_clock_offsets_are_refused(analyze, golden, asked, message):
    with pytest.raises(ConfigurationError, match=message):
        analyze(golden("talker_listener"), "--clock-offset", asked)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_clock_offsets_of_a_file(analyze, golden, tmp_path, encoding):
    (tmp_path / "clocks.toml").write_text("vm = 1000\n", encoding)
    shifted = tmp_path / "shifted"
    analyze(golden("talker_listener"), "--clock-offset", "clocks.toml", "--output", shifted)
    analyze(golden("talker_listener"), "--output", tmp_path / "plain")
    difference = read_model(shifted).takes["time_ns"] - read_model(tmp_path / "plain").takes["time_ns"]
    assert difference.unique().to_list() == [1000]


def test_stream_that_ends_early_is_reported(analyze, golden, tmp_path):
    """Also where it was cut between two events: its packet says how much there should be."""
    shutil.copytree(golden("service_action"), tmp_path / "cut")
    stream = max((tmp_path / "cut").rglob("ros2_?"), key=lambda file: file.stat().st_size)
    os.truncate(stream, 3000)
    headline = analyze(tmp_path / "cut").stdout.splitlines()[0]
    assert re.search(r"; (\d+ truncated bytes, )?\d+ missing bytes$", headline)


def test_unknown_names_in_paths_are_reported(analyze, golden, tmp_path):
    link = '{ rule = "periodic_async", node = "/async_cach", inputs = ["/src_b"], outputs = ["/async_out"] }'
    (tmp_path / "pyproject.toml").write_text(
        f'[[tool.ldos.paths]]\nname = "whole"\nvia = ["/src_a", "/sync_ot"]\nlinks = [{link}]\n'
    )
    output = analyze(golden("pipeline_single")).stdout
    assert "path whole: no topic /sync_ot in the trace; did you mean '/sync_out'?" in output
    assert "path whole: there is no node /async_cach, so its link links nothing; did you mean '/async_cache'?" in output


def test_tables_do_not_overwrite_other_files(analyze, golden, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "nodes.parquet").write_text("mine")
    (tmp_path / "file").write_text("mine")
    for place in ("mine", "file"):
        with pytest.raises(ConfigurationError, match="exists and is not an output of this"):
            analyze(golden("talker_listener"), "--output", tmp_path / place)
    analyze(golden("talker_listener"), "--output", tmp_path / "tables")
    with pytest.raises(ConfigurationError, match="replace it: --force"):
        analyze(golden("talker_listener"), "--output", tmp_path / "tables")
    analyze(golden("talker_listener"), "--output", tmp_path / "tables", "--force")


def test_a_place_that_cannot_be_written(analyze, golden):
    with pytest.raises(ConfigurationError, match=r"/proc/tables cannot be written"):
        analyze(golden("talker_listener"), "--output", "/proc/tables")


def test_process_absent_from_the_trace(analyze, golden):
    with pytest.raises(ConfigurationError, match=r"process 1 has no events in the trace\n.*these have: 9494, 9518"):
        analyze(golden("talker_listener"), "--pid", "9494", "--pid", "1")


def test_clock_offset_out_of_range(analyze, golden):
    with pytest.raises(ConfigurationError, match="is no offset of a clock"):
        analyze(golden("talker_listener"), "--clock-offset", "vm=99999999999999999999")


def lines_of(output):
    return [" ".join(line.split()) for line in output.splitlines()]


def test_goals_of_a_trace_without_markers_are_measured(analyze, golden):
    lines = lines_of(analyze(golden("panda_baseline_1")).stdout)
    assert "goal began outcome T1 T1mean T2 T2x T3 T3mean T3p90 T3p99 T4 T5 T5mean T5p99" in lines
    numbers = "17.3 ms – 1962.0 ms – ≈ 0.294 ms ≈ 2.00 ms ≈ 0.337 ms ≈ 0.460 ms ≈ 1979.9 ms – – –"
    assert f"/move_action 1 0 s unknown {numbers}" in lines
    assert "T1 from feedback publications" in lines
    assert (
        "≈ T3, T3mean, T3p90, T3p99 from /joint_states publications: when the publisher sent them, not when the control loop ran"
        in lines
    )
    assert "no T5, T5mean, T5p99: the trace has no simulator: neither its steps nor publications on /clock" in lines


def test_probes_are_used_if_present(analyze, golden):
    lines = lines_of(analyze(golden("gz_panda_baseline")).stdout)
    numbers = "15.6 ms – 1411.7 ms – 0.217 ms 2.01 ms 0.222 ms 0.813 ms ≈ 1427.5 ms 0.163 ms 1.00 ms 0.518 ms"
    assert f"/move_action 2 3.48 s unknown {numbers}" in lines
    assert not any(line.startswith("≈ T3") for line in lines)


def test_a_trace_without_goals_has_no_such_table(analyze, golden):
    output = analyze(golden("pipeline_single")).stdout
    assert "goals" not in output
    assert "no T1" not in output


def test_the_loops_rate_is_the_projects(analyze, golden, tmp_path):
    (tmp_path / "pyproject.toml").write_text("[tool.ldos.stack]\ncontrol_rate_hz = 100\n")
    output = analyze(golden("panda_baseline_1")).stdout
    assert "/joint_states does not show them: it comes at 499 Hz, the loop runs at 100 Hz" in output


@pytest.mark.parametrize(
    ("asked", "message", "remedy"),
    [
        (
            "action=/fetch",
            "no action /fetch in the trace",
            "served are: /execute_trajectory, /move_action, /panda_arm_",
        ),
        ("action=fetch", "'fetch' is no full name", "'/fetch'"),
        ("actoin=/fetch", "unknown interface 'actoin'", "did you mean 'action'"),
        ("/fetch", "'/fetch' names no interface", "action=/move_action"),
    ],
)
def test_invalid_interface_names_are_refused(analyze, golden, asked, message, remedy):
    with pytest.raises(ConfigurationError, match=message) as caught:
        analyze(golden("panda_baseline_1"), "--interface", asked)
    assert remedy in caught.value.remedy


def test_another_topic(analyze, golden):
    output = analyze(golden("panda_baseline_1"), "--interface", "joint_states=/dynamic_joint_states").stdout
    assert "≈ T3, T3mean, T3p90, T3p99 from /dynamic_joint_states publications" in output


def test_interface_names_come_from_the_project(analyze, golden, tmp_path):
    (tmp_path / "pyproject.toml").write_text('[tool.ldos.stack]\naction = "/fetch"\njoint_states = "/states"\n')
    assert "goals" not in analyze(golden("panda_baseline_1")).stdout
    lines = lines_of(analyze(golden("panda_baseline_1"), "--interface", "action=/move_action").stdout)
    assert (
        "no T3, T3mean, T3p90, T3p99: the trace has no control cycles, nor joint states on /states meanwhile" in lines
    )


EXAMPLE = Path(__file__).parents[3] / "examples/own_metric/conftest.py"


def test_an_own_metric_in_a_trace(analyze, golden):
    """The example's, which is the latency of the path that the project declares by itself."""
    lines = lines_of(analyze(golden("panda_baseline_1"), "--metrics", EXAMPLE).stdout)
    assert "goal began outcome T1 T1mean T2 T2x T3 T3mean T3p90 T3p99 T4 T5 T5mean T5p99 state_age_p99" in lines
    (row,) = [line for line in lines if line.startswith("/move_action 1 ")]
    assert row.endswith(" 0.145 ms")


def test_an_own_metric_of_a_module(analyze, golden, tmp_path):
    (tmp_path / "plan_metrics.py").write_text(EXAMPLE.read_text().replace("state_age_p99", "age"))
    assert "age" in analyze(golden("panda_baseline_1"), "--metrics", "plan_metrics").stdout
    without = analyze(golden("gz_panda_baseline"), "--metrics", EXAMPLE).stdout
    assert "no state_age_p99: no /tf was made from /joint_states while the arm moved" in without


DATACLASS = """
from dataclasses import dataclass

@dataclass
class Limits:
    largest: float = 1.0
"""


def test_a_file_of_metrics_may_define_dataclasses(analyze, golden, tmp_path):
    """They look their module up by its name."""
    (tmp_path / "own.py").write_text(EXAMPLE.read_text() + DATACLASS)
    assert "state_age_p99" in analyze(golden("panda_baseline_1"), "--metrics", "own.py").stdout


@pytest.mark.parametrize(
    ("given", "content", "message"),
    [
        ("nothing.py", None, r"nothing.py cannot be loaded: FileNotFoundError"),
        ("no.such.module", None, r"no.such.module cannot be loaded: ModuleNotFoundError"),
        ("own.py", "metrics = []", r"own.py has no function pytest_ldos_metrics\n.*OwnMetric"),
        ("own.py", "def pytest_ldos_metrics(:", r"own.py cannot be loaded: SyntaxError"),
        ("own.py", "import math\nmath.x", r"own.py cannot be loaded: AttributeError: .* \(own.py:2\)"),
        ("own.py", "def pytest_ldos_metrics():\n    return 1 / 0", r"ZeroDivisionError: .* \(own.py:2\)"),
        ("own.py", "def pytest_ldos_metrics():\n    return 7", r"pytest_ldos_metrics\(\) gave 7, no list"),
        ("own.txt", "", r"own.txt is no Python file"),
    ],
)
def test_unloadable_own_metrics_are_refused(analyze, golden, tmp_path, given, content, message):
    if content is not None:
        (tmp_path / given).write_text(content)
    with pytest.raises(ConfigurationError, match=message):
        analyze(golden("talker_listener"), "--metrics", given)


@pytest.mark.parametrize("trace", ["panda_baseline_1", "pipeline_single_links", "workspace_gz"])
def test_a_trace_fits_80_columns(analyze, golden, monkeypatch, trace):
    monkeypatch.setenv("COLUMNS", "80")
    lines = analyze(golden(trace), "--all").stdout.splitlines()
    assert [line for line in lines if len(line) > 80] == []


def test_path_and_topic_metrics_are_measured_and_process_metrics_omitted(analyze, golden, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "400")
    asked = '"rate:/joint_states", "gap:/joint_states", "cpu:move_group", "path:state feedback:p50"'
    (tmp_path / "pyproject.toml").write_text(f"[tool.ldos]\nmetrics = [{asked}]\n")
    lines = lines_of(analyze(golden("gz_panda_baseline")).stdout)
    (titles,) = [line for line in lines if line.startswith("goal began outcome T1")]
    assert titles.endswith("T5p99 rate_joint_states gap_joint_states path_state_feedback_p50")
    (row,) = [line for line in lines if line.startswith("/move_action 2 ")]
    assert row.endswith(" 498.8 Hz 4.74 ms \N{EN DASH}")
    assert "no path_state_feedback_p50: no passage along path 'state feedback' ended in the trial" in lines


@pytest.fixture
def own_trace(tmp_path):
    """A trace of two trials with spans of own tracepoints: 4 ms, and 6 ms."""
    folder = ScenarioFolder(tmp_path / "run")
    folder.logs.mkdir(parents=True)
    script = lambda index: Motion(solve_ms=4.0 + 2 * index)  # noqa: E731
    with open_fake_rig(StackSpec(), folder, script=script) as rig:
        conduct(rig, ScenarioSpec(name="baseline", trials=2, warmup=0), PANDA_GOALS.sets["reach"])
    return folder.trace


def test_own_tracepoints_of_a_trace_are_measured(analyze, own_trace, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "400")
    asked = '"span:arm:solve:arm:solved", "value:arm:solved:cost:max", "count:arm:solve", "count:arm:sovled"'
    (tmp_path / "pyproject.toml").write_text(f"[tool.ldos]\nmetrics = [{asked}]\n")
    shown = analyze(own_trace)
    lines = lines_of(shown.stdout)
    rows = [line for line in lines if line.startswith("baseline ")]
    assert [
        row.endswith(end)
        for row, end in zip(rows, (" 4.00 ms 14.0 6.00 \N{EN DASH}", " 6.00 ms 14.0 6.00 \N{EN DASH}"), strict=True)
    ] == [True, True]
    assert "no count_arm_sovled: the trace has no event arm:sovled: did you mean 'arm:solved'?" in lines
    assert "span_arm_solve_arm_solved_p50: 2 begins without an end, 0 ends without a begin" in lines
    assert analyze(own_trace, "--window", "0.05").output == shown.output
    several = lines_of(analyze(own_trace, "--scheduler", "synchronous").stdout)
    assert "span_arm_solve_arm_solved_p50 2 1 5.00 ms 5.90 ms own tracepoints" in several


def test_own_tracepoints_of_another_process_are_not_measured(analyze, own_trace, tmp_path, monkeypatch):
    (tmp_path / "pyproject.toml").write_text('[tool.ldos]\nmetrics = ["count:arm:solve"]\n')
    monkeypatch.setenv("COLUMNS", "400")
    lines = lines_of(analyze(own_trace, "--pid", str(PID)).stdout)
    assert [line.rpartition(" ")[2] for line in lines if line.startswith("baseline ")] == ["6.00", "6.00"]


def test_reading_in_windows_gives_the_same_analysis(analyze, golden):
    trace = golden("pipeline_multi_links")
    assert analyze(trace, "--window", "0.7").output == analyze(trace).output


def test_trace_larger_than_memory_is_read_in_windows(analyze, golden, monkeypatch):
    opened = []
    original = traces.open_in_windows
    monkeypatch.setattr(
        traces, "open_in_windows", lambda *given, **named: opened.append(given) or original(*given, **named)
    )
    trace = golden("talker_listener")
    whole = analyze(trace).output
    assert not opened
    monkeypatch.setattr(traces, "available_bytes", lambda: 1 << 10)
    assert analyze(trace).output == whole
    assert opened


def test_windows_of_absent_processes_are_refused(analyze, golden):
    with pytest.raises(ConfigurationError, match="process 1 has no events in the trace"):
        analyze(golden("talker_listener"), "--window", "1", "--pid", "1")


def test_windows_need_a_single_trace(analyze, golden):
    with pytest.raises(ConfigurationError, match="--window belongs to one trace"):
        analyze(golden("talker_listener"), golden("talker_listener_fastdds"), "--window", "1")
    with pytest.raises(ConfigurationError, match="--window belongs to one trace") as caught:
        analyze(golden("talker_listener"), "--window", "1", "--workers", "2")
    assert caught.value.remedy == "name that trace alone, without --scheduler and --workers"


def of_two_hosts(golden, folder):
    """A talker and a listener whose traces come from two hosts."""
    shutil.copytree(golden("talker_listener_perpid"), folder)
    (listener,) = (each for each in folder.rglob("metadata") if "listener" in each.parent.name)
    listener.chmod(0o644)
    named = re.compile(rb'hostname = "[^"]*"')
    assert named.search(listener.read_bytes())
    listener.write_bytes(
        named.sub(lambda found: b'hostname = "' + b"b" * (len(found[0]) - 13) + b'"', listener.read_bytes())
    )
    return folder


def test_latencies_between_hosts_are_approximate(analyze, golden, tmp_path):
    lines = lines_of(analyze(of_two_hosts(golden, tmp_path / "trace")).stdout)
    (chatter,) = (line for line in lines if line.startswith("/chatter "))
    assert chatter.count("\N{ALMOST EQUAL TO}") == 2
    assert any(line.startswith("latencies between hosts (\N{ALMOST EQUAL TO}) are as exact") for line in lines)
    assert "\N{ALMOST EQUAL TO}" not in analyze(golden("talker_listener_perpid")).stdout


@pytest.mark.parametrize(
    ("one", "other", "known"), [("arm", "base", "at least -5300 ns"), ("base", "arm", "at most -4700 ns")]
)
def test_clock_with_a_one_sided_bound_is_not_shifted(one, other, known):
    """Messages in one direction: the bound is shown, and what was sent keeps its times."""
    recording = Recording(skew_ns={"arm": 0, "base": 5000})
    ends = {host: recording.process(1, host=host) for host in (one, other)}
    publisher, subscription = ends[one].node("/a").publisher("/t"), ends[other].node("/b").subscription("/t")
    for number in range(3):
        message = ends[one].thread(1).at(1_000_000 * number - 2 + 10_000).publish(publisher)
        ends[other].thread(1).at(1_000_000 * number + 300 + 10_000).take(subscription, message)
    plain = recording.model()
    offsets, (note,) = find_clock_offsets(plain, ["estimate"])
    assert shift_clocks(plain, offsets).takes.equals(plain.takes)
    assert note.startswith(f"clock of base: not corrected; its offset is {known} (3 messages, all in one direction)")
    assert "--clock-offset base=NANOSECONDS" in note


def copy(golden, name, folder, *, without):
    return babeltrace.copy_with_babeltrace(golden(name), folder, without=without)


@pytest.mark.skipif(bool(babeltrace.why_unavailable()), reason=babeltrace.why_unavailable())
@pytest.mark.parametrize("options", [(), ("--window", "1")])
def test_trace_without_ros_events_is_refused(analyze, golden, tmp_path, options):
    """One whose events are another program's, and one whose streams are empty."""
    for trace, reason in (
        (golden("barectf") / "control", "none of its 140 events says what ran"),
        (copy(golden, "talker_listener", tmp_path / "empty", without=["*"]), "hold no event"),
    ):
        with pytest.raises(TraceUnreadable, match=reason) as refused:
            analyze(trace, *options)
        assert "record ros2:* before the nodes start" in refused.value.remedy
        if not options:
            many = run_ldos("analyze", trace, golden("talker_listener"), "--scheduler", "synchronous")
            assert (many.returncode, reason in many.stdout) == (11, True)
            assert run_ldos("export", trace, "--to", "parquet", "--output", "out").returncode == 2
            assert not Path("out").exists()


def test_a_trace_without_a_stream_is_refused(analyze, golden, tmp_path):
    shutil.copytree(golden("talker_listener"), tmp_path / "bare")
    for file in (tmp_path / "bare").rglob("*"):
        if file.is_file() and file.name != "metadata":
            file.unlink()
    with pytest.raises(TraceUnreadable, match="it has no stream of events"):
        analyze(tmp_path / "bare")


def test_a_damaged_trace_advises_the_commands_option(analyze, golden, tmp_path):
    shutil.copytree(golden("service_action"), tmp_path / "damaged")
    stream = max((tmp_path / "damaged").rglob("ros2_?"), key=lambda file: file.stat().st_size)
    stream.chmod(0o644)
    stream.write_bytes(b"\0" + stream.read_bytes()[1:])
    for options in ((), ("--window", "1")):
        with pytest.raises(TraceUnreadable) as refused:
            analyze(tmp_path / "damaged", *options)
        assert "--on-corrupt skip" in refused.value.remedy
        assert "on_corrupt" not in refused.value.remedy
    done = run_ldos("analyze", tmp_path / "damaged", golden("service_action"), "--scheduler", "synchronous")
    assert done.returncode == 11
    assert "--on-corrupt skip" in done.stdout
    with pytest.raises(TraceUnreadable, match="magic") as refused:
        read_trace(tmp_path / "damaged")
    assert 'on_corrupt="skip"' in refused.value.remedy


def test_nodes_of_one_name_are_distinguished(analyze, golden):
    """Two containers, each with a talker that is its process 1."""
    lines = lines_of(analyze(golden("two_containers")).stdout)
    rows = [line.partition("  ")[0] for line in lines if line.startswith(("/talker", "talker"))]
    assert len(rows) == len(set(rows))
    for number in (0, 1):
        assert any(line.startswith(f"/talker (process {number}): timer of 50 ms ") for line in lines)
        assert any(line.startswith(f"/talker (process {number}) 1 ") for line in lines)


def test_topics_without_a_period_have_no_lateness(analyze, golden):
    lines = lines_of(analyze(golden("talker_listener")).stdout)
    late = {line.split()[0]: line.split()[-3:] for line in lines if line.startswith("/") and len(line.split()) > 8}
    assert late["/parameter_events"][:2] == ["\N{EN DASH}", "\N{EN DASH}"]
    assert late["/chatter"][:2] != ["\N{EN DASH}", "\N{EN DASH}"]


@pytest.mark.skipif(bool(babeltrace.why_unavailable()), reason=babeltrace.why_unavailable())
def test_events_missing_from_one_of_two_traces_are_named(analyze, golden, tmp_path):
    less = copy(golden, "talker_listener", tmp_path / "less", without=["ros2:rmw_*"])
    output = " ".join(analyze(less, "--against", golden("talker_listener")).stdout.split())
    assert "less, 1876 events (without ros2:rmw_publish, ros2:rmw_take)" in output
