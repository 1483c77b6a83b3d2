"""The runner's phase, and what runs before, for and after each job."""

from __future__ import annotations

import json
import os

import pytest

from tests.builders.lab import SECRET, configure_runner, pack_runner, registration

LIBRARY = "usr/local/lib/ldos-lab"
UNITS = "etc/systemd/system"
JOBS = "var/lib/ldos-runner"
COUNTER = "var/lib/ldos-lab/last-job"
REGISTRATION = "run/ldos-runner"
TOKEN = "etc/ldos-lab/runner-token"


def program(machine, name):
    return machine.root / LIBRARY / f"runner-{name}"


def requests(machine):
    return [call for call in machine.calls if call.startswith("curl ")]


def test_runner_is_installed_as_published(installed):
    assert installed.read("opt/ldos-runner/current/run.sh").startswith("#!/bin/sh")
    folders = [path.name for path in (installed.root / "opt/ldos-runner").iterdir() if not path.is_symlink()]
    assert len(folders) == 1
    log = installed.read("var/log/ldos-lab/bootstrap.log")
    assert "releases/download/v2.336.0/actions-runner-linux-x64-2.336.0.tar.gz" in log
    assert "--home-dir /nonexistent --shell /usr/sbin/nologin ldos-runner" in log
    assert log.index("usermod --groups tracing --lock") < log.index("systemctl restart ldos-runner.service")
    assert (installed.root / LIBRARY / "job-started.sh").exists()
    assert (installed.root / UNITS / "ldos-job@.service").exists()
    assert "say which in" in log
    assert SECRET not in log


def test_a_wrong_digest_unpacks_nothing(machine):
    pack_runner(machine)
    configure_runner(machine)
    machine.write(TOKEN, SECRET, 0o600)
    done = machine.bootstrap("--only", "runner")
    assert done.returncode == 1
    assert "does not have the digest RUNNER_SHA256; nothing was unpacked" in done.stderr
    assert list(machine.root.rglob("run.sh")) == []
    assert not any(call.startswith("systemctl") for call in machine.calls)


def test_failed_download_of_the_runner_is_reported(machine):
    configure_runner(machine)
    machine.write(TOKEN, SECRET, 0o600)
    done = machine.bootstrap("--only", "runner", NO_NETWORK="yes")
    assert done.returncode == 1
    assert "the runner 2.336.0 cannot be fetched" in done.stderr


@pytest.mark.parametrize(
    ("token", "mode", "words"), [(None, 0, "no token in"), ("", 0o600, "no token in"), (SECRET, 0o640, "chmod 600")]
)
def test_token_must_be_readable_only_by_root(machine, token, mode, words):
    configure_runner(machine)
    if token is not None:
        machine.write(TOKEN, token, mode)
    done = machine.bootstrap("--only", "runner")
    assert done.returncode == 1
    assert words in done.stderr
    assert SECRET not in done.stderr
    assert machine.calls == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_token_of_another_owner_is_refused(machine):
    configure_runner(machine)
    os.chown(machine.write(TOKEN, SECRET, 0o600), 4242, 4242)
    done = machine.bootstrap("--only", "runner")
    assert done.returncode == 1
    assert "sudo chown root" in done.stderr
    assert machine.calls == []


def test_kernel_events_are_recorded_only_if_enabled(machine):
    configure_runner(machine, pack_runner(machine), KERNEL_TRACING="no")
    machine.write(TOKEN, SECRET, 0o600)
    assert machine.bootstrap("--only", "runner").returncode == 0
    assert "usermod --groups  --lock ldos-runner" in machine.calls


def test_a_program_must_be_named_with_its_digest(machine):
    machine.configure(RUNNER_SCOPE="orgs/acme", RUNNER_VERSION="2.336.0")
    assert "set RUNNER_VERSION and RUNNER_SHA256" in machine.bootstrap("--only", "runner").stderr
    assert machine.calls == []


@pytest.mark.parametrize(
    ("scope", "group", "is_told"), [("orgs/acme", 1, True), ("orgs/acme", 3, False), ("repos/acme/arm", 1, False)]
)
def test_runner_group_of_all_repositories_is_reported(machine, scope, group, is_told):
    version = {"RUNNER_VERSION": "2.336.0", "RUNNER_SHA256": "a" * 64}
    machine.configure(RUNNER_SCOPE=scope, RUNNER_GROUP_ID=str(group), **version)
    done = machine.bootstrap("--only", "runner", "--dry-run")
    assert done.returncode == 0
    assert ("is the group that all repositories may use" in done.stderr) is is_told


