"""Checks of network, disk, priorities and tracer."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

from pytest_ldos.doctor.changes import Status
from pytest_ldos.doctor.check_ros import check_discovery, check_domain, check_receive_buffer, check_send_buffer
from pytest_ldos.doctor.diagnose import (
    check_disk,
    check_library,
    check_modules,
    check_realtime,
    check_stress_ng,
    check_tools,
    check_tracing_group,
)
from tests.builders.machine import HEALTHY, add_program, build_machine, values_set_by

OK, WARNING, ERROR = Status.OK, Status.WARNING, Status.ERROR
MODULE = f"lib/modules/{platform.release()}/updates/dkms/lttng-tracer.ko.zst"
SHELL = "/usr/sbin:/usr/bin:/sbin:/bin"


def with_variables(tmp_path, **variables):
    return build_machine(tmp_path, environment={"PATH": SHELL, **variables})


@pytest.mark.parametrize(
    ("variables", "status", "words"),
    [
        ({}, WARNING, "not set: other machines"),
        ({"ROS_AUTOMATIC_DISCOVERY_RANGE": "SUBNET"}, WARNING, "=SUBNET: other machines"),
        ({"ROS_AUTOMATIC_DISCOVERY_RANGE": "SYSTEM_DEFAULT"}, WARNING, "other machines"),
        ({"ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"}, OK, "this machine only"),
        ({"ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST", "ROS_STATIC_PEERS": "lab7;localhost"}, WARNING, "lab7"),
        ({"ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST", "ROS_STATIC_PEERS": "127.0.0.1"}, OK, "only"),
        ({"ROS_AUTOMATIC_DISCOVERY_RANGE": "OFF"}, WARNING, "cannot find each other"),
        ({"ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST", "ROS_DISCOVERY_SERVER": "lab7:11811"}, WARNING, "lab7:11811"),
        ({"ROS_LOCALHOST_ONLY": "1", "ROS_DISCOVERY_SERVER": "127.0.0.1:11811"}, WARNING, "that server"),
        ({"ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST", "ROS_DISCOVERY_SERVER": ""}, OK, "this machine only"),
        ({"ROS_LOCALHOST_ONLY": "1"}, OK, "deprecated"),
        ({"ROS_LOCALHOST_ONLY": "0"}, WARNING, "other machines"),
    ],
)
def test_discovery_range(tmp_path, variables, status, words):
    finding = check_discovery(with_variables(tmp_path, **variables))
    assert finding.status is status
    assert words in finding.text


@pytest.mark.parametrize(
    ("domain", "status"),
    [
        ("", OK),
        ("0", OK),
        ("101", OK),
        ("102", WARNING),
        ("233", WARNING),
        ("-1", WARNING),
        ("x", WARNING),
        ("²", WARNING),
    ],
)
def test_domains(tmp_path, domain, status):
    assert check_domain(with_variables(tmp_path, ROS_DOMAIN_ID=domain)).status is status


@pytest.mark.parametrize(
    ("limit", "capabilities", "status"),
    [("0", "0", WARNING), ("49", "0", WARNING), ("50", "0", OK), ("unlimited", "0", OK), ("0", "800000", OK)],
)
def test_real_time(tmp_path, limit, capabilities, status):
    files = {
        "proc/self/limits": f"Max processes             1    1    processes\nMax realtime priority     {limit}    {limit}\n",
        "proc/self/status": f"CapPrm:\tffffffffff\nCapEff:\t{capabilities.zfill(16)}\n",
    }
    assert check_realtime(build_machine(tmp_path, files, stack="ros2")).status is status


def test_embedded_stack_needs_no_priority(tmp_path):
    files = {"proc/self/limits": "Max realtime priority     0    0\n"}
    assert check_realtime(build_machine(tmp_path, files, stack="embedded")).status is OK


def test_real_time_of_this_process(tmp_path):
    """Uses the kernel's files and the process's real limit."""
    script = "import resource; from pathlib import Path; from pytest_ldos.doctor.changes import Machine; import pytest_ldos.doctor.diagnose as r; print(r._limit(Machine()) == resource.getrlimit(resource.RLIMIT_RTPRIO)[0])"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout == "True\n"


def test_socket_buffers(tmp_path):
    small = {"proc/sys/net/core/rmem_max": "212992", "proc/sys/net/core/wmem_max": "12582912"}
    machine = build_machine(tmp_path, small)
    finding = check_receive_buffer(machine)
    assert (finding.status, finding.remedy) == (WARNING, "sudo sysctl -w net.core.rmem_max=2147483647")
    assert values_set_by(finding.fix, machine) == {"proc/sys/net/core/rmem_max": "2147483647"}
    assert check_send_buffer(machine).status is OK


def test_invisible_socket_buffers_of_a_container(tmp_path):
    machine = build_machine(tmp_path)
    (tmp_path / "proc/sys/net/core/rmem_max").unlink()
    finding = check_receive_buffer(machine)
    assert (finding.status, finding.fix) == (WARNING, None)
    assert finding.remedy.startswith("on the host: ")


def test_disk(tmp_path):
    machine = build_machine(tmp_path)
    assert check_disk(machine, needed=1, enough=2).status is OK
    assert check_disk(machine, needed=1, enough=1 << 60).status is WARNING
    assert check_disk(machine, needed=1 << 60, enough=1 << 61).status is ERROR
    assert not machine.output.exists()


def test_invalid_output_folder(tmp_path):
    (tmp_path / "file").touch()
    for output in (tmp_path / "file", tmp_path / "file/results"):
        finding = check_disk(build_machine(tmp_path, output=output))
        assert (finding.status, finding.remedy) == (ERROR, "name another place: --ldos-output")
        assert finding.text == f"{output} cannot be written: Not a directory"


@pytest.mark.parametrize(
    ("script", "status", "words"),
    [
        ("echo 'lttng (LTTng Trace Control) 2.13.9 - Nordicite'", OK, "2.13.9"),
        ("echo 'lttng (LTTng Trace Control) 2.12.1 - X'", ERROR, "2.13 or later"),
        ("echo 'lttng (LTTng Trace Control) 2.9.1 - X'", ERROR, "2.13 or later"),
        ("echo what", OK, "unknown version"),
        (None, ERROR, "not installed"),
    ],
)
def test_lttngs_tools(tmp_path, script, status, words):
    programs = add_program(tmp_path / "bin", "lttng", script) if script else tmp_path
    finding = check_tools(build_machine(tmp_path / "m", environment={"PATH": f"{programs}"}))
    assert finding.status is status
    assert words in finding.text


def test_lttngs_library(tmp_path):
    machine = build_machine(tmp_path)
    assert check_library(machine).status is OK
    (tmp_path / "usr/lib/x86_64-linux-gnu/liblttng-ust.so.1").rename(tmp_path / "usr/lib/liblttng-ust.so.0")
    assert "older than 2.13" in check_library(machine).text
    (tmp_path / "usr/lib/liblttng-ust.so.0").unlink()
    assert check_library(machine).status is ERROR


def test_lttngs_modules(tmp_path):
    machine = build_machine(tmp_path)
    assert check_modules(machine).text.startswith("installed")
    (tmp_path / MODULE).unlink()
    assert "lttng-modules-dkms" in check_modules(machine).remedy
    (tmp_path / "sys/module/lttng_tracer").mkdir(parents=True)
    assert check_modules(machine).text == "loaded"


def test_tracing_group_is_required_with_modules(tmp_path):
    files = {**HEALTHY, "sys/module/lttng_tracer/refcnt": "0"}
    assert check_tracing_group(build_machine(tmp_path, files)).status is OK
    outsider = build_machine(tmp_path, files, uid=1000, groups=("users",))
    assert check_tracing_group(outsider).status is WARNING
    assert check_tracing_group(build_machine(tmp_path, files, uid=1000, groups=("tracing",))).status is OK


def test_without_stress_ng(tmp_path):
    assert check_stress_ng(build_machine(tmp_path, environment={"PATH": str(tmp_path)})).status is WARNING
