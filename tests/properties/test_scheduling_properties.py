"""A made-up scheduler that keeps its own record: what the trace says is what it did."""

from __future__ import annotations

import random
import tempfile
from collections import defaultdict
from pathlib import Path

import pytest

from pytest_ldos.trace.ctf.read import read_trace
from pytest_ldos.trace.execution.scheduling import build_thread_states
from tests.builders.kernel import EPOCH_NS, PREEMPTED, SLEEPS, KernelTrace

IDLE = 0


class Scheduler:
    """Some CPUs, each with a queue of threads that wait for it; the others sleep."""

    def __init__(self, seed: int, cpus: int = 3, threads: int = 7) -> None:
        self.random = random.Random(seed)
        self.trace = KernelTrace()
        self.now = 0
        self.running = dict.fromkeys(range(cpus), IDLE)
        self.queues: dict[int, list[int]] = {cpu: [] for cpu in range(cpus)}
        self.asleep = set(range(1, threads + 1))
        self.record: dict[int, list[tuple]] = defaultdict(list)

    def note(self, tid, state, cpu=None, by=None) -> None:
        """The thread's first note is its first event."""
        if tid != IDLE:
            self.record[tid].append((self.now, state, cpu, by))

    def step(self) -> None:
        self.now += self.random.randint(1, 5)
        cpu = self.random.choice(list(self.running))
        self.random.choice([self.block, self.preempt, self.pick, self.wake, self.wake, self.migrate])(cpu)

    def switch(self, cpu, following, state) -> None:
        self.trace.switch(self.now, cpu, self.running[cpu], following, state=state)
        self.running[cpu] = following
        self.note(following, "running", cpu)

    def following(self, cpu) -> int:
        return self.queues[cpu].pop(self.random.randrange(len(self.queues[cpu]))) if self.queues[cpu] else IDLE

    def block(self, cpu) -> None:
        tid = self.running[cpu]
        if tid != IDLE:
            self.asleep.add(tid)
            self.note(tid, "blocked")
            self.switch(cpu, self.following(cpu), SLEEPS)

    def preempt(self, cpu) -> None:
        tid, following = self.running[cpu], self.following(cpu)
        if following != IDLE:
            if tid != IDLE:
                self.queues[cpu].append(tid)
                self.note(tid, "runnable", cpu, following)
            self.switch(cpu, following, self.random.choice([0, PREEMPTED]))

    def pick(self, cpu) -> None:
        if self.running[cpu] == IDLE:
            self.preempt(cpu)

    def wake(self, cpu) -> None:
        if self.asleep:
            tid = self.random.choice(sorted(self.asleep))
            self.asleep.remove(tid)
            self.queues[cpu].append(tid)
            self.trace.wake(self.now, self.random.choice(list(self.running)), tid, target=cpu)
            self.note(tid, "runnable", cpu)

    def migrate(self, cpu) -> None:
        if self.queues[cpu]:
            tid = self.following(cpu)
            dest = self.random.choice(list(self.running))
            self.queues[dest].append(tid)
            self.trace.migrate(self.now, dest, tid, orig=cpu, dest=dest)
            was_preempted_by = self.record[tid][-1][3]
            self.note(tid, "runnable", dest, was_preempted_by)

    def intervals(self) -> list[tuple]:
        found = []
        for tid, notes in self.record.items():
            merged = [note for at, note in enumerate(notes) if at == 0 or note[1:] != notes[at - 1][1:]]
            ends = [*(note[0] for note in merged[1:]), self.now]
            found += [(tid, begin, end, *rest) for (begin, *rest), end in zip(merged, ends, strict=True) if end > begin]
        return sorted(found)


@pytest.mark.parametrize("seed", range(20))
def test_states_match_the_scheduler(seed):
    scheduler = Scheduler(seed)
    while sum(map(len, scheduler.record.values())) < 400:
        scheduler.step()
    with tempfile.TemporaryDirectory() as folder:
        scheduler.trace.write(Path(folder))
        states = build_thread_states(read_trace(folder))
    columns = states.select("tid", "begin_ns", "end_ns", "state", "cpu", "preempted_by")
    found = [(tid, begin - EPOCH_NS, end - EPOCH_NS, *rest) for tid, begin, end, *rest in columns.iter_rows()]
    assert found == scheduler.intervals()
