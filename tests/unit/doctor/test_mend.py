"""Fixes are recorded first, and can be undone."""

from __future__ import annotations

import json
import stat

import pytest

from pytest_ldos.base.errors import MendFailed, RecordUnreadable
from pytest_ldos.doctor.changes import ChangeLog, Finding, Status, changes_file, describe_question, mend, set_values
from pytest_ldos.doctor.check_ros import check_receive_buffer, check_send_buffer
from pytest_ldos.doctor.diagnose import check_governor, check_smt, check_turbo
from tests.builders.machine import BOOT_ID, CPU, add_program, build_machine

RMEM = "proc/sys/net/core/rmem_max"
UNSTEADY = {
    f"{CPU}/cpu0/cpufreq/scaling_governor": "powersave",
    f"{CPU}/cpu1/cpufreq/scaling_governor": "schedutil",
    f"{CPU}/intel_pstate/no_turbo": "0",
    f"{CPU}/smt/active": "1",
    f"{CPU}/smt/control": "on",
    RMEM: "212992",
    "proc/sys/net/core/wmem_max": "212992",
}
CHECKS = (check_governor, check_turbo, check_smt, check_receive_buffer, check_send_buffer)


@pytest.fixture
def file(tmp_path):
    return tmp_path / "state/ldos/doctor-changes.json"


@pytest.fixture
def machine(tmp_path):
    return build_machine(tmp_path / "machine", UNSTEADY)


def yes(fix):
    return True


def settings(machine):
    return {place: machine.read(place) for place in UNSTEADY}


def change(machine, file, place=RMEM, value="999"):
    list(
        mend(
            [Finding("a", Status.WARNING, "b", fix=set_values("change it", {place: value}))],
            machine,
            ChangeLog(file),
            agrees=yes,
        )
    )


def test_all_fixes_are_applied_and_undone(machine, file):
    before = settings(machine)
    lines = list(mend([check(machine) for check in CHECKS], machine, ChangeLog(file), agrees=yes))
    assert len(lines) == 5
    assert all(line.startswith("done: ") for line in lines)
    assert machine.read(RMEM) == "2147483647"
    assert machine.read(f"{CPU}/smt/control") == "off"
    (machine.root / CPU / "smt/active").write_text("0")  # done by the kernel
    assert {check(machine).status for check in CHECKS} == {Status.OK}

    (machine.root / CPU / "smt/active").write_text("1")
    assert len(list(ChangeLog(file).undo(machine))) == 6
    assert settings(machine) == before
    assert not file.exists()


def test_only_confirmed_fixes_are_applied(machine, file):
    before = settings(machine)
    questions = []

    def only_turbo(fix):
        questions.append(describe_question(fix))
        return "turbo" in fix.description

    lines = list(mend([check(machine) for check in CHECKS], machine, ChangeLog(file), agrees=only_turbo))
    assert len(questions) == 5
    assert len(lines) == 1
    assert {place for place, value in settings(machine).items() if value != before[place]} == {
        f"{CPU}/intel_pstate/no_turbo"
    }


