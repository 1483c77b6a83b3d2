"""The health check: takes the runner out, and back in, and leaves a machine alone that measures."""

from __future__ import annotations

import pytest

from tests.builders.lab import LAB
from tests.builders.machine import add_program

OUT = "var/lib/ldos-lab/out-of-service"
LDOS = "opt/ldos-lab/venv/bin"
PACKAGES = "opt/ldos-lab/ros-packages/setup"
TRIED = "var/lib/ldos-lab/tried"


@pytest.fixture
def watched(machine):
    """A machine whose doctor finds nothing."""
    for name in ("say", "settings"):
        machine.write(f"usr/local/lib/ldos-lab/{name}.sh", (LAB / f"lib/{name}.sh").read_text())
    machine.configure(MIN_FREE_GIB="0")
    (machine.root / "dev/shm").mkdir(parents=True)
    doctor(machine, 0)
    machine.write(PACKAGES, f"{machine.root}/setup-1.sh\n")
    machine.write(TRIED, f"{machine.root}/setup-1.sh\n")
    stack(machine, 0)
    return machine


def stack(machine, status, text="1 passed"):
    """The stack that a trial starts, and what comes of it."""
    noted = f'pwd >{machine.fakes}/trial; echo "$@ $SETUP" >>{machine.fakes}/trial; ls >>{machine.fakes}/trial'
    add_program(machine.root / LDOS, "python", f"{noted}; printf '{text}\n'; exit {status}")


def doctor(machine, status, text="ok"):
    script = f"echo \"$@\" >{machine.fakes}/asked; printf '{text}\\n'; exit {status}"
    add_program(machine.root / LDOS, "ldos", script)


def check(machine):
    return machine.run(LAB / "health/check")


def test_healthy_machine_keeps_its_runner(watched):
    done = check(watched)
    assert done.returncode == 0, done.stderr
    assert "ldos-health: well" in done.stderr
    assert watched.calls == []
    assert not (watched.root / OUT).exists()
    assert (watched.fakes / "asked").read_text() == "doctor --stack ros2\n"


@pytest.mark.parametrize("status", [11, 12, 1, 127])
def test_unhealthy_machine_is_taken_out_until_it_recovers(watched, status):
    doctor(watched, status, "error: \\033[2Jno tracer")
    done = check(watched)
    assert done.returncode == 1
    assert f"ldos doctor says so (exit code {status})" in done.stderr
    assert "error: ?[2Jno tracer" in done.stdout
    assert watched.calls == ["systemctl stop ldos-runner.service"]
    assert watched.read(OUT).startswith("health check, ")
    assert check(watched).returncode == 1
    doctor(watched, 0)
    assert check(watched).returncode == 0
    assert watched.calls[-1] == "systemctl start ldos-runner.service"
    assert not (watched.root / OUT).exists()


def test_a_full_disk_takes_it_out(watched):
    watched.configure(MIN_FREE_GIB="99999")
    done = check(watched)
    assert done.returncode == 1
    assert "GiB left, 99999 GiB are needed" in watched.read(OUT)


def test_machine_taken_out_manually_stays_out(watched):
    watched.write(OUT, "new disk, back on Monday\n")
    assert check(watched).returncode == 0
    assert watched.read(OUT) == "new disk, back on Monday\n"
    assert watched.calls == []


def test_machine_with_a_running_job_is_left_alone(watched):
    watched.know("busy")
    doctor(watched, 11)
    done = check(watched)
    assert done.returncode == 0
    assert "a job runs" in done.stderr
    assert watched.calls == []
    assert not (watched.fakes / "asked").exists()


def test_job_started_meanwhile_is_not_ended(watched):
    add_program(watched.root / LDOS, "ldos", f": >{watched.fakes}/busy; exit 11")
    done = check(watched)
    assert done.returncode == 0
    assert "a job runs" in done.stderr
    assert watched.calls == []
    assert not (watched.root / OUT).exists()


