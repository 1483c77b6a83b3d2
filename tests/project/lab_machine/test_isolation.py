"""Isolated CPUs: words on the kernel's command line, by a file of GRUB's."""

from __future__ import annotations

import subprocess

import pytest

from tests.builders.lab import CPU

DROP_IN = "etc/default/grub.d/60-ldos-lab.cfg"


def test_kernel_arguments_are_added_and_removed_and_a_reboot_is_requested(machine):
    machine.configure(ISOLATED_CPUS="2-3")
    done = machine.bootstrap("--only", "isolation")
    assert done.returncode == 0, done.stderr
    assert "reboot, so that CPUs 2-3 are isolated" in done.stderr
    assert machine.calls == ["update-grub "]
    script = f'GRUB_CMDLINE_LINUX=quiet; . "{machine.root / DROP_IN}"; echo "$GRUB_CMDLINE_LINUX"'
    words = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout
    assert words == "quiet isolcpus=managed_irq,domain,2-3 nohz_full=2-3 rcu_nocbs=2-3\n"

    undone = machine.bootstrap("--undo", "--only", "isolation")
    assert "reboot, so that no CPU is isolated" in undone.stderr
    assert not (machine.root / DROP_IN).exists()
    assert machine.calls == ["update-grub "] * 2
    machine.bootstrap("--undo", "--only", "isolation")
    assert machine.calls == ["update-grub "] * 2


def test_no_reboot_is_requested_after_the_reboot(machine):
    machine.configure(ISOLATED_CPUS="2-3")
    machine.write(f"{CPU}/isolated", "2-3\n")
    assert "reboot" not in machine.bootstrap("--only", "isolation").stderr


@pytest.mark.parametrize("task", [[], ["--undo"]])
def test_a_command_that_failed_is_run_again(machine, task):
    machine.configure(ISOLATED_CPUS="2-3")
    if task:
        machine.bootstrap("--only", "isolation")
    machine.replace("update-grub", "exit 1")
    done = machine.bootstrap(*task, "--only", "isolation")
    assert done.returncode == 1
    assert "phase 60-isolation failed" in done.stderr
    machine.replace("update-grub", "")
    before = len(machine.calls)
    assert machine.bootstrap(*task, "--only", "isolation").returncode == 0
    assert machine.calls[before:] == ["update-grub "]
    assert (machine.root / DROP_IN).exists() is not bool(task)


def test_original_arguments_are_restored(machine):
    machine.write(DROP_IN, "# mine\n")
    machine.configure(ISOLATED_CPUS="3")
    machine.bootstrap("--only", "isolation")
    machine.configure(ISOLATED_CPUS="2")
    machine.bootstrap("--only", "isolation")
    assert "isolcpus=managed_irq,domain,2 " in machine.read(DROP_IN)
    machine.configure()
    machine.bootstrap("--only", "isolation")
    assert machine.read(DROP_IN) == "# mine\n"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"ISOLATED_CPUS": "0-1"}, "CPU 0 cannot be isolated"),
        ({"ISOLATED_CPUS": "2-4"}, "there is no CPU 4 here"),
        ({"ISOLATED_CPUS": "2-3", "IRQ_CPUS": "1-2"}, "CPU 2 is in ISOLATED_CPUS and in IRQ_CPUS"),
    ],
)
def test_cpus_that_cannot_be_isolated_are_refused(machine, settings, words):
    machine.configure(**settings)
    done = machine.bootstrap("--only", "isolation")
    assert done.returncode == 1
    assert words in done.stderr
    assert machine.calls == []
    assert not (machine.root / DROP_IN).exists()