def test_the_record_is_private_and_names_places_below_the_root(machine, file):
    change(machine, file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    (kept,) = json.loads(file.read_text())["changes"]
    assert kept == {"place": RMEM, "before": "212992", "after": "999", "boot": "8a1e"}


def test_undo_after_two_changes_restores_the_first_value(machine, file):
    change(machine, file, value="999")
    change(machine, file, value="1000")
    assert list(ChangeLog(file).undo(machine)) == [f"{machine.path(RMEM)}: 1000 → 212992"]
    assert machine.read(RMEM) == "212992"


def test_later_foreign_change_is_kept(machine, file):
    change(machine, file)
    machine.write(RMEM, "7")
    assert "somebody else set it to 7 since" in next(ChangeLog(file).undo(machine))
    assert machine.read(RMEM) == "7"
    assert not file.exists()


def test_undo_restores_a_foreign_value(machine, file):
    change(machine, file, value="999")
    machine.write(RMEM, "7")
    change(machine, file, value="1000")
    list(ChangeLog(file).undo(machine))
    assert machine.read(RMEM) == "7"


def test_nothing_is_undone_after_a_reboot(machine, file):
    change(machine, file)
    (machine.root / BOOT_ID).write_text("another")
    assert "has restarted since" in next(ChangeLog(file).undo(machine))
    assert machine.read(RMEM) == "999"


def test_crash_between_record_and_change_is_harmless(machine, file):
    change(machine, file)
    (machine.root / RMEM).write_text("212992")
    assert "is 212992 already" in next(ChangeLog(file).undo(machine))


def test_failed_change_is_not_recorded_and_the_next_is_tried(machine, file):
    (machine.root / RMEM).unlink()
    findings = [
        Finding("a", Status.WARNING, "b", fix=set_values("set what is missing", {RMEM: "1"})),
        check_turbo(machine),
    ]
    lines = list(mend(findings, machine, ChangeLog(file), agrees=yes))
    assert lines[0].startswith("not done: set what is missing: ")
    assert "on the host" in lines[0]
    assert lines[1].startswith("done: turn turbo off")
    assert [change.place for change in ChangeLog(file).changes] == [f"{CPU}/intel_pstate/no_turbo"]


def test_without_record_nothing_is_changed(machine, file):
    before, changes = settings(machine), ChangeLog(file)
    file.parent.parent.touch()
    lines = list(mend([check_turbo(machine), check_receive_buffer(machine)], machine, changes, agrees=yes))
    assert len(lines) == 2
    assert all(line.startswith("not done: ") and f"{file} cannot be written" in line for line in lines)
    assert "XDG_STATE_HOME" in lines[0]
    assert settings(machine) == before
    assert changes.changes == []


def test_failed_record_leaves_no_temporary_file(machine, file):
    change(machine, file)
    changes = ChangeLog(file)
    kept = changes.changes
    file.unlink()
    (file / "in the way").mkdir(parents=True)
    with pytest.raises(MendFailed, match="cannot be written"):
        changes.set_value(machine, RMEM, "1000")
    assert [path.name for path in file.parent.iterdir()] == [file.name]
    assert changes.changes == kept
    assert machine.read(RMEM) == "999"


def test_ordinary_users_write_through_sudo(tmp_path, file):
    bin_ = add_program(tmp_path / "bin", "sudo", '[ "$1" = -n ] || exit 1\nshift\nexec "$@"')
    machine = build_machine(tmp_path / "m", UNSTEADY, uid=1000, environment={"PATH": f"{bin_}:/usr/bin:/bin"})
    change(machine, file)
    assert machine.read(RMEM) == "999"


@pytest.mark.parametrize("sudo", ["echo 'a password is required' >&2; exit 1", None])
def test_without_sudo_the_command_is_shown(tmp_path, file, sudo):
    bin_ = add_program(tmp_path / "bin", "sudo", sudo) if sudo else tmp_path
    machine = build_machine(tmp_path / "m", UNSTEADY, uid=1000, environment={"PATH": str(bin_)})
    with pytest.raises(MendFailed, match=rf"echo 999 \| sudo tee {machine.path(RMEM)}"):
        set_values("change it", {RMEM: "999"}).apply(machine, ChangeLog(file))
    assert machine.read(RMEM) == "212992"
    assert not file.exists()


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"schema": 1, "changes": [{"place": "x"}]}', '{"schema": 2, "changes": []}']
)
def test_damaged_record_is_an_error(file, text):
    file.parent.mkdir(parents=True)
    file.write_text(text)
    with pytest.raises(RecordUnreadable, match=r"doctor-changes\.json"):
        ChangeLog(file)


def test_path_of_the_record(tmp_path):
    assert changes_file({"XDG_STATE_HOME": str(tmp_path)}) == tmp_path / "ldos/doctor-changes.json"
    assert changes_file({"XDG_STATE_HOME": "relative"}).parts[-4:-2] == (".local", "state")
