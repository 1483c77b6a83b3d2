"""The scheduler group of a load, read from the kernel and compared with the requested one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from pytest_ldos.host.autogroup import SchedulingGroup, read_scheduling_group
from pytest_ldos.measure.load.protocol import LoadProof, LoadSite
from pytest_ldos.scenario.loads.spec import SchedulerGroup

OFF: Final = "sched_autogroup is off on this machine: sessions make no difference"
NOBODY: Final = "no process of the stack is there to compare with"


@dataclass(frozen=True, kw_only=True)
class GroupedProof(LoadProof):
    """See `LoadProof`.

    Attributes:
        group: the requested group, `stack` or `own`.
        group_found: the groups in which the load's and the stack's processes compete, according to the kernel.
    """

    group: str
    group_found: str


@dataclass(frozen=True)
class GroupReading:
    """The scheduler group found for a load.

    Attributes:
        found: text for people; also says if the choice makes no difference.
        shortfall: why this is not the requested group; empty if it is.
    """

    found: str
    shortfall: str = ""


NOT_READ: Final = GroupReading(NOBODY)


def read_group(asked: SchedulerGroup, pids: Iterable[int], site: LoadSite) -> GroupReading | None:
    """Compares the load's processes with the stack's; ``None`` if either has no running process."""
    load, stack = _groups(pids), _groups(site.pids())
    return judge_group(asked, load, stack) if load and stack else None


def judge_group(
    asked: SchedulerGroup, load: frozenset[SchedulingGroup], stack: frozenset[SchedulingGroup]
) -> GroupReading:
    if all(not each.cgroup and not each.by_session for each in load | stack):
        return GroupReading(OFF)
    shared = {each.effective for each in load} <= {each.effective for each in stack}
    if any(each.cgroup for each in load | stack):
        return GroupReading(_describe_control_groups(asked, load, stack, shared=shared))
    if asked == SchedulerGroup.STACK:
        found = f"{_names(load)}, {'as the stack' if shared else f'the stack in {_names(stack)}'}"
        return GroupReading(found, "" if shared else f"the load is not in the stack's scheduler group: {found}")
    apart = not {each.effective for each in load} & {each.effective for each in stack}
    found = f"{_names(load)}, the stack in {_names(stack)}"
    return GroupReading(found, "" if apart else f"the load shares the stack's scheduler group: {found}")


def _describe_control_groups(
    asked: SchedulerGroup, load: frozenset[SchedulingGroup], stack: frozenset[SchedulingGroup], *, shared: bool
) -> str:
    if shared:
        return f"{_names(load)}, as the stack" + (
            "; sessions make no difference in it" if asked == SchedulerGroup.OWN else ""
        )
    return f"{_names(load)}, the stack in {_names(stack)}; these groups, not sessions, share the CPUs"


def _groups(pids: Iterable[int]) -> frozenset[SchedulingGroup]:
    return frozenset(group for pid in pids if (group := read_scheduling_group(pid)) is not None)


def _names(groups: frozenset[SchedulingGroup]) -> str:
    return ", ".join(sorted({each.describe() for each in groups}))
