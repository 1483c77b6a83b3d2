"""Rounds over real Cyclone DDS: measurements, and failures within time limits."""

from __future__ import annotations

import dataclasses
import grp
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from pytest_ldos.base.errors import Unavailable
from pytest_ldos.host.cpu import our_cpus
from pytest_ldos.host.processes import ProcessGroup
from pytest_ldos.instruments.latency import programs as programs_room
from pytest_ldos.instruments.latency.instrument import measure_round
from pytest_ldos.instruments.latency.pair import Pair, RoundFailed, cyclone_commands, run_pair
from pytest_ldos.instruments.latency.programs import (
    ROUTER,
    Site,
    available,
    configuration,
    ddsperf_library,
    find_all,
    running_router,
)
from pytest_ldos.instruments.latency.spec import (
    LatencyCase,
    LatencySpec,
    Program,
    Transport,
    cases_of,
    prefix_of,
    setups_of,
    why_no_priority,
)
from pytest_ldos.robot.dds.domain import claim_domain
from tests.builders.machine import add_program

needs_ddsperf = pytest.mark.skipif(
    shutil.which("ddsperf") is None, reason="ddsperf (cyclonedds-tools) is not installed"
)
SHORT = {"sizes": "64", "transports": "loopback", "seconds": 0.2, "rounds": 1, "ddsperf": False, "ros": False}


def site_of(folder, **settings) -> Site:
    spec = LatencySpec(**{**SHORT, **settings})
    return Site(spec=spec, programs=find_all(spec), folder=folder)


def case_of(site, program=Program.CYCLONE) -> LatencyCase:
    return cases_of(setups_of(site.spec)[:1], [program])[0]


@contextmanager
def pair_of(site, tmp_path):
    """The pair, not started."""
    with claim_domain() as domain:
        group = ProcessGroup(log_directory=tmp_path, environment={"CYCLONEDDS_URI": configuration(case_of(site))})
        try:
            yield Pair(cyclone_commands(case_of(site), site, domain=domain, folder=tmp_path), group)
        finally:
            group.stop()


def udp_datagrams_sent() -> int:
    names, values = (
        line.split() for line in Path("/proc/net/snmp").read_text().splitlines() if line.startswith("Udp:")
    )
    return int(dict(zip(names, values, strict=True))["OutDatagrams"])


@pytest.mark.parametrize(
    "settings",
    [
        {"transports": "one_process"},
        {"sizes": "1"},
        {"sizes": "1MiB", "trigger": "waitset"},
        {"reliability": "best_effort", "trigger": "waitset"},
        {"rate_hz": 200.0},
    ],
    ids=str,
)
def test_a_round_has_every_percentile_both_ways(tmp_path, settings):
    site = site_of(tmp_path, **settings)
    found = measure_round(case_of(site), site, block=3)
    assert found.failure == ""
    assert found.block == 3
    for times in (found.round_trip, found.there, found.back):
        assert 0 < times.low <= times.p50 <= times.p90 <= times.p99 <= times.p999 <= times.high
        assert times.count == found.round_trip.count == len(found.times_ns) > 0
    assert found.there.mean + found.back.mean == pytest.approx(found.round_trip.mean)
    assert found.sent == found.round_trip.count + found.lost


@pytest.mark.measures_time
def test_rate_is_kept(tmp_path):
    site = site_of(tmp_path, rate_hz=100.0, seconds=0.5)
    found = measure_round(case_of(site), site, block=0)
    assert 25 <= found.sent <= 51


def test_each_side_runs_on_its_cpu(tmp_path):
    cpu = min(our_cpus())
    site = site_of(tmp_path, ping_cpu=cpu, pong_cpu=cpu, seconds=0.4)
    with pair_of(site, tmp_path) as pair:
        pair.start_pong()
        assert os.sched_getaffinity(pair.pong.pid) == {cpu}
        assert pair.ask().sent > 0


def test_undiscovered_sides_end_the_round(tmp_path):
    site = site_of(tmp_path, match_timeout_s=0.4)
    with pair_of(site, tmp_path) as pair, pytest.raises(RoundFailed, match=r"did not find each other within 0\.4 s"):
        pair.ask()  # pong is not running


def test_pong_on_another_domain_is_not_found(tmp_path):
    site = site_of(tmp_path, match_timeout_s=0.4)
    with pair_of(site, tmp_path) as pair, claim_domain() as other:
        elsewhere = cyclone_commands(case_of(site), site, domain=other, folder=tmp_path)
        pair.commands = dataclasses.replace(pair.commands, pong=elsewhere.pong)
        pair.start_pong()
        with pytest.raises(RoundFailed, match="did not find each other"):
            pair.ask()


