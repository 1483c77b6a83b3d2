"""Limits of the stack: the CPUs on which its threads run, and a quota of CPU time."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Final

import psutil

from pytest_ldos.base.errors import ConfigurationError, LoadFailed
from pytest_ldos.host.availability import Availability
from pytest_ldos.host.cgroup import QuotaGroup, find_home, find_place
from pytest_ldos.host.counters import CpuTime
from pytest_ldos.host.cpu import (
    Cpus,
    Thread,
    confine,
    describe_cpus,
    our_cpus,
    parse_cpus,
    read_affinities,
    release,
    with_descendants,
)
from pytest_ldos.host.temporary import undone_at_end
from pytest_ldos.measure.load.protocol import Load, LoadProof, LoadSite, MeasuredLoad, watched
from pytest_ldos.robot.stack.cpus import cpus_of
from pytest_ldos.scenario.loads import CpuLimitSpec
from pytest_ldos.scenario.model import StackSpec


def choose_cpus(asked: int | str, where: str, stack: StackSpec) -> Cpus:
    """Returns the CPUs that are `asked` for: a number of those of the stack, or any in a valid list.

    Raises `ConfigurationError` for missing and forbidden ones; the message lists the usable ones.
    """
    ours = cpus_of(stack)
    if isinstance(asked, int):
        chosen, refusal = frozenset(sorted(ours)[:asked]), f"{where} asks for {asked} CPUs"
        is_possible = asked <= len(ours)
    else:
        ours, chosen = ours | our_cpus(), parse_cpus(asked)
        refusal = f"{where} is {asked!r}" + ("" if chosen else ", which names no CPU")
        is_possible = bool(chosen) and chosen <= ours
    if not is_possible:
        raise ConfigurationError(
            f"{refusal}; {'the stack' if stack.cpus else 'this process'} may use {len(ours)}: {describe_cpus(ours)}",
            remedy='ask for a number of them, or name some as "0,2-3"',
        )
    return chosen


def find_escaped(affinities: Mapping[Thread, Cpus], cpus: Cpus) -> str:
    """Returns a thread that may run on other CPUs; empty if there is none."""
    for thread, allowed in affinities.items():
        if not allowed <= cpus:
            return f"{thread.describe()} may run on CPUs {describe_cpus(allowed)}, not only {describe_cpus(cpus)}"
    return ""


_TOLERANCE: Final = 1.1  # above a quota: a period begins with its full quota, and the kernel counts in hundredths
_SLACK_S: Final = 0.2
_MOST_PASSES: Final = 20


@dataclass(frozen=True, kw_only=True)
class CpuLimitProof(LoadProof):
    """Proof of a CPU limit.

    Attributes:
        cpus: CPUs on which every thread of the stack was allowed to run, at every check.
        threads: number of threads at the last check.
        quota_percent: quota as a percentage of a CPU; 0 without one.
        used_percent: percentage of a CPU that the stack used.
        periods, throttled: quota periods in which the stack was runnable, and those in which it was throttled.
        throttled_s: throttled time, summed over CPUs, s.
    """

    cpus: str
    threads: int
    quota_percent: float
    used_percent: float
    periods: int = 0
    throttled: int = 0
    throttled_s: float = 0.0

    def describe(self) -> str:
        stopped = f"stopped in {self.throttled} of {self.periods} periods for {self.throttled_s:.1f} s"
        quota = f", quota {self.quota_percent:g} %, {stopped}" if self.quota_percent else ""
        return (
            f"CPU limit: {self.threads} threads of the stack on CPUs {self.cpus}{quota}; "
            f"it used {self.used_percent:.0f} % of a CPU"
        )


class RunningCpuLimit(MeasuredLoad[CpuLimitSpec, CpuLimitProof]):
    def __init__(self, spec: CpuLimitSpec, site: LoadSite, cpus: Cpus, quota: QuotaGroup | None) -> None:
        super().__init__(spec, self._measured)
        self._site = site
        self._cpus = cpus
        self._quota = quota
        self._lock = threading.Lock()
        self._time = CpuTime(with_descendants(site.pids()))
        self._throttling = self._throttled_since = quota.read_throttling() if quota else None
        self._threads = 0
        self._trouble = ""

    def look(self) -> None:
        """Keeps the CPU time used, and the first violation of the limits. A dead stack is no violation."""
        with self._lock:
            pids = with_descendants(self._site.pids())
            self._time.note(pids)
            if not self._trouble:
                found = read_affinities(pids)
                self._threads = len(found) or self._threads
                self._trouble = find_escaped(found, self._cpus) or self._escaped_quota(pids)
            if self._quota:
                self._throttling = self._quota.read_throttling()

    def _escaped_quota(self, pids: list[int]) -> str:
        if self._quota is None:
            return ""
        if abs(self._quota.read_percent() - self.spec.quota_percent) > 1:
            return f"somebody changed the quota to {self._quota.read_percent():g} %"
        outside = [pid for pid in pids if find_home(pid) != self._quota.folder and _runs(pid)]
        return f"process {outside[0]} of the stack left the control group of the quota" if outside else ""

    def _overuse(self) -> str:
        possible_s = self.spec.quota_percent / 100 * self._time.elapsed_s
        if not self._quota or self._time.used_s <= _TOLERANCE * possible_s + _SLACK_S:
            return ""
        return f"the stack used {self._time.used_percent:.0f} % of a CPU, its quota is {self.spec.quota_percent:g} %"

    def _measured(self) -> CpuLimitProof:
        self.look()
        throttled: dict[str, Any] = {}
        if self._throttling is not None and self._throttled_since is not None:
            throttled = vars(self._throttling.since(self._throttled_since))
        return CpuLimitProof(
            kind=self.spec.KIND,
            seconds=self._time.elapsed_s,
            shortfall=self._trouble or self._overuse(),
            cpus=describe_cpus(self._cpus),
            threads=self._threads,
            quota_percent=self.spec.quota_percent,
            used_percent=self._time.used_percent,
            **throttled,
        )


def cpu_limit_available(spec: CpuLimitSpec, stack: StackSpec) -> Availability:
    """Reports if the limit can be applied; raises `ConfigurationError` for CPUs that do not exist."""
    choose_cpus(spec.cpus, "cpu_limit cpus", stack)
    place = find_place() if spec.quota_percent else None
    if isinstance(place, Availability):
        return Availability(False, f"cpu_limit quota_percent: {place.reason}", place.remedy)
    return Availability(True)


@contextmanager
def run_cpu_limit(spec: CpuLimitSpec, site: LoadSite) -> Iterator[RunningCpuLimit]:
    """Limits the stack inside the ``with`` block; see `run_load`. Then its threads get their former CPUs back."""
    cpu_limit_available(spec, site.stack).demand()
    cpus = choose_cpus(spec.cpus, "cpu_limit cpus", site.stack)

    def pids() -> list[int]:
        return with_descendants(site.pids())

    with ExitStack() as resources:
        try:
            quota = resources.enter_context(_quota(spec, site)) if spec.quota_percent else None
            before = confine(pids, cpus)
            resources.callback(release, pids, before)
        except OSError as error:
            raise LoadFailed(f"the stack cannot be limited: {error}", remedy="run as the user it belongs to") from None
        limit = RunningCpuLimit(spec, site, cpus, quota)
        proof = limit.proof
        if proof.shortfall or not proof.threads:
            raise LoadFailed(f"the stack could not be limited: {proof.shortfall or 'none of its processes runs'}")
        resources.callback(limit.close)
        with watched(limit.look):
            yield limit


@contextmanager
def _quota(spec: CpuLimitSpec, site: LoadSite) -> Iterator[QuotaGroup]:
    place = find_place()
    assert not isinstance(place, Availability)
    with undone_at_end(site.log_directory / "undo.log") as undo:
        group = QuotaGroup(place, spec.quota_percent, undo)
        for _ in range(_MOST_PASSES):
            outside = set(with_descendants(site.pids())) - set(group.members())
            if not outside:
                break
            group.take_in(outside)
        try:
            yield group
        finally:
            group.send_home()


def _runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


LOADS: Final = {CpuLimitSpec.KIND: Load(run=run_cpu_limit, available=cpu_limit_available, proof=CpuLimitProof)}