def test_a_user_who_may_use_sudo_is_refused(machine):
    configure_runner(machine, pack_runner(machine))
    machine.write(TOKEN, SECRET, 0o600)
    machine.replace("sudo", "echo 'User ldos-runner may run the following commands on node-0: ALL'")
    done = machine.bootstrap("--only", "runner")
    assert done.returncode == 1
    assert "ldos-runner may use sudo" in done.stderr


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("passwd", "somebody:x:400123:100::/:/bin/sh"),
        ("group", "some:x:499999:"),
        ("subuid", "somebody:362144:65536"),
        ("subgid", "somebody:499999:1"),
    ],
)
def test_job_uids_in_use_are_refused(machine, file, line):
    configure_runner(machine, pack_runner(machine))
    machine.write(TOKEN, SECRET, 0o600)
    machine.write(f"etc/{file}", f"root:x:0:0::/:/bin/sh\nldos-job-400000:x:400000:400000\n{line}\n")
    done = machine.bootstrap("--only", "runner")
    assert done.returncode == 1
    assert f"somebody in /etc/{file}" in done.stderr or f"some in /etc/{file}" in done.stderr
    assert "are for users of jobs" in done.stderr
    assert machine.calls == []


def test_a_job_gets_a_registration_and_never_the_token(installed):
    done = installed.run(program(installed, "prepare"))
    assert done.returncode == 0, done.stderr
    [call] = requests(installed)
    assert "https://api.github.com/orgs/acme/actions/runners/generate-jitconfig" in call
    assert call.startswith("curl --disable ")  # or a .curlrc would say where the token goes
    body = json.loads(call.partition("--data ")[2].rpartition(" https://")[0])
    assert body == {
        "name": "lab-node-0lab-5b0d1a2c-7e41",
        "runner_group_id": 1,
        "labels": ["self-hosted", "linux", "x64", "ldos-lab"],
        "work_folder": "_work",
    }
    assert (installed.fakes / "curl-input").read_text() == f'header = "Authorization: Bearer {SECRET}"\n'
    runner = installed.root / JOBS / "400000/runner"
    assert json.loads((runner / ".runner").read_text()) == {"AgentName": "lab"}
    files = sorted(path for path in runner.iterdir() if path.is_file())
    assert [path.name for path in files] == [".credentials", ".credentials_rsaparams", ".runner"]
    assert {path.stat().st_mode & 0o777 for path in files} == {0o640}
    assert all(SECRET not in printed for printed in [*installed.calls, done.stdout, done.stderr])
    seen = [path for folder in (JOBS, REGISTRATION) for path in (installed.root / folder).rglob("*") if path.is_file()]
    assert all(SECRET not in path.read_text() for path in seen)
    assert [path.name for path in (installed.root / REGISTRATION).iterdir()] == ["number"]


def test_labels_are_those_of_the_settings_each_once(installed):
    configure_runner(installed, RUNNER_LABELS="ldos-lab,c6525-25g,Self-Hosted,LDOS-lab")
    assert installed.run(program(installed, "prepare")).returncode == 0
    [call] = requests(installed)
    assert '"labels":["self-hosted","linux","x64","ldos-lab","c6525-25g"]' in call


def test_each_job_has_a_user_and_a_registration_of_its_own(installed):
    names = []
    for number in (400_000, 400_001):
        installed.write("proc/sys/kernel/random/uuid", f"{number}1a2c-7e41-4f7a-9c55-1d2f3a4b5c6d\n")
        installed.know("answer", registration(runner=f"job {number}"))
        assert installed.run(program(installed, "prepare")).returncode == 0
        assert installed.read(f"{JOBS}/{number}/runner/.runner") == f"job {number}"
        assert installed.read(f"{REGISTRATION}/number") == f"{number}\n"
        assert f"groupadd --gid {number} ldos-job-{number}" in installed.calls
        names.append(requests(installed)[-1].partition('"name":"')[2].partition('"')[0])
        assert installed.run(program(installed, "clear")).returncode == 0
    assert len(set(names)) == 2