@pytest.mark.parametrize(
    ("side", "message"),
    [
        (["sh", "-c", "echo oh dear >&2; exit 3"], r"ended with exit code 3: oh dear"),
        (["echo", "hello"], "printed an invalid answer: 'hello'"),
        (["echo", "[1]"], "printed an invalid answer: '\\[1\\]'"),
        (["sh", "-c", "printf '\\377\\n'; exec sleep 30"], "printed an invalid answer: '\ufffd'"),
        (["sh", "-c", "exec >&-; sleep 0.2; exit 4"], "ended with exit code 4"),
    ],
)
def test_faulty_sides_are_named(tmp_path, side, message):
    with pair_of(site_of(tmp_path), tmp_path) as pair:
        pair.commands = dataclasses.replace(pair.commands, pong=side)
        with pytest.raises(RoundFailed, match=f"pong {message}"):
            pair.start_pong()
    with pair_of(site_of(tmp_path), tmp_path) as pair:
        pair.commands = dataclasses.replace(pair.commands, ping=side)
        pair.start_pong()
        with pytest.raises(RoundFailed, match=f"ping {message}"):
            pair.ask()


def test_a_report_without_its_numbers_is_refused(tmp_path):
    with pair_of(site_of(tmp_path), tmp_path) as pair:
        pair.commands = dataclasses.replace(pair.commands, ping=["echo", '{"matched": true, "sent": "few"}'])
        with pytest.raises(RoundFailed, match="ping reported"):
            pair.ask()


def children() -> set[psutil.Process]:
    return set(psutil.Process().children(recursive=True))


def test_a_killed_pong_ends_the_round_long_before_its_time(tmp_path):
    site = site_of(tmp_path, seconds=60)
    before, began = children(), time.monotonic()
    with pair_of(site, tmp_path) as pair:
        pair.start_pong()
        threading.Timer(0.8, os.kill, (pair.pong.pid, signal.SIGKILL)).start()
        with pytest.raises(RoundFailed, match="pong was killed by SIGKILL"):
            pair.ask()
    assert time.monotonic() - began < 50
    assert children() <= before


def test_departed_pong_is_noticed_by_ping(tmp_path):
    """Its process is not monitored; the participant leaves the domain."""
    site = site_of(tmp_path, seconds=60, patience_ms=50)
    for stays_s in (1, 4, 16):  # longer if ping had sent nothing yet
        with pair_of(site, tmp_path) as pair:
            pair.start_pong()
            leaving, pair.pong = pair.pong, None
            threading.Timer(stays_s, leaving.process.stdin.close).start()
            with pytest.raises(RoundFailed, match=r"pong was gone after \d+ messages") as failed:
                pair.ask()
        if "after 0 messages" not in str(failed.value):
            return
    pytest.fail("ping sent nothing in 16 s")


@pytest.mark.measures_time
def test_late_answers_are_lost_and_counted(tmp_path):
    site = site_of(tmp_path, reliability="best_effort", patience_ms=20, seconds=1.5)
    with pair_of(site, tmp_path) as pair:
        pair.start_pong()
        over = threading.Event()
        stopping = threading.Thread(target=stop_and_go, args=(pair.pong.pid, over))
        stopping.start()
        try:
            counts = pair.ask()
        finally:
            over.set()
            stopping.join()
    assert counts.lost >= 2
    assert counts.late >= 1
    assert counts.sent > counts.lost


@pytest.mark.measures_time
def test_rate_includes_time_without_answers(tmp_path):
    site = site_of(tmp_path, patience_ms=50, seconds=1.5)
    with pair_of(site, tmp_path) as pair:
        pair.start_pong()
        threading.Timer(1.0, os.kill, (pair.pong.pid, signal.SIGSTOP)).start()
        counts = pair.ask()
        os.kill(pair.pong.pid, signal.SIGCONT)
    assert counts.lost >= 2
    assert counts.elapsed_ns >= 1_450_000_000


def stop_and_go(pid: int, over: threading.Event) -> None:
    with suppress(ProcessLookupError):
        while not over.wait(0.1):
            os.kill(pid, signal.SIGSTOP)
            over.wait(0.1)
            os.kill(pid, signal.SIGCONT)


def test_messages_larger_than_the_socket_buffer_are_lost(tmp_path):
    site = site_of(tmp_path, sizes="1MiB", reliability="best_effort", patience_ms=20, seconds=0.3)
    tiny = '<CycloneDDS><Domain id="any"><Internal><SocketReceiveBufferSize min="1 KiB" max="4 KiB"/></Internal></Domain></CycloneDDS>'
    with claim_domain() as domain:
        commands = cyclone_commands(case_of(site), site, domain=domain, folder=tmp_path)
        uri = f"{commands.environment['CYCLONEDDS_URI']},{tiny}"
        counts = run_pair(dataclasses.replace(commands, environment={"CYCLONEDDS_URI": uri}), tmp_path)
    assert 0 < counts.lost <= counts.sent


