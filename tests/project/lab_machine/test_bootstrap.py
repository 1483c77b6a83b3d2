"""``lab/bootstrap``: what it does, once; what it says when it cannot; that it goes on where it ended."""

from __future__ import annotations

import fcntl
import shutil
import time
from pathlib import Path

import pytest

from tests.builders.lab import LAB, SECRET, build_lab_machine, pack_runner

PHASES = [file.name for file in sorted((LAB / "phases").iterdir())]


def stamps(machine):
    folder = machine.root / "var/lib/ldos-lab/stamps"
    return sorted(file.name for file in folder.iterdir()) if folder.exists() else []


def test_a_bare_machine_is_set_up_and_then_left_alone(machine):
    done = machine.bootstrap()
    assert done.returncode == 0, done.stderr
    assert stamps(machine) == PHASES
    calls = "\n".join(machine.calls)
    order = [
        "apt-get update",
        "ros-jazzy-moveit ",
        "lttng-modules-dkms",
        "modprobe lttng-tracer",
        "-m pip install",
    ]
    assert sorted(order, key=calls.index) == order
    for package in (
        "ros-jazzy-gz-ros2-control",
        "ros-jazzy-ros2-controllers",
        "stress-ng",
        "linux-headers-6.8.0-45-generic",
    ):
        assert package in calls
    assert "groupadd --system tracing" in calls
    stamp = machine.read("var/lib/ldos-lab/stamps/30-tracing")
    assert "did ran modprobe lttng-tracer" in stamp
    assert "+ modprobe lttng-tracer" in machine.read("var/log/ldos-lab/bootstrap.log")

    before, tree = machine.calls, machine.tree()
    again = machine.bootstrap()
    assert again.returncode == 0
    assert again.stderr == "".join(f"bootstrap: {phase}: done\n" for phase in PHASES) + "bootstrap: ready\n"
    assert (machine.calls, machine.tree()) == (before, tree)

    machine.configure(KERNEL_TRACING="no")
    third = machine.bootstrap()
    ran = [line for line in third.stderr.splitlines() if line.endswith(": running")]
    assert [line.split()[1] for line in ran] == ["10-machine:", "30-tracing:", "70-runner:"]


def test_failed_phase_is_named_with_its_last_lines_and_repeated(machine):
    machine.configure(ROS2="no")
    machine.replace("modprobe", 'printf "\\033[2Jmodule is \\342\\200\\256bad\\n" >&2; exit 1')
    done = machine.bootstrap()
    assert done.returncode == 1
    assert "phase 30-tracing failed (status 1); its last lines" in done.stderr
    assert "module is ???bad" in done.stderr
    assert "\x1b" not in done.stderr
    assert "lttng-tracer cannot be loaded" in done.stderr
    assert done.stderr.rstrip().endswith("it goes on with 30-tracing")
    assert stamps(machine) == ["10-machine", "20-ros2"]

    machine.replace("modprobe", "")
    installed = [call for call in machine.calls if "lttng-modules-dkms" in call]
    again = machine.bootstrap()
    assert again.returncode == 0, again.stderr
    assert "20-ros2: done\nbootstrap: 30-tracing: running" in again.stderr
    assert [call for call in machine.calls if "lttng-modules-dkms" in call] == installed
    assert stamps(machine) == PHASES


def test_killed_bootstrap_resumes_in_its_phase(machine):
    machine.configure(ROS2="no")
    machine.replace("modprobe", "kill -KILL 0")
    assert machine.bootstrap("--only", "machine").returncode == 0
    assert machine.bootstrap().returncode == -9
    assert "30-tracing" not in stamps(machine)
    machine.replace("modprobe", "")
    again = machine.bootstrap()
    assert again.returncode == 0, again.stderr
    assert "10-machine: done" in again.stderr
    assert "30-tracing: running" in again.stderr


PACKAGES = "opt/ldos-lab/ros-packages/setup"


def test_ros_stack_is_built_and_removed(machine):
    for phase in ("machine", "ldos"):
        assert machine.bootstrap("--only", phase).returncode == 0
    built = f"{machine.root}/opt/ldos-lab/ros-packages/ros-packages/local_setup.sh\n"
    assert machine.read(PACKAGES) == built
    machine.configure(ROS2="no")
    assert machine.bootstrap("--only", "ldos").returncode == 0
    assert not (machine.root / PACKAGES).exists()
    machine.configure(ROS2="yes")
    assert machine.bootstrap("--only", "ldos").returncode == 0
    assert machine.bootstrap("--undo", "--only", "ldos").returncode == 0
    assert not (machine.root / PACKAGES).parent.exists()