def test_ros_2_is_sourced_if_installed(watched):
    watched.write("opt/ros/jazzy/setup.sh", f"echo sourced >{watched.fakes}/ros; : $NOT_SET")
    assert check(watched).returncode == 0
    assert (watched.fakes / "ros").exists()


def test_the_stack_and_the_strictness_are_settings(watched):
    watched.configure(MIN_FREE_GIB="0", ROS2="no", HEALTH_STRICT="yes")
    assert check(watched).returncode == 0
    assert (watched.fakes / "asked").read_text() == "doctor --stack embedded --strict\n"


def test_unreadable_settings_are_unhealthy(watched):
    watched.write("etc/ldos-lab/lab.conf", "MIN_FREE_GIB=$(id)\n")
    assert check(watched).returncode == 1


def test_phase_starts_and_removes_the_timer(machine):
    machine.configure(RUNNER_SCOPE="orgs/acme")
    assert machine.bootstrap("--only", "health").returncode == 0
    assert "systemctl enable --now ldos-health.timer" in machine.calls
    assert machine.bootstrap("--undo", "--only", "health").returncode == 0
    assert "systemctl disable --now ldos-health.timer" in machine.calls
    assert list((machine.root / "etc/systemd/system").iterdir()) == []


# --- one trial of the real stack ------------------------------------------------------------


def test_built_stack_is_tested_once(watched):
    watched.write(PACKAGES, f"{watched.root}/setup-2.sh\n")
    watched.write("setup-2.sh", "SETUP=sourced; export SETUP\n")
    done = check(watched)
    assert done.returncode == 0, done.stderr
    assert "one trial of the real stack on mock hardware succeeded" in done.stderr
    folder, asked, *files = (watched.fakes / "trial").read_text().splitlines()
    assert folder.endswith("/trial")
    assert "-m baseline --ldos-stack=ros2 --ldos-sim=mock --ldos-trials=1" in asked
    assert asked.endswith(" sourced")
    assert files == ["pytest.ini", "test_reach.py"]
    # No job finds the machine taken.
    assert watched.calls == ["systemctl stop ldos-runner.service", "systemctl start ldos-runner.service"]
    (watched.fakes / "trial").unlink()
    assert check(watched).returncode == 0
    assert not (watched.fakes / "trial").exists(), "it was not built again"


def test_failing_stack_takes_the_machine_out_until_it_works(watched):
    (watched.root / TRIED).unlink()
    stack(watched, 11, "infra: \\033[2Jmove_group died")
    done = check(watched)
    assert done.returncode == 1
    assert "infra: ?[2Jmove_group died" in done.stdout
    assert "one trial of the real stack on mock hardware failed (exit code 11)" in watched.read(OUT)
    assert watched.calls[-1] == "systemctl stop ldos-runner.service"
    assert not (watched.root / TRIED).exists()
    stack(watched, 0)
    assert check(watched).returncode == 0
    assert not (watched.root / OUT).exists()
    assert watched.calls[-1] == "systemctl start ldos-runner.service"


def test_stack_is_tested_while_no_job_runs(watched):
    (watched.root / TRIED).unlink()
    add_program(watched.root / LDOS, "ldos", f": >{watched.fakes}/busy; exit 0")
    assert check(watched).returncode == 0
    assert not (watched.fakes / "trial").exists()
    assert watched.calls == []


def test_manually_removed_machine_stays_out_after_a_test(watched):
    (watched.root / TRIED).unlink()
    watched.write(OUT, "new disk, back on Monday\n")
    assert check(watched).returncode == 0
    assert watched.calls == ["systemctl stop ldos-runner.service"]


def test_machine_with_an_unbuilt_stack_is_unhealthy(watched):
    (watched.root / PACKAGES).unlink()
    assert check(watched).returncode == 1
    assert "run lab/bootstrap --only ldos again" in watched.read(OUT)


def test_a_machine_without_ros_tries_no_stack(watched):
    watched.configure(MIN_FREE_GIB="0", ROS2="no")
    for place in (PACKAGES, TRIED):
        (watched.root / place).unlink()
    assert check(watched).returncode == 0
    assert not (watched.fakes / "trial").exists()