@pytest.mark.measures_time
def test_a_larger_message_size_needs_fewer_datagrams(tmp_path):
    per_round_trip = {}
    for size in (2000, 65500):
        site = site_of(tmp_path, sizes="256KiB", max_message_sizes=str(size), fragment_sizes="1100", rate_hz=100.0)
        before = udp_datagrams_sent()
        found = measure_round(case_of(site), site, block=0)
        per_round_trip[size] = (udp_datagrams_sent() - before) / found.sent
    assert per_round_trip[2000] > 5 * per_round_trip[65500]


def test_a_fragment_size_reaches_the_library(tmp_path):
    """The library itself refuses a size beyond 16 bits, which the settings would also refuse."""
    site = site_of(tmp_path)
    case = dataclasses.replace(case_of(site), fragment_size=100_000)
    found = measure_round(case, site, block=0)
    assert "FragmentSize" in found.failure


def test_unloadable_library_is_named(tmp_path):
    site = site_of(tmp_path)
    library = dataclasses.replace(site.programs.libraries[Program.CYCLONE], path=tmp_path / "libddsc.so")
    site.programs.libraries[Program.CYCLONE] = library
    assert "libddsc.so: cannot open shared object file" in measure_round(case_of(site), site, block=0).failure


def test_a_library_without_the_functions_is_named(tmp_path):
    site = site_of(tmp_path)
    libm = next(Path("/").glob("lib/*/libm.so.6"))
    site.programs.libraries[Program.CYCLONE] = dataclasses.replace(site.programs.libraries[Program.CYCLONE], path=libm)
    assert "it has no function dds_create_participant" in measure_round(case_of(site), site, block=0).failure


def test_missing_shared_memory_is_reported(tmp_path):
    spec = LatencySpec(**{**SHORT, "transports": "loopback,shared_memory"})
    programs = find_all(spec)
    (message,) = (note for note in programs.notes if "shared_memory" in note)
    assert "built without shared memory" in message
    assert programs.for_setup(setups_of(spec)[-1]) == []


needs_router = pytest.mark.skipif(shutil.which(ROUTER) is None, reason=f"{ROUTER} (iceoryx) is not installed")


def segments() -> set[str]:
    """Segments of iceoryx: common ones, and those of this user's group."""
    names = {"iceoryx_mgmt", grp.getgrgid(os.getegid()).gr_name}
    return {each.name for each in Path("/dev/shm").iterdir()} & names


@needs_ddsperf
@needs_router
@pytest.mark.measures_time
def test_shared_memory_is_used_if_available(tmp_path):
    site = site_of(tmp_path, transports=Transport.SHARED_MEMORY, ddsperf=True, sizes="64KiB")
    assert site.programs.has_transport(Program.TWIN, Transport.SHARED_MEMORY).ok
    assert not site.programs.has_transport(Program.DDSPERF, Transport.SHARED_MEMORY).ok
    with running_router(tmp_path):
        before = udp_datagrams_sent()
        found = measure_round(case_of(site, Program.TWIN), site, block=1)
        datagrams = udp_datagrams_sent() - before
    assert found.failure == ""
    assert datagrams < found.sent
    assert not segments()


@needs_ddsperf
@needs_router
def test_killed_process_leaves_no_shared_memory(tmp_path):
    site = site_of(tmp_path, transports=Transport.SHARED_MEMORY, ddsperf=True, seconds=30)
    case = case_of(site, Program.TWIN)
    with running_router(tmp_path), claim_domain() as domain:
        commands = cyclone_commands(case, site, domain=domain, folder=tmp_path)
        group = ProcessGroup(log_directory=tmp_path, environment=commands.environment)
        try:
            pair = Pair(commands, group)
            pair.start_pong()
            assert "iceoryx_mgmt" in segments()
            threading.Timer(0.8, os.kill, (pair.pong.pid, signal.SIGKILL)).start()
            with pytest.raises(RoundFailed, match="pong was killed by SIGKILL"):
                pair.ask()
        finally:
            group.stop()
    assert not segments()


def test_missing_router_is_reported(tmp_path, monkeypatch):
    add_program(tmp_path / "bin", ROUTER, "echo no luck; exit 4")
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    with pytest.raises(Unavailable, match="exit code 4: no luck"), running_router(tmp_path):
        pass


