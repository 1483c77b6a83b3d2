"""Nothing of a job stays: not by a way that we know, and what stays by one that we do not know is found."""

from __future__ import annotations

import re

import pytest

from tests.lab.attacks import ATTACKS
from tests.lab.findings import findings

STRANGER = 400_777
"""A job's number outside of the service, where nothing keeps its user from anything."""

_BECOME = f"""
systemctl stop ldos-runner.service
systemctl start lttng-sessiond.service
groupadd --gid {STRANGER} ldos-job-{STRANGER}
useradd --system --uid {STRANGER} --gid {STRANGER} --groups tracing --home-dir /srv/stranger ldos-job-{STRANGER}
install --directory --mode=700 --owner={STRANGER} --group={STRANGER} /srv/stranger
"""
_CLEAN = f"""
rm -rf /srv/stranger /tmp/stay* /tmp/tmux-{STRANGER} /var/tmp/stay* /dev/shm/stay /dev/mqueue/stay /run/lock/stay \
  /run/sudo/ts/ldos-job-{STRANGER} /var/spool/cron/crontabs/ldos-job-{STRANGER} /var/spool/cron/atjobs/a*
ipcrm --all
"""
_AS_STRANGER = ("setpriv", f"--reuid={STRANGER}", f"--regid={STRANGER}", "--init-groups", "env", "HOME=/srv/stranger")


def script(name: str) -> str:
    return f"cd ~; ({ATTACKS[name].script}) </dev/null >said 2>&1; echo '{name}:'; cat said; rm said"


def test_job_that_tries_everything_leaves_nothing(lab, github):
    result = github.run(*map(script, ATTACKS))
    assert result.status == 0, result.output
    lab.await_runner_after(result.user)
    left = [line for line in findings(lab) if re.search(f"stay|linger|4321|{result.user}", line)]
    assert left == [], result.output


@pytest.fixture
def stranger(lab):
    lab.shell(_BECOME)
    yield
    lab.forget_keys()
    lab.shell(_CLEAN)
    lab.shell("rm -f /var/lib/ldos-lab/out-of-service; systemctl start ldos-runner.service")


def test_leftovers_keep_the_machine_out_until_root_has_looked(lab, github, stranger):
    """Each attack, where nothing keeps it from what it does: so that none of those above is harmless by mistake."""
    for name in ATTACKS:
        lab.run(*_AS_STRANGER, "bash", "-c", script(name))
    before = findings(lab)
    assert [line for line in before if line.startswith(("trigger", "recording"))] != []
    # By the service, with the rights that it has: before a job, and again when that could not begin.
    assert lab.run("systemctl", "start", "ldos-runner.service").returncode != 0
    lab.shell("systemctl stop ldos-runner.service")
    reported = (lab.root / "var/lib/ldos-lab/out-of-service.before").read_text()
    missed = [name for name, attack in ATTACKS.items() if not re.search(attack.leaves, reported)]
    assert missed == [], reported
    running = ("process", "socket", "linger", "login", "trigger", "recording", "unit")
    assert [line for line in findings(lab) if line.startswith(running)] == []
    reported = lab.out_of_service
    assert "file /tmp/stay" in reported
    assert "Earlier content: /var/lib/ldos-lab/out-of-service.before" in reported
    assert "Look at it; when the machine is clean: sudo rm /var/lib/ldos-lab/out-of-service" in reported

    lab.shell("systemctl start ldos-runner.service")  # its condition does not hold
    assert lab.run("systemctl", "is-active", "ldos-runner.service").stdout == "inactive\n"
    lab.shell("rm /var/lib/ldos-lab/out-of-service")
    assert lab.run("systemctl", "start", "ldos-runner.service").returncode != 0, "root looked, and cleaned nothing"
    assert "file /tmp/stay" in lab.out_of_service
    lab.forget_keys()
    lab.shell(_CLEAN)
    lab.shell(lab.out_of_service.rpartition("clean: ")[2].replace("sudo ", ""))
    assert github.run("true").status == 0


def test_uid_in_use_is_not_assigned(lab, github):
    number = int(lab.shell("cat /var/lib/ldos-lab/last-job")) + 1
    lab.shell(f"useradd --system --uid {number} --no-create-home somebody")
    try:
        result = github.run("true")
        lab.await_runner_after(result.user)
        assert int(lab.shell("cat /var/lib/ldos-lab/last-job")) == number + 1
        assert f":{number}:" in lab.shell("getent passwd somebody")
    finally:
        lab.shell("userdel somebody")
