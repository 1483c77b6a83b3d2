"""Settings of a lab machine are text: what is not of its form is refused, and nothing of it is ever run."""

from __future__ import annotations

import pytest

HOSTILE = [
    "ISOLATED_CPUS=$(touch PWNED)",
    "ISOLATED_CPUS=`touch PWNED`",
    "ISOLATED_CPUS=2;touch PWNED",
    "IRQ_CPUS=0 | touch PWNED",
    'RUNNER_LABELS=lab","x',
    "RUNNER_LABELS=a b",
    "RUNNER_SCOPE=repos/a/..",
    "RUNNER_SCOPE=orgs/x/actions/runners?",
    "RUNNER_VERSION=../../etc",
    "RUNNER_SHA256=ABC",
    "MIN_FREE_GIB=-1",
    "TUNE_SMT=yes\r",
    "TUNE_SMT='yes'",
    "TUNE_SMT=\x1b[2J",
    "GOVERNOR=yes",
    "touch PWNED",
    "PATH=/tmp",
    "TUNE_SMT=yes\nTUNE_SMT=no",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_settings_are_refused_and_not_run(machine, text):
    machine.write("etc/ldos-lab/lab.conf", f"# mine\n{text}\n")
    done = machine.bootstrap("--dry-run")
    assert done.returncode == 1
    assert "lab.conf" in done.stderr
    assert "\x1b" not in done.stderr
    assert "\r" not in done.stderr
    assert machine.calls == []
    assert list(machine.root.rglob("PWNED")) == []


def test_the_line_and_the_form_are_told(machine):
    machine.write("etc/ldos-lab/lab.conf", "\nTUNE_SMT=maybe\n")
    assert (
        "lab.conf line 2: TUNE_SMT cannot be 'maybe'; it must be of the form (yes|no)"
        in machine.bootstrap("--list").stderr
    )


def test_a_file_that_others_can_write_is_refused(machine):
    machine.configure(TUNE_SMT="yes").chmod(0o664)
    done = machine.bootstrap("--dry-run")
    assert done.returncode == 1
    assert "chmod go-w" in done.stderr


def test_the_example_is_a_valid_file_of_settings(machine):
    from tests.builders.lab import LAB

    done = machine.bootstrap("--list", "--config", str(LAB / "lab.conf.example"))
    assert done.returncode == 0, done.stderr


def test_a_file_from_elsewhere_becomes_the_machines_own(machine, tmp_path):
    (tmp_path / "mine.conf").write_text("ROS2=no\nKERNEL_TRACING=no")
    done = machine.bootstrap("--config", str(tmp_path / "mine.conf"), "--only", "machine")
    assert done.returncode == 0, done.stderr
    assert machine.read("etc/ldos-lab/lab.conf") == "ROS2=no\nKERNEL_TRACING=no"
