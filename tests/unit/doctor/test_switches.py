"""Permission to record context switches, on fake ``/proc`` trees."""

from __future__ import annotations

import pytest

from pytest_ldos.doctor.changes import Status
from pytest_ldos.doctor.diagnose import check_switches, check_switches_of_users
from tests.builders.machine import add_program, build_machine, values_set_by

PLACE = "proc/sys/kernel/perf_event_paranoid"


def machine_with(tmp_path, level, *, uid=1000):
    path = add_program(tmp_path / "bin", "perf", "exit 0")
    files = {} if level is None else {PLACE: level}
    return build_machine(tmp_path, files, uid=uid, environment={"PATH": str(path)})


@pytest.mark.parametrize("level", ["0", "-1"])
def test_every_user_may(tmp_path, level):
    machine = machine_with(tmp_path, level)
    assert check_switches(machine).text == f"every user may record them (kernel.perf_event_paranoid is {level})"
    assert check_switches_of_users(machine).status is Status.OK


@pytest.mark.parametrize("level", ["1", "4"])
def test_root_only_permission_has_a_fix_with_a_warning(tmp_path, level):
    found = check_switches(machine_with(tmp_path, level))
    assert found.status is Status.OK, "it is optional"
    assert found.text == f"only root may record them (kernel.perf_event_paranoid is {level})"
    assert "perf_event_paranoid=0 (every user can then see when which program runs" in found.remedy
    machine = machine_with(tmp_path, level)
    of_users = check_switches_of_users(machine)
    assert of_users.status is Status.WARNING
    assert values_set_by(of_users.fix, machine) == {PLACE: "0"}


def test_invisible_setting(tmp_path):
    found = check_switches_of_users(machine_with(tmp_path, None))
    assert (found.status, found.fix) == (Status.WARNING, None)


def test_root_is_permitted_and_perf_is_required(tmp_path):
    assert check_switches(machine_with(tmp_path, "4", uid=0)).text == "recorded by perf, as root"
    assert "apt-get install" in check_switches(build_machine(tmp_path, environment={"PATH": "/nowhere"})).remedy