def test_a_stack_that_cannot_be_built_is_named(machine):
    (machine.root / "opt/ros/jazzy/setup.sh").unlink()
    assert machine.bootstrap("--only", "machine").returncode == 0
    done = machine.bootstrap("--only", "ldos")
    assert done.returncode == 1
    assert "the ROS packages of pytest-ldos cannot be built over /opt/ros/jazzy/setup.sh" in done.stderr
    assert not (machine.root / PACKAGES).exists()


EVERYTHING = "ROS2=no\nTUNE_GOVERNOR=yes\nTUNE_TURBO=yes\nIRQ_CPUS=0\nISOLATED_CPUS=3\nRUNNER_SCOPE=orgs/acme\n"


def run_with_fuses(machine, *arguments):
    """Killed at its first command, then restarted and killed at its second, and so on until none is left."""
    for number in range(1, 100):
        machine.know("fuse", f"{number}\n")
        done = machine.bootstrap(*arguments)
        if done.returncode == 0:
            return number
        assert done.returncode == -9, done.stderr
    raise AssertionError("it does not get on")


def settled(machine):
    """The result of a bootstrap, without its intermediate files; archives, which contain the time, by name only."""
    reported = ("var/log/", "var/lib/ldos-lab/stamps/", "var/lib/ldos-lab/doing/")
    found = {place: digest for place, digest in machine.tree().items() if not place.startswith(reported)}
    return {place: digest if not place.endswith(".pyz") else "" for place, digest in found.items()}


@pytest.mark.acceptance
def test_repeatedly_killed_bootstrap_gives_the_same_machine(machine, tmp_path):
    other = build_lab_machine(tmp_path / "other")
    digest = pack_runner(machine)
    shutil.copy(machine.fakes / "answer", other.fakes)
    for each in (machine, other):
        each.write("etc/ldos-lab/runner-token", SECRET, 0o600)
        each.write("etc/ldos-lab/lab.conf", f"{EVERYTHING}RUNNER_VERSION=2.336.0\nRUNNER_SHA256={digest}\n")
    assert run_with_fuses(machine) > 5
    assert other.bootstrap().returncode == 0
    assert stamps(machine) == PHASES
    assert settled(machine) == settled(other)
    for each in (machine, other):
        each.know("passwd", "ldos-runner\n")
    assert run_with_fuses(machine, "--undo") > 4
    (other.fakes / "fuse").unlink(missing_ok=True)
    assert other.bootstrap("--undo").returncode == 0
    assert stamps(machine) == []
    assert settled(machine) == settled(other)


def test_a_dry_run_shows_everything_and_does_nothing(machine):
    machine.configure(
        TUNE_GOVERNOR="yes",
        IRQ_CPUS="0",
        ISOLATED_CPUS="2-3",
        RUNNER_SCOPE="orgs/acme",
        RUNNER_VERSION="2.336.0",
        RUNNER_SHA256="a" * 64,
    )
    tree = machine.tree()
    done = machine.bootstrap("--dry-run", FAKE_UID="1000", NO_NETWORK="yes")
    assert done.returncode == 0, done.stderr
    assert machine.tree() == tree
    assert [call for call in machine.calls if not call.startswith("systemctl is-active")] == []
    for words in (
        "apt-get update",
        "ros-jazzy-moveit",
        "modprobe",
        "tune.py",
        "update-grub",
        "useradd",
        "sha256",
        "systemctl",
    ):
        assert words.lower() in done.stderr.replace("demand_digest", "sha256").lower()
    assert "would write /etc/default/grub.d/60-ldos-lab.cfg" in done.stderr
    assert done.stderr.endswith("nothing was done\n")


