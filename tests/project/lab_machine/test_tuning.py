"""Tuning of a lab machine: what was chosen and nothing else, with the values before, and back."""

from __future__ import annotations

import json

import pytest

from lab.tuning.tune import parse_cpus, render_cpus, render_mask, run
from pytest_ldos.base.errors import MendFailed
from tests.builders.lab import CPU

GOVERNORS = [f"{CPU}/cpu{cpu}/cpufreq/scaling_governor" for cpu in range(4)]
TURBO = f"{CPU}/intel_pstate/no_turbo"
SMT = f"{CPU}/smt/control"
PARANOID = "proc/sys/kernel/perf_event_paranoid"
RECORD = "var/lib/ldos-lab/tuning.json"


def tune(machine, *arguments):
    return run(["--root", str(machine.root), *arguments])


def settings(machine):
    places = [*GOVERNORS, TURBO, SMT, "proc/irq/24/smp_affinity_list", "proc/irq/default_smp_affinity"]
    return [machine.read(place).strip() for place in places]


BEFORE = ["schedutil"] * 4 + ["0", "on", "0-3", "f"]


@pytest.mark.parametrize(
    ("arguments", "after"),
    [
        (["--governor"], ["performance"] * 4 + ["0", "on", "0-3", "f"]),
        (["--turbo"], ["schedutil"] * 4 + ["1", "on", "0-3", "f"]),
        (["--smt"], ["schedutil"] * 4 + ["0", "off", "0-3", "f"]),
        (["--irq-cpus=1,0"], ["schedutil"] * 4 + ["0", "on", "0-1", "3"]),
        (["--governor", "--turbo", "--smt", "--irq-cpus=3"], ["performance"] * 4 + ["1", "off", "3", "8"]),
    ],
)
def test_chosen_settings_are_applied_and_restored(machine, arguments, after):
    assert settings(machine) == BEFORE
    assert tune(machine, "apply", *arguments) == 0
    assert settings(machine) == after
    if "--smt" in arguments:
        machine.write(f"{CPU}/smt/active", "0")  # as the kernel then says
    assert tune(machine, "apply", *arguments) == 0
    assert tune(machine, "undo") == 0
    assert settings(machine) == BEFORE
    assert not (machine.root / RECORD).exists()


def test_users_may_record_context_switches_and_no_more_when_it_is_undone(machine, capsys):
    machine.write(PARANOID, "4\n")
    assert tune(machine, "apply", "--switches") == 0
    assert machine.read(PARANOID).strip() == "0"
    assert "every user can then see when which program runs" in capsys.readouterr().out
    assert tune(machine, "undo") == 0
    assert machine.read(PARANOID).strip() == "4"


def test_values_from_before_are_recorded(machine):
    tune(machine, "apply", "--turbo")
    [change] = json.loads(machine.read(RECORD))["changes"]
    assert (change["place"], change["before"], change["after"]) == (TURBO, "0", "1")


def test_restart_restores_and_the_next_boot_tunes_again(machine):
    tune(machine, "apply", "--turbo")
    machine.write("proc/sys/kernel/random/boot_id", "9b2f\n")
    machine.write(TURBO, "0\n")
    assert tune(machine, "apply", "--turbo") == 0
    assert machine.read(TURBO) == "1"
    assert tune(machine, "undo") == 0
    assert settings(machine) == BEFORE


def test_later_foreign_values_are_kept(machine, capsys):
    tune(machine, "apply", "--governor")
    machine.write(GOVERNORS[0], "powersave")
    assert tune(machine, "undo") == 0
    assert machine.read(GOVERNORS[0]) == "powersave"
    assert "somebody else set it" in capsys.readouterr().out


def test_unsupported_setting_is_an_error(machine, capsys):
    for cpu in range(4):
        machine.write(f"{CPU}/cpu{cpu}/cpufreq/scaling_available_governors", "schedutil")
    assert tune(machine, "apply", "--governor") == 1
    assert "not done: CPU governor" in capsys.readouterr().err
    assert settings(machine) == BEFORE


