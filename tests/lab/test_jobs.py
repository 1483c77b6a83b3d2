"""Jobs of a runner that the bootstrap installed, under a systemd that was booted."""

from __future__ import annotations

import pytest

from tests.builders.runner import HEAD, SHA, dispatch, fork_pull_request, maintainers_word, pull_request_target, push
from tests.lab.findings import findings
from tests.lab.github import TOKEN


def await_step(lab, name: str = "begun") -> str:
    """The folder of the job whose step has made a file of that name in its home."""
    look = f"ls /var/lib/ldos-runner/*/home/{name}"
    lab.await_that(lambda: lab.run("sh", "-c", look).returncode == 0, "the job's step")
    return lab.shell(look).removesuffix(f"/home/{name}\n")


def test_an_allowed_job_runs(lab, github):
    result = github.run("echo ran as $(id -u) in $PWD", "exit 3", "echo and after that")
    folder = f"/var/lib/ldos-runner/{result.user}/runner/_work/project"
    assert result.status == 0, result.output
    assert f"hook ended with 0\nran as {result.user} in {folder}\nstep ended with 0\n" in result.output
    assert "step ended with 3\nand after that\n" in result.output
    assert 400_000 <= result.user < 500_000
    lab.await_runner_after(result.user)
    assert [line for line in findings(lab) if str(result.user) in line] == []


def test_no_step_of_a_refused_job_runs(lab, github):
    result = github.run("echo ran", started=fork_pull_request())
    assert result.status == -9, result.output
    assert "::error title=Refused by the lab machine::GITHUB_HEAD_REF is set" in result.output
    assert "ran" not in result.output.splitlines()
    assert "refused: GITHUB_HEAD_REF is set" in lab.journal("--identifier=ldos-lab")
    assert github.run("true").status == 0


@pytest.mark.parametrize(
    ("started", "commit"),
    [
        (push(), SHA),
        (dispatch(), HEAD),
        (pull_request_target(), HEAD),
        (pull_request_target("labeled", author="writer"), HEAD),
        (maintainers_word(f"/ldos {HEAD} trials=3"), HEAD),
    ],
    ids=["push", "hand", "own", "label", "comment"],
)
def test_commit_permitted_by_a_maintainer_runs(lab, github, started, commit):
    """Each of the runner's events, as far as the machine's log, which names the commit."""
    result = github.run("echo ran", started=started)
    assert result.status == 0, result.output
    assert "ran" in result.output.splitlines()
    line = (
        f"allowed: {started.variables['GITHUB_EVENT_NAME']} of arm-makers/arm, measures {commit}, word of maintainer,"
    )
    assert line in lab.journal("--identifier=ldos-lab")


@pytest.mark.parametrize(
    ("started", "reason"),
    [
        (pull_request_target(sender="stranger", author="stranger", of_fork=True), "the pull request is from a fork"),
        (pull_request_target("labeled", author="stranger", of_fork=True), "the pull request is from a fork"),
        (pull_request_target(sender="writer", author="writer"), "'writer' may not start jobs here"),
        (pull_request_target("synchronize", author="writer"), "the pull request is by 'writer': it needs"),
        (maintainers_word(sender="stranger"), "'stranger' may not start jobs here"),
        (maintainers_word(action="edited"), "only a new comment counts"),
        (maintainers_word("/ldos"), "/ldos needs a whole commit after it"),
    ],
    ids=["fork", "fork-label", "writer", "update", "stranger", "edited", "bare"],
)
def test_commit_without_permission_does_not_run(lab, github, started, reason):
    result = github.run("echo ran", started=started)
    assert result.status == -9, result.output
    assert f"::error title=Refused by the lab machine::{reason}" in result.output
    assert "ran" not in result.output.splitlines()
    assert f"refused: {reason}" in lab.journal("--identifier=ldos-lab")


def test_each_job_has_a_registration_and_none_has_the_token(lab, github):
    result = github.run(
        "cat /etc/ldos-lab/runner-token",
        "ls /run/ldos-runner /var/lib/ldos-lab /var/log/ldos-lab",
        "grep -rs github_pat / --include='*jit*' --include='.r*' --include='.c*' /proc/self/environ; true",
        "cat ../../.runner",
    )
    assert TOKEN not in result.output
    assert "runner-token: Permission denied" in result.output
    assert "'/run/ldos-runner': No such file or directory" in result.output
    names = [call["body"]["name"] for call in github.calls]
    assert len(set(names)) == len(names) >= 2
    assert any(f'"AgentName": "{name}"' in result.output for name in names)
    assert {call["authorization"] for call in github.calls} == {f"Bearer {TOKEN}"}