def test_undoing_everything_leaves_the_machine_as_it_was(machine):
    digest = pack_runner(machine)
    machine.write("etc/ldos-lab/runner-token", SECRET, 0o600)
    (machine.root.parent / "lab.conf").write_text(
        "ROS2=no\nTUNE_GOVERNOR=yes\nTUNE_TURBO=yes\nIRQ_CPUS=0\nISOLATED_CPUS=3\n"
        f"RUNNER_SCOPE=orgs/acme\nRUNNER_VERSION=2.336.0\nRUNNER_SHA256={digest}\n"
    )
    before = machine.tree()
    done = machine.bootstrap("--config", str(machine.root.parent / "lab.conf"))
    assert done.returncode == 0, done.stderr
    machine.know("passwd", "ldos-runner\n")
    undone = machine.bootstrap("--undo")
    assert undone.returncode == 0, undone.stderr
    after = {place: digest for place, digest in machine.tree().items() if not place.startswith(("var/", "run/"))}
    changed = {place for place in after.keys() | before.keys() if after.get(place) != before.get(place)}
    kernels = {place for place in changed if place.startswith(("proc/", "sys/"))}
    assert changed - kernels == {"etc/ldos-lab/runner.toml"}
    assert {machine.read(place) for place in kernels if "governor" in place} == {"schedutil"}  # but for the line's end
    assert list((machine.root / "var/lib/ldos-lab/stamps").iterdir()) == []


def test_chosen_ros_is_visible_to_jobs_and_removed_by_undo(machine):
    """`.ci/measure` reads it: a machine that was to have ROS 2, and has not, measures nothing else."""
    choice = machine.root / "etc/ldos-lab/stack"
    assert machine.bootstrap("--only", "ros2").returncode == 0
    assert (choice.read_text(), choice.stat().st_mode & 0o777) == ("ros2\n", 0o644)
    assert machine.bootstrap("--undo", "--only", "ros2").returncode == 0
    assert not choice.exists()
    assert machine.bootstrap("--only", "ros2").returncode == 0
    machine.configure(ROS2="no")
    assert machine.bootstrap("--only", "ros2").returncode == 0
    assert not choice.exists()


def test_uninstallable_ros_is_refused(machine):
    machine.replace("apt-get", "exit 100")
    assert machine.bootstrap("--only", "ros2").returncode == 1
    assert not (machine.root / "etc/ldos-lab/stack").exists()


def test_it_needs_root(machine):
    done = machine.bootstrap(FAKE_UID="1000")
    assert done.returncode == 1
    assert "needs root: sudo lab/bootstrap" in done.stderr
    assert machine.calls == []


@pytest.mark.parametrize(
    "release", ['ID=ubuntu\nVERSION_ID="22.04"\nPRETTY_NAME="Ubuntu 22.04"\n', "ID=debian\nVERSION_ID=12\n", ""]
)
def test_it_needs_ubuntu_24_04(machine, release):
    machine.write("etc/os-release", release)
    done = machine.bootstrap()
    assert done.returncode == 1
    assert "needs Ubuntu 24.04" in done.stderr
    assert machine.calls == []


def test_dry_run_elsewhere_shows_the_refusal_and_all_phases(machine):
    machine.write("etc/os-release", 'ID=debian\nVERSION_ID="12"\nPRETTY_NAME="Debian \x1b[2J12"\n')
    machine.configure(ISOLATED_CPUS="900", RUNNER_SCOPE="orgs/acme", RUNNER_VERSION="2.336.0", RUNNER_SHA256="a" * 64)
    machine.replace("uname", '[ "$1" = -m ] && echo aarch64 || echo 6.1.0')
    machine.know("busy")
    tree = machine.tree()
    done = machine.bootstrap("--dry-run", FAKE_UID="1000")
    assert done.returncode == 0, done.stderr
    assert machine.tree() == tree
    assert "\x1b" not in done.stderr
    refused = [line.partition("would refuse: ")[2] for line in done.stderr.splitlines() if "would refuse" in line]
    assert [line.split(";")[0].split(":")[0] for line in refused] == [
        "this needs Ubuntu 24.04",
        "a job runs here",
        "packages of ROS 2 jazzy are for Ubuntu 24.04",
        "ISOLATED_CPUS",
        "the runner is installed on x86_64 only",
    ]
    assert [line.split()[1][:-1] for line in done.stderr.splitlines() if line.endswith(": would run")] == PHASES
    assert done.stderr.endswith("nothing was done\n")