def test_machine_without_frequency_scaling_is_accepted(machine, capsys):
    for place in GOVERNORS:
        (machine.root / place).unlink()
    assert tune(machine, "apply", "--governor") == 0
    assert "no frequency scaling" in capsys.readouterr().out


def test_interrupts_that_cannot_be_moved_are_counted(machine, capsys):
    (machine.root / "proc/irq/26/smp_affinity_list").mkdir(parents=True)  # cannot be written, by root either
    assert tune(machine, "apply", "--irq-cpus=0") == 0
    assert "2 of 3 interrupts" in capsys.readouterr().out
    assert tune(machine, "undo") == 0
    assert settings(machine) == BEFORE


def test_no_interrupt_that_can_be_moved_is_an_error(machine, capsys):
    for number in (24, 25):
        file = machine.root / f"proc/irq/{number}/smp_affinity_list"
        file.unlink()
        file.mkdir()
    assert tune(machine, "apply", "--irq-cpus=0") == 1
    assert "lets no interrupt be moved" in capsys.readouterr().err


@pytest.mark.parametrize("cpus", ["4", "0-9", "x", "1-", "$(id)"])
def test_absent_cpus_are_refused(machine, cpus, capsys):
    assert tune(machine, "apply", f"--irq-cpus={cpus}") == 1
    assert "not done" in capsys.readouterr().err
    assert settings(machine) == BEFORE


def test_lists_of_cpus():
    assert parse_cpus("0,2-4") == {0, 2, 3, 4}
    assert parse_cpus("") == frozenset()
    assert render_cpus(frozenset({0, 2, 3, 4, 7})) == "0,2-4,7"
    assert render_mask(frozenset({0, 33}), like="ffffffff,ffffffff") == "00000002,00000001"
    assert render_mask(frozenset({0, 5}), like="ff") == "21"
    with pytest.raises(MendFailed):
        parse_cpus("0,,x")


def test_the_phase_tunes_at_once_and_at_every_boot_and_undoes_both(machine):
    machine.configure(TUNE_GOVERNOR="yes", IRQ_CPUS="0")
    machine.know("active-irqbalance.service")
    assert machine.bootstrap("--only", "ldos").returncode == 0
    tree = {place: digest for place, digest in machine.tree().items() if place.startswith(("etc/", "usr/", "opt/"))}
    done = machine.bootstrap("--only", "tuning")
    assert done.returncode == 0, done.stderr
    assert settings(machine) == ["performance"] * 4 + ["0", "on", "0", "1"]
    assert machine.read("etc/ldos-lab/tuning.env") == "LDOS_TUNING=--governor --irq-cpus=0\n"
    assert "systemctl enable ldos-tuning.service" in machine.calls
    assert "systemctl disable --now irqbalance.service" in machine.calls

    machine.write(PARANOID, "4\n")
    machine.configure(TUNE_TURBO="yes", TUNE_SWITCHES="yes")
    assert machine.bootstrap("--only", "tuning").returncode == 0
    assert settings(machine) == ["schedutil"] * 4 + ["1", "on", "0-3", "f"]
    assert machine.read(PARANOID).strip() == "0"
    assert any("linux-tools-generic" in call for call in machine.calls)
    assert "systemctl enable --now irqbalance.service" in machine.calls

    machine.configure(TUNE_GOVERNOR="yes", IRQ_CPUS="0")
    undone = machine.bootstrap("--undo", "--only", "tuning")
    assert undone.returncode == 0, undone.stderr
    assert settings(machine) == BEFORE
    assert "systemctl disable ldos-tuning.service" in machine.calls
    left = {place: digest for place, digest in machine.tree().items() if place.startswith(("etc/", "usr/", "opt/"))}
    assert left == tree