@needs_ddsperf
@pytest.mark.parametrize("transport", [Transport.LOOPBACK, Transport.ONE_PROCESS])
@pytest.mark.measures_time
def test_ddsperf_is_measured_in_whole_round_trips(tmp_path, transport):
    site = site_of(tmp_path, transports=transport, ddsperf=True)
    found = measure_round(case_of(site, Program.DDSPERF), site, block=0)
    assert found.failure == ""
    assert found.round_trip.count > 100
    assert found.round_trip.p999 is None
    assert found.per_second == pytest.approx(found.round_trip.count, rel=0.2)
    assert found.round_trip.mean * found.per_second == pytest.approx(1e6, rel=0.3)


@needs_ddsperf
def test_ddsperf_with_a_killed_pong_is_a_failure(tmp_path):
    site = site_of(tmp_path, ddsperf=True, seconds=2)
    killer = threading.Thread(target=kill_pong_of_ddsperf)
    killer.start()
    found = measure_round(case_of(site, Program.DDSPERF), site, block=0)
    killer.join()
    assert found.failure.startswith("ddsperf pong was killed by SIGKILL")
    assert found.round_trip is None


def kill_pong_of_ddsperf() -> None:
    """Kills it after some exchanges."""
    deadline_s = time.monotonic() + 10
    while time.monotonic() < deadline_s:
        for each in psutil.Process().children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                if each.name() == "ddsperf" and "pong" in each.cmdline() and time.time() - each.create_time() > 2.5:
                    each.kill()
                    return
        time.sleep(0.05)


@needs_ddsperf
def test_validation_program_uses_ddsperfs_library(tmp_path):
    site = site_of(tmp_path, ddsperf=True)
    assert site.programs.found == (Program.CYCLONE, Program.TWIN, Program.DDSPERF)
    assert site.programs.libraries[Program.TWIN].path == ddsperf_library().path
    assert measure_round(case_of(site, Program.TWIN), site, block=0).failure == ""


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo '[1] 2.000  a:1 size 76 mean 3us min'", "is not understood"),
        ("echo '[1] participant a:1: new (self)'", "did not find each other"),
        ("echo '[1] participant b:2: new'", "was answered"),
        ("echo trouble >&2; exit 2", "exit code 2: trouble"),
        ("kill -9 $$", "killed by SIGKILL"),
    ],
)
def test_failed_ddsperf_has_a_reason(tmp_path, monkeypatch, script, message):
    add_program(tmp_path / "bin", "ddsperf", script)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    site = site_of(tmp_path, ddsperf=True)
    found = measure_round(case_of(site, Program.DDSPERF), site, block=0)
    assert message in found.failure
    assert found.round_trip is None


def test_missing_ddsperf_is_reported_with_its_package(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    found = find_all(LatencySpec(ros=False))
    assert Program.DDSPERF not in found.found
    assert any("ddsperf not found (sudo apt-get install cyclonedds-tools)" in note for note in found.notes)


def test_missing_ros_is_reported(monkeypatch):
    monkeypatch.delenv("AMENT_PREFIX_PATH", raising=False)
    found = find_all(LatencySpec(ddsperf=False))
    assert any(note.startswith("rclcpp was not measured") for note in found.notes)


def test_forbidden_cpu_is_refused(monkeypatch):
    able = available(LatencySpec(**SHORT, ping_cpu=4000))
    assert not able.ok
    assert "CPU 4000" in able.reason
    assert able.remedy


def test_no_program_is_an_error(monkeypatch):
    monkeypatch.setattr(programs_room, "embedded_library", lambda: None)
    able = available(LatencySpec(**SHORT))
    assert not able.ok
    assert "not installed" in able.reason


def test_priority_is_used_if_permitted_and_noted_otherwise(monkeypatch, tmp_path):
    spec = LatencySpec(priority=80, ping_cpu=0)
    assert prefix_of(spec, (spec.ping_cpu,)) == ["taskset", "--cpu-list", "0", "chrt", "--fifo", "80"]
    assert why_no_priority(0) == ""
    add_program(tmp_path, "chrt", "echo 'chrt: failed to set pid 0 policy: Operation not permitted' >&2; exit 1")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert "Operation not permitted" in why_no_priority(80)
    assert "CAP_SYS_NICE" in why_no_priority(80)


def test_measuring_side_needs_no_native_module():
    """Without it, rclcpp can still be measured."""
    code = (
        "import sys; sys.modules['pytest_ldos.instruments.latency._pingpong'] = None\n"
        "import pytest_ldos.instruments.latency.instrument, pytest_ldos.instruments.latency.pair"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_side_imports_no_module_with_threads():
    code = (
        "import sys, pytest_ldos.instruments.latency.peer; print(*{'numpy', 'cyclonedds', 'polars'} & set(sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == ""