def test_undo_has_a_dry_run(machine):
    machine.configure(ROS2="no")
    assert machine.bootstrap("--only", "machine").returncode == 0
    tree = machine.tree()
    done = machine.bootstrap("--undo", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert machine.tree() == tree
    assert [line for line in done.stderr.splitlines() if line.endswith(": would undo")] == [
        f"bootstrap: {phase}: would undo" for phase in reversed(PHASES)
    ]
    assert ": undoing" not in done.stderr
    assert done.stderr.endswith("nothing was done\n")


@pytest.mark.parametrize("word", ["-h", "--help"])
def test_help_is_the_programs_header_comment(machine, word):
    machine.write("etc/ldos-lab/lab.conf", "nonsense\n")
    done = machine.bootstrap(word, FAKE_UID="1000")
    assert (done.returncode, done.stderr) == (0, "")
    assert "\nUsage: lab/bootstrap [--config FILE] [--dry-run]" in done.stdout
    assert "\n  --undo         puts settings back" in done.stdout
    assert "#" not in done.stdout
    assert "set -eu" not in done.stdout
    assert machine.calls == []


def test_missing_network_is_reported(machine):
    done = machine.bootstrap(NO_NETWORK="yes")
    assert done.returncode == 1
    assert "phase 10-machine failed" in done.stderr
    assert "Could not resolve host" in done.stderr
    assert "is there a network" in done.stderr
    assert stamps(machine) == []


def test_apt_waits_for_automatic_updates(machine):
    machine.replace("apt-get", 'cp "$APT_CONFIG" "$FAKES/apt.conf"')
    lock = machine.write("var/lib/apt/lists/lock", "")
    with lock.open("w") as held:
        fcntl.lockf(held, fcntl.LOCK_EX)
        waiting = machine.begin("--only", "machine")
        await_lock_of(machine, lock)
        assert "apt-get update" not in machine.calls
    assert waiting.wait(60) == 0
    assert "apt-get update" in machine.calls
    settings = (machine.fakes / "apt.conf").read_text()
    assert 'DPkg::Lock::Timeout "1200";' in settings
    assert 'APT::Update::Error-Mode "any";' in settings


def await_lock_of(machine, file):
    """Waits until a process waits for a held lock (``->`` in proc's list)."""
    deadline = time.monotonic() + 60
    number = f":{file.stat().st_ino} "
    while not any("->" in line and number in line for line in Path("/proc/locks").read_text().splitlines()):
        assert time.monotonic() < deadline, "no process waits"
        time.sleep(0.01)


def test_kernel_without_headers_is_reported(machine):
    machine.replace("apt-get", 'case "$*" in *linux-headers*) echo "E: Unable to locate package" >&2; exit 100 ;; esac')
    assert machine.bootstrap("--only", "machine").returncode == 0
    done = machine.bootstrap("--only", "tracing")
    assert done.returncode == 1
    assert "without headers of its kernel (6.8.0-45-generic) this machine has no modules" in done.stderr


def test_phases_are_listed_with_their_state(machine):
    machine.configure(ROS2="no")
    machine.bootstrap("--only", "10-machine")
    machine.bootstrap("--only", "ros2")
    machine.configure(ROS2="yes")
    states = {line.split()[0]: line.split()[1] for line in machine.bootstrap("--list").stdout.splitlines()}
    assert list(states) == PHASES
    assert (states["10-machine"], states["20-ros2"], states["30-tracing"]) == ("changed", "changed", "-")


@pytest.mark.parametrize("arguments", [["--only", "nonsense"], ["--only"], ["--config", "/nowhere"], ["\x1b[2J"]])
def test_unknown_arguments_are_refused(machine, arguments):
    done = machine.bootstrap(*arguments)
    assert done.returncode == 1
    assert done.stderr.startswith("bootstrap: ")
    assert "\x1b" not in done.stderr
    assert machine.calls == []


@pytest.mark.parametrize("arguments", [[], ["--undo"], ["--only", "tuning"]])
def test_a_job_is_not_disturbed(machine, arguments):
    machine.know("busy")
    done = machine.bootstrap(*arguments)
    assert done.returncode == 1
    assert "a job runs here: wait until it has ended" in done.stderr
    assert machine.calls == []
    assert machine.bootstrap("--dry-run").returncode == 0


def test_two_bootstraps_do_not_run_at_once(machine):
    lock = machine.write("var/lib/ldos-lab/lock", "")
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        done = machine.bootstrap()
    assert done.returncode == 1
    assert "another bootstrap is at work" in done.stderr
    assert machine.calls == []