def test_jobs_user_has_no_other_rights(installed):
    assert installed.run(program(installed, "prepare")).returncode == 0
    [made] = [call for call in installed.calls if call.startswith("useradd ")]
    assert made == (
        "useradd --system --uid 400000 --gid 400000 --groups tracing --no-create-home --home-dir /nonexistent "
        "--shell /usr/sbin/nologin --expiredate 1970-01-02 ldos-job-400000"
    )
    assert "systemctl start lttng-sessiond.service" in installed.calls


def test_jobs_user_cannot_reach_roots_daemon_unless_enabled(installed):
    configure_runner(installed, KERNEL_TRACING="no")
    assert installed.run(program(installed, "prepare")).returncode == 0
    assert any("--groups  --no-create-home" in call for call in installed.calls)
    assert "systemctl start lttng-sessiond.service" not in installed.calls


@pytest.mark.parametrize(
    ("last", "next_", "words"),
    [
        ("400017", 400_018, ""),
        ("499998", 499_999, ""),
        ("499999", None, "all numbers for jobs were given out"),
        ("", None, "holds no number of a job"),
        ("399998", None, "holds no number of a job"),
        ("1000", None, "holds no number of a job"),
        ("400000; touch /x", None, "holds no number of a job"),
    ],
)
def test_uid_is_assigned_once(installed, last, next_, words):
    installed.write(COUNTER, f"{last}\n")
    done = installed.run(program(installed, "prepare"))
    assert (done.returncode == 0) is (next_ is not None)
    assert words in done.stderr
    assert installed.read(COUNTER) == f"{next_ or last}\n"
    assert requests(installed) == [] or next_ is not None


def test_assigned_uid_is_never_reused(installed):
    installed.know("answer", registration(runner="{}", env="PATH=/tmp"))
    assert installed.run(program(installed, "prepare")).returncode == 1
    assert installed.read(COUNTER) == "400000\n"
    installed.know("passwd", "400001\n")  # somebody has it
    installed.know("answer", registration(runner="{}"))
    assert installed.run(program(installed, "clear")).returncode == 0
    assert installed.run(program(installed, "prepare")).returncode == 0
    assert installed.read(COUNTER) == "400002\n"


def test_without_a_registration_no_uid_is_used(installed):
    """A quarter of a minute each, they would all be in a month without GitHub."""
    installed.know("status", "500")
    assert installed.run(program(installed, "prepare")).returncode == 1
    assert not (installed.root / COUNTER).exists()
    assert not any(call.startswith(("groupadd", "useradd")) for call in installed.calls)


def test_without_roots_daemon_no_registration_is_requested(installed):
    installed.replace("systemctl", 'case "$1" in start) exit 1 ;; is-active) exit 3 ;; esac')
    done = installed.run(program(installed, "prepare"))
    assert done.returncode == 1
    assert "root's LTTng daemon, which KERNEL_TRACING=yes asks for, cannot be started" in done.stderr
    assert requests(installed) == []


def test_jobs_sessions_in_roots_daemon_end_with_it(installed):
    installed.know("active-lttng-sessiond.service")
    assert installed.run(program(installed, "clear")).returncode == 0
    assert installed.calls == [
        "systemctl stop ldos-job@*.service",
        "systemctl is-active --quiet lttng-sessiond.service",
        "systemctl stop lttng-sessiond.service",
    ]


def test_a_job_begins_in_a_new_folder_and_leaves_nothing(installed):
    installed.run(program(installed, "prepare"))
    (installed.root / JOBS / "400000/home/.bashrc").write_text("left behind")
    outside = installed.write("outside/file", "mine")
    (installed.root / JOBS / "400000/link").symlink_to(outside.parent)
    assert installed.run(program(installed, "prepare")).returncode == 0
    assert [path.name for path in (installed.root / JOBS).iterdir()] == ["400001"]
    assert list((installed.root / JOBS / "400001/home").iterdir()) == []
    done = installed.run(program(installed, "run-job"))
    assert done.returncode == 0, done.stderr
    assert installed.calls[-1] == "systemctl start --wait ldos-job@400001.service"
    installed.write("etc/passwd", "root:x:0:0::/root:/bin/sh\nldos-job-400001:x:400001:400001::/:/bin/false\n")
    assert installed.run(program(installed, "clear")).returncode == 0
    assert list((installed.root / JOBS).iterdir()) == []
    assert list((installed.root / REGISTRATION).iterdir()) == []
    assert installed.calls[-1] == "userdel ldos-job-400001"
    assert outside.read_text() == "mine"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_machine_on_which_a_job_left_a_file_takes_no_other(installed):
    os.chown(installed.write("var/tmp/a \x1b[2J", ""), 400_017, 400_017)
    done = installed.run(program(installed, "prepare"))
    assert done.returncode == 1
    assert "this machine is not fit for a job" in done.stderr
    reported = installed.read("var/lib/ldos-lab/out-of-service")
    assert f"file {installed.root}/var/tmp/a \\x1b[2J" in reported
    assert requests(installed) == []
    (installed.root / "var/tmp/a \x1b[2J").unlink()
    assert installed.run(program(installed, "prepare")).returncode == 0


