"""Settings of the kernel as chosen for a lab machine, and back: ``ldos doctor --fix`` and ``--undo``, by choice.

Values from before are kept in a record of their own; the doctor's is the user's. It runs as root, at every boot.

Reference: the kernel's ``Documentation/core-api/irq/irq-affinity.rst``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from pytest_ldos.base.errors import LdosError, MendFailed
from pytest_ldos.base.text import visible
from pytest_ldos.doctor.changes import ChangeLog, Finding, Machine, Status
from pytest_ldos.doctor.diagnose import check_governor, check_smt, check_switches_of_users, check_turbo

_RECORD: Final = "var/lib/ldos-lab/tuning.json"
_ONLINE: Final = "sys/devices/system/cpu/online"
_DEFAULT_MASK: Final = "proc/irq/default_smp_affinity"

_CHECKS: Final[Mapping[str, Callable[[Machine], Finding]]] = {
    "smt": check_smt,  # first: it takes CPUs away
    "turbo": check_turbo,
    "governor": check_governor,
    "switches": check_switches_of_users,
}


def tune(machine: Machine, changes: ChangeLog, chosen: argparse.Namespace) -> Iterator[str]:
    """Applies what was chosen on the command line, and says of each what came of it.

    Raises:
        MendFailed: a setting was chosen that cannot be had here.
    """
    for name in (each for each in _CHECKS if each in chosen.names):
        yield _apply(_CHECKS[name](machine), machine, changes)
    if chosen.irq_cpus:
        yield from _move_interrupts(machine, changes, parse_cpus(chosen.irq_cpus))


def _apply(finding: Finding, machine: Machine, changes: ChangeLog) -> str:
    if finding.fix is not None:
        finding.fix.apply(machine, changes)
        return f"done: {finding.fix.description}"
    if finding.status is Status.OK:
        return f"{finding.name}: {finding.text}"
    raise MendFailed(f"{finding.name}: {finding.text}", remedy=finding.remedy)


def _move_interrupts(machine: Machine, changes: ChangeLog, cpus: frozenset[int]) -> Iterator[str]:
    """Those that the kernel lets one move: some belong to a CPU, or to a driver."""
    if missing := sorted(cpus - parse_cpus(machine.read(_ONLINE))):
        raise MendFailed(f"CPU {missing[0]} is not online", remedy="set IRQ_CPUS to CPUs that are")
    changes.set_value(machine, _DEFAULT_MASK, render_mask(cpus, like=machine.read(_DEFAULT_MASK)))
    interrupts = sorted(machine.path("proc/irq").glob("[0-9]*/smp_affinity_list"))
    moved = [_can_move(machine, changes, str(file.relative_to(machine.root)), render_cpus(cpus)) for file in interrupts]
    yield f"done: {sum(moved)} of {len(moved)} interrupts, and new ones, go to CPUs {render_cpus(cpus)}"
    if moved and not any(moved):
        raise MendFailed("the kernel lets no interrupt be moved", remedy="leave IRQ_CPUS empty on this machine")


def _can_move(machine: Machine, changes: ChangeLog, place: str, cpus: str) -> bool:
    try:
        changes.set_value(machine, place, cpus)
    except MendFailed:
        return False
    return True


def parse_cpus(text: str) -> frozenset[int]:
    """CPUs of a list as the kernel writes it: ``0,2-4``.

    Raises:
        MendFailed: it is none.
    """
    try:
        ranges = [part.partition("-") for part in text.split(",") if part]
        return frozenset(cpu for low, dash, high in ranges for cpu in range(int(low), int(high if dash else low) + 1))
    except ValueError:
        raise MendFailed(f"{text!r} is no list of CPUs", remedy="as in 0,2-4") from None


def render_cpus(cpus: frozenset[int]) -> str:
    """The list as the kernel writes it, to which what it reads is compared."""
    first = [cpu for cpu in sorted(cpus) if cpu - 1 not in cpus]
    last = [cpu for cpu in sorted(cpus) if cpu + 1 not in cpus]
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in zip(first, last, strict=True))


def render_mask(cpus: frozenset[int], *, like: str) -> str:
    """The mask in the form of another: groups of hexadecimal digits, the last of which has the first CPUs."""
    groups = like.split(",")
    digits = f"{sum(1 << cpu for cpu in cpus):0{sum(map(len, groups))}x}"
    ends = [sum(map(len, groups[: index + 1])) for index in range(len(groups))]
    return ",".join(digits[end - len(group) : end] for group, end in zip(groups, ends, strict=True))


def run(arguments: Sequence[str]) -> int:
    """Entry point.

    Returns:
        Exit code: 0, or 1 where something that was chosen could not be done.
    """
    parser = argparse.ArgumentParser(prog="tune", description=__doc__.partition("\n")[0])
    parser.add_argument("task", choices=("apply", "undo"))
    parser.add_argument("--root", type=Path, default=Path("/"), help="of the machine's files, for tests")
    parser.add_argument("--irq-cpus", default="", help="CPUs that are to serve interrupts: 0,2-4")
    for name in _CHECKS:
        parser.add_argument(f"--{name}", action="append_const", dest="names", const=name, default=[])
    given = parser.parse_args(arguments)
    machine = Machine(root=given.root, uid=0)  # root's program: it writes itself, without sudo
    try:
        changes = ChangeLog(given.root / _RECORD)
        for line in changes.undo(machine) if given.task == "undo" else tune(machine, changes, given):
            sys.stdout.write(f"{visible(line)}\n")
    except LdosError as error:
        sys.stderr.write(f"{visible(f'not done: {error}')}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
