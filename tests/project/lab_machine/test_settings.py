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


WRONG = [
    ("TUNE_SMT", "maybe", "yes or no"),
    ("ISOLATED_CPUS", "two", "numbers of CPUs such as 2-3 or 0,2"),
    ("IRQ_CPUS", "0;1", "numbers of CPUs such as 2-3 or 0,2"),
    ("RUNNER_SCOPE", "acme", "orgs/NAME or repos/OWNER/NAME, such as orgs/acme"),
    ("RUNNER_GROUP_ID", "mine", "the group's number, such as 5"),
    ("RUNNER_LABELS", "a b", "at most ten names with commas between them, such as ldos-lab,ldos-lab-c6525-25g"),
    ("RUNNER_VERSION", "v2", "three numbers such as 2.336.0"),
    ("RUNNER_SHA256", "ABC", "64 digits 0-9 and a-f, as sha256sum prints them"),
    ("MIN_FREE_GIB", "-1", "a whole number of GiB such as 20"),
]


@pytest.mark.parametrize(("name", "text", "form"), WRONG)
def test_line_and_expected_form_are_reported(machine, name, text, form):
    machine.write("etc/ldos-lab/lab.conf", f"\n{name}={text}\n")
    reported = machine.bootstrap("--list").stderr
    assert reported.endswith(f"lab.conf line 2: {name} cannot be '{text}'; it must be {form}\n")


@pytest.mark.parametrize("name", sorted({name for name, _, _ in WRONG}))
def test_examples_match_their_form(machine, name):
    form = next(form for each, _, form in WRONG if each == name)
    example = "0" * 64 if name == "RUNNER_SHA256" else form.split()[-1]
    machine.write("etc/ldos-lab/lab.conf", f"{name}={example}\n")
    assert machine.bootstrap("--list").returncode == 0


def test_file_writable_by_others_is_refused(machine):
    machine.configure(TUNE_SMT="yes").chmod(0o664)
    done = machine.bootstrap("--dry-run")
    assert done.returncode == 1
    assert "chmod go-w" in done.stderr


def test_the_example_is_a_valid_file_of_settings(machine):
    from tests.builders.lab import LAB

    done = machine.bootstrap("--list", "--config", str(LAB / "lab.conf.example"))
    assert done.returncode == 0, done.stderr


def test_external_file_is_copied_to_the_machine(machine, tmp_path):
    (tmp_path / "mine.conf").write_text("ROS2=no\nKERNEL_TRACING=no")
    done = machine.bootstrap("--config", str(tmp_path / "mine.conf"), "--only", "machine")
    assert done.returncode == 0, done.stderr
    assert machine.read("etc/ldos-lab/lab.conf") == "ROS2=no\nKERNEL_TRACING=no"