def test_a_machine_that_cannot_be_searched_takes_no_job(installed):
    installed.write("proc/self/mountinfo", "")
    installed.write("var/lib/ldos-lab/out-of-service", "new disk\n")
    assert installed.run(program(installed, "clear")).returncode == 1
    assert "cannot be determined: OSError: /proc/self/mountinfo lists no mounted file system" in installed.read(
        "var/lib/ldos-lab/out-of-service"
    )
    assert installed.read("var/lib/ldos-lab/out-of-service.before") == "new disk\n"


def test_unstoppable_job_takes_the_machine_out(installed):
    installed.replace("systemctl", "exit 1")
    assert installed.run(program(installed, "clear")).returncode == 1
    assert "a job's service cannot be stopped" in installed.read("var/lib/ldos-lab/out-of-service")


@pytest.mark.parametrize(
    ("answer", "status", "words"),
    [
        ('{"message": "Bad credentials\\u001b[2J"}', "401", "(status 401): Bad credentials?"),
        ("<html>", "502", "gives no registration (status 502)"),
        ("<html>", "201", "is none that was expected"),
        ('{"runner": {"id": 1}, "encoded_jit_config": "a b; touch /x"}', "201", "is none that was expected"),
        ('{"runner": {"id": 1}}', "201", "is none that was expected"),
        (registration(credentials="{}"), "201", "is none that was expected"),
        (registration(runner="{}", env="PATH=/tmp"), "201", "is none that was expected"),
        (registration(runner="{}", **{"runner/../../x": "{}"}), "201", "is none that was expected"),
    ],
)
def test_response_without_a_registration_starts_no_job(installed, answer, status, words):
    installed.know("answer", answer)
    installed.know("status", status)
    done = installed.run(program(installed, "prepare"))
    assert done.returncode == 1
    assert words in done.stderr
    assert "\x1b" not in done.stderr
    assert SECRET not in done.stderr
    assert not (installed.root / REGISTRATION / "number").exists()


@pytest.mark.parametrize(("token", "words"), [("", "is empty"), ('x" \noutput = "/etc/passwd', "holds no token")])
def test_invalid_token_is_never_sent(installed, token, words):
    installed.write(TOKEN, token, 0o600)
    done = installed.run(program(installed, "prepare"))
    assert done.returncode == 1
    assert words in done.stderr
    assert requests(installed) == []


def test_without_the_hook_there_is_no_job(installed):
    (installed.root / LIBRARY / "job-started.sh").unlink()
    done = installed.run(program(installed, "prepare"))
    assert done.returncode == 1
    assert "job-started.sh whatever is asked for would run" in done.stderr
    assert installed.calls == []


def test_without_a_network_there_is_no_job(installed):
    done = installed.run(program(installed, "prepare"), NO_NETWORK="yes")
    assert done.returncode == 1
    assert "GitHub cannot be reached" in done.stderr


def test_undo_removes_everything_except_operator_files(installed):
    installed.know("passwd", "ldos-runner\n")
    undone = installed.bootstrap("--undo", "--only", "runner")
    assert undone.returncode == 0, undone.stderr
    assert "systemctl disable --now ldos-runner.service" in installed.calls
    assert "userdel ldos-runner" in installed.calls
    assert not (installed.root / "opt/ldos-runner").exists()
    assert [path.name for path in (installed.root / UNITS).rglob("*") if path.is_file()] == []
    assert (installed.root / TOKEN).exists()
    assert "revoke it on GitHub" in undone.stderr


def test_runner_no_longer_configured_is_removed(installed):
    installed.configure()
    assert installed.bootstrap("--only", "runner").returncode == 0
    assert "systemctl disable --now ldos-runner.service" in installed.calls
