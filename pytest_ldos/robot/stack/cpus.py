"""CPUs of a stack's processes: found from the settings, and set for all threads of each process.

A new thread or process inherits the CPUs of its creator. The kernel does not balance load between CPUs that it isolates
(``isolcpus``): the threads of a process would stay on one of several.

Reference: the kernel's ``Documentation/admin-guide/kernel-parameters.txt`` (``isolcpus``); ``sched_setaffinity(2)``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pytest_ldos.base.errors import BringUpFailed, refuse_unknown, require
from pytest_ldos.host import cpu
from pytest_ldos.host.cpu import Cpus, describe_cpus, our_cpus, parse_cpus
from pytest_ldos.scenario.model import ISOLATED, StackSpec

_WHERE: Final = "[tool.ldos.stack] cpus"
_REST: Final = "rest"
_NONE: Final[Cpus] = frozenset()


@dataclass(frozen=True)
class Placement:
    """CPUs of processes by name, and of the stack's other processes; none if the stack may use all CPUs."""

    roles: Mapping[str, Cpus]
    rest: Cpus

    @property
    def whole(self) -> Cpus:
        return self.rest.union(*self.roles.values())

    def describe(self) -> str:
        """``2-3``, or ``move_group=2 rest=3``; empty if the stack may use all CPUs."""
        lists = {**self.roles, _REST: self.rest} if self.roles else {"": self.rest}
        return " ".join(f"{name}={describe_cpus(cpus)}".lstrip("=") for name, cpus in lists.items())

    def by_pid(self, processes: Mapping[int, str]) -> dict[int, Cpus]:
        return {pid: self.roles.get(name, self.rest) for pid, name in processes.items()} if self.rest else {}

    def confine(self, processes: Mapping[int, str]) -> None:
        """Confines all threads of running processes, by their names.

        Raises `ConfigurationError` for a name that no process has, `BringUpFailed` if a process may not be confined.
        """
        refuse_unknown(self.roles, set(processes.values()), f"process in {_WHERE}:")
        for pid, cpus in self.by_pid(processes).items():
            try:
                cpu.confine(lambda pid=pid: cpu.with_descendants([pid]), cpus)  # type: ignore[misc]
            except OSError as error:
                why = f"{processes[pid]} cannot be confined to CPUs {describe_cpus(cpus)}: {error.strerror}"
                raise BringUpFailed(why, remedy="run as the user it belongs to") from None


EVERYWHERE: Final = Placement({}, _NONE)


def find_placement(spec: StackSpec, root: Path = Path("/")) -> Placement:
    """CPUs of a stack on this machine; raises `ConfigurationError` if it cannot have them."""
    if not spec.cpus:
        return EVERYWHERE
    isolated = cpu.read_isolated_cpus(root)
    require(
        spec.cpus != ISOLATED or bool(isolated),
        f'{_WHERE} is "{ISOLATED}", and this kernel isolates no CPU',
        remedy='isolate some (ISOLATED_CPUS in lab.conf, or isolcpus= of the kernel), or name CPUs: cpus = "1"',
    )
    lists = (each.rpartition("=") for each in (isolated if spec.cpus == ISOLATED else spec.cpus).split(" "))
    roles = {name: parse_cpus(cpus) for name, _, cpus in lists}
    require(all(roles.values()), f"{_WHERE} is {spec.cpus!r}, which names no CPU", remedy='write a list as "2-3"')
    rest = roles.pop(_REST, _NONE) or roles.pop("", _NONE) or _NONE.union(*roles.values())
    placement = Placement(roles, rest)
    lacking = placement.whole - cpu.reachable(placement.whole)
    require(
        not lacking,
        f"{_WHERE} is {spec.cpus!r}, and CPUs {describe_cpus(lacking)} do not exist or are not allowed here",
        remedy=f"name some of {describe_cpus(cpu.reachable(our_cpus() | parse_cpus(isolated)))}",
    )
    for name, cpus in {**roles, _REST if roles else "all processes": rest}.items():
        require(
            len(cpus) == 1 or not cpus & parse_cpus(isolated),
            f"{_WHERE} has CPUs {describe_cpus(cpus)} for {name}, and the kernel balances no load "
            f"between CPUs that it isolates ({isolated}): all threads would stay on one",
            remedy="give each process one CPU, as in { move_group = 2, rest = 3 }",
        )
    return placement


def cpus_of(spec: StackSpec) -> Cpus:
    """CPUs that the stack may use."""
    return find_placement(spec).whole or our_cpus()
