"""Ways in which a job could stay on the machine, or change what comes after it: a script each, run by the job's user."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Attack:
    """Attributes:
    script: what is run, in the user's home.
    leaves: what of it the lab's search finds (a regular expression) where nothing keeps the user from it; empty where
        something of the system keeps every user from it, or root's daemon ends with what it was asked for.
    """

    script: str
    leaves: str = ""


_UNIT: Final = """
mkdir -p ~/.config/systemd/user/default.target.wants
printf '[Service]\\nExecStart=/bin/sleep 4321\\n' >~/.config/systemd/user/stay.service
ln -sf ../stay.service ~/.config/systemd/user/default.target.wants/stay.service
await() { for _ in $(seq 50); do pgrep -u "$(id -u)" -x systemd >/dev/null && return; sleep 0.1; done; }
"""
_LOGIN: Final = """
umask 077; mkdir -p ~/.ssh; ssh-keygen -q -t ed25519 -N '' -f ~/.ssh/id; cp ~/.ssh/id.pub ~/.ssh/authorized_keys
timeout 9 ssh -F none -i ~/.ssh/id -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null \
  -N "$(id -un)@127.0.0.1" &
"""
_SOCKET: Final = """
setsid python3 -c 'import socket, time; s = socket.socket(socket.AF_UNIX); s.bind("\\0stay"); s.listen(); time.sleep(4321)' &
for _ in $(seq 50); do grep -qa @stay /proc/net/unix && break; sleep 0.1; done
"""
_DAEMON: Final = "process [0-9]+: "

ATTACKS: Final = {
    "lingering": Attack(f"{_UNIT} loginctl enable-linger $(id -un) && await", "lingering user ldos-job-"),
    "login": Attack(f"{_UNIT} {_LOGIN} await", "login of user"),
    "unit of the system": Attack("systemd-run --unit=stay --uid=$(id -u) /bin/sleep 4321"),
    "unit of the user": Attack("XDG_RUNTIME_DIR=/run/user/$(id -u) systemd-run --user /bin/sleep 4321"),
    "at": Attack("echo sleep 4321 | at now + 1 hour", "file /var/spool/cron/atjobs/a"),
    "cron": Attack("echo '* * * * * sleep 4321' | crontab -", "file /var/spool/cron/crontabs/ldos-job-"),
    "daemon": Attack("setsid nohup sh -c 'setsid sleep 4321 & exit' >/dev/null 2>&1", f"{_DAEMON}sleep"),
    "terminal": Attack("tmux -L stay new-session -d sleep 4321", f"{_DAEMON}tmux: server"),
    "file in /tmp": Attack("echo stay >/tmp/stay", "file /tmp/stay"),
    "file in /var/tmp": Attack("echo stay >/var/tmp/stay", "file /var/tmp/stay"),
    "file in /dev/shm": Attack("echo stay >/dev/shm/stay", "file /dev/shm/stay"),
    "file in /run": Attack("echo stay >/run/lock/stay", "file /run/lock/stay"),
    "queue": Attack("touch /dev/mqueue/stay", "file /dev/mqueue/stay"),
    "memory": Attack("ipcmk --shmem 64", "System V shm [0-9]+ of user"),
    "semaphore": Attack("ipcmk --semaphore 1", "System V sem [0-9]+ of user"),
    "messages": Attack("ipcmk --queue", "System V msg [0-9]+ of user"),
    "key": Attack("keyctl add user stay secret @u", "keys of user"),
    "abstract socket": Attack(_SOCKET, f"{_DAEMON}python3"),
    "trigger": Attack(
        "lttng --no-sessiond add-trigger --name=stay --condition=event-rule-matches --type=user --name=x --action=notify"
    ),
    "recording": Attack(
        "lttng --no-sessiond create stay --output=/tmp/stay-trace && lttng --no-sessiond enable-event -u -a && "
        "lttng --no-sessiond start"
    ),
    "right of root": Attack("sudo -n touch /etc/stay || su -c 'touch /etc/stay'"),
    "program of root": Attack(
        "cp /bin/sh ~/stay && chmod u+s ~/stay && mv ~/stay /var/tmp/stay-sh", "file /var/tmp/stay-sh"
    ),
    "namespace": Attack("unshare --user --map-root-user sleep 4321 & sleep 0.3", f"{_DAEMON}sleep"),
}
