"""Leftovers of jobs' users on a machine, found by standard programs and not by the lab's search."""

from __future__ import annotations

from typing import Final

from tests.lab.machine import LabMachine

_LOOK: Final = r"""
ps -eo uid=,args= | awk '$1 >= 400000 && $1 < 500000 { print "process", $0 }'
find / -xdev -uid +399999 -uid -500000 -printf 'file %p\n'
for memory in /dev/shm /dev/mqueue /run /tmp /var/tmp; do find $memory -uid +399999 -uid -500000 -printf 'file %p\n'; done
ipcs -a -c | awk '/ldos-job-|4[0-9][0-9][0-9][0-9][0-9]/ { print "ipc", $0 }'
awk '$1 + 0 >= 400000 && $1 + 0 < 500000 { print "key", $0 }' /proc/key-users
grep -a '@stay' /proc/net/unix | sed 's/^/socket /'
ls /var/lib/systemd/linger 2>/dev/null | sed 's/^/linger /'
ls /run/systemd/users | awk '$1 >= 400000 && $1 < 500000 { print "login", $0 }'
lttng --no-sessiond list-triggers 2>/dev/null | grep -E '^- name' | sed 's/^/trigger /'
lttng --no-sessiond list 2>/dev/null | grep -E '^ +[0-9]+\)' | sed 's/^/recording /'
systemctl list-units --all --plain --no-legend 'user@4*' 'stay*' | sed 's/^/unit /'
ls -d /etc/stay 2>/dev/null | sed 's/^/right of root /'
"""


def findings(machine: LabMachine) -> list[str]:
    """One line each."""
    done = machine.run("sh", "-uc", _LOOK)
    assert done.stderr == "", done.stderr
    return done.stdout.splitlines()