def test_two_jobs_in_a_row_cannot_touch_each_other(lab, github):
    first = github.run(
        "echo mine >~/mine; setsid sleep 4321 & sleep 0.2", "chmod 777 ~ ; touch ../open; chmod 666 ../open"
    )
    name = github.begin("touch ~/begun; until [ -e ~/go ]; do sleep 0.05; done", "ls /var/lib/ldos-runner; cat ~/*")
    folder = await_step(lab)
    second = int(folder.rpartition("/")[2])
    assert second > first.user
    assert lab.run("pgrep", "-u", str(first.user)).returncode == 1

    def as_first(*command: str):
        return lab.run("setpriv", f"--reuid={first.user}", f"--regid={first.user}", "--clear-groups", *command)

    assert as_first("id", "-u").stdout == f"{first.user}\n"
    assert "Operation not permitted" in as_first("pkill", "-KILL", "-u", str(second)).stderr
    for command in (["ls", folder], ["cat", f"{folder}/runner/.credentials"], ["touch", f"{folder}/home/x"]):
        assert "Permission denied" in as_first(*command).stderr
    lab.shell(f"touch {folder}/home/go")
    result = github.result(name)
    assert result.user == second
    assert "mine" not in result.output
    lab.await_runner_after(second)


def test_killed_job_leaves_nothing(lab, github):
    github.begin("touch ~/begun; setsid sleep 4321 & sleep 4321")
    user = await_step(lab).rpartition("/")[2]
    lab.shell(f"systemctl kill --signal=KILL ldos-runner.service; systemctl kill --signal=KILL ldos-job@{user}.service")
    lab.await_runner_after(int(user))
    assert [line for line in findings(lab) if user in line or "4321" in line] == []
    assert lab.run("getent", "passwd", f"ldos-job-{user}").returncode == 2


def test_a_service_that_is_stopped_takes_its_job_with_it(lab, github):
    github.begin("touch ~/begun; sleep 4321")
    await_step(lab)
    lab.shell("systemctl stop ldos-runner.service")
    assert findings(lab) == []
    assert lab.out_of_service == ""
    lab.shell("systemctl start ldos-runner.service")
    assert github.run("true").status == 0


def test_machine_that_reboots_during_a_job_takes_the_next(lab, github):
    github.begin("touch ~/begun; sleep 4321")
    user = await_step(lab).rpartition("/")[2]
    lab.reboot()
    result = github.run("true")
    assert (result.status, result.user > int(user)) == (0, True)
    assert [line for line in findings(lab) if user in line] == []


def test_power_failure_during_a_job_leaves_nothing(lab, github):
    github.begin("touch ~/begun /tmp/kept /var/tmp/kept; sleep 4321")
    user = await_step(lab).rpartition("/")[2]
    lab.cut_off()
    lab.boot()
    result = github.run("ls /var/lib/ldos-runner")
    assert (result.status, result.user > int(user)) == (0, True), result.output
    assert f"\n{user}\n" not in result.output
    assert [line for line in findings(lab) if user in line] == []
    assert lab.run("getent", "passwd", f"ldos-job-{user}").returncode == 2


def test_health_check_runs_as_a_jobs_user(lab, github):
    lab.shell("systemctl start ldos-health.service")
    reported = lab.journal("--unit=ldos-health")
    assert "tracing group       member" in reported
    assert "ldos-health: well" in reported


def test_running_job_is_left_alone(lab, github):
    github.begin("touch ~/begun; sleep 4321")
    folder = await_step(lab)
    lab.shell("systemctl start ldos-health.service")
    assert "a job runs; looked at next time" in lab.journal("--unit=ldos-health")
    assert "a job runs here" in lab.run("/srv/pytest-ldos/lab/bootstrap").stderr
    user = folder.rpartition("/")[2]
    lab.shell(f"systemctl stop ldos-job@{user}.service")
    lab.await_runner_after(int(user))
