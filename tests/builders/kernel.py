"""Kernel traces as lttng-modules writes them: what the scheduler did, one call an event."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from tests.builders.ctf import Array, Event, Int, Packet, Record, TraceBuilder

EPOCH_NS = 1_700_000_000_000_000_000
PREEMPTED = 0x100
"""`prev_state` of a preempted thread since Linux 4.14."""
SLEEPS = 1
DEAD = 0x10

_INT = Int(32, signed=True)
_NAME = Array(Int(8, signed=True, text=True), 16)
_THREAD = {"_comm": _NAME, "_tid": _INT, "_prio": _INT}
SWITCH = Event(
    "sched_switch",
    1,
    {
        "_prev_comm": _NAME,
        "_prev_tid": _INT,
        "_prev_prio": _INT,
        "_prev_state": Int(64, signed=True),
        "_next_comm": _NAME,
        "_next_tid": _INT,
        "_next_prio": _INT,
    },
)
WAKEUP = Event("sched_wakeup", 2, _THREAD | {"_target_cpu": _INT})
WAKEUP_NEW = Event("sched_wakeup_new", 3, _THREAD | {"_target_cpu": _INT})
WAKING = Event("sched_waking", 4, _THREAD | {"_target_cpu": _INT})
MIGRATE = Event("sched_migrate_task", 5, _THREAD | {"_orig_cpu": _INT, "_dest_cpu": _INT})


@dataclass
class KernelTrace:
    """Events in the order of the calls; one stream a CPU. Times are nanoseconds after `EPOCH_NS`."""

    hostname: str = "builder"
    streams: dict[int, list[Record]] = field(default_factory=lambda: defaultdict(list))
    lost: dict[int, dict[int, int]] = field(default_factory=lambda: defaultdict(dict))

    def switch(self, time: int, cpu: int, prev: int, following: int, *, state: int = SLEEPS) -> None:
        values = {f"_prev_{name}": value for name, value in self._thread(prev).items()}
        values |= {f"_next_{name}": value for name, value in self._thread(following).items()}
        self.streams[cpu].append(Record(SWITCH, time, values | {"_prev_state": state}))

    def wake(self, time: int, cpu: int, tid: int, *, target: int | None = None, event: Event = WAKEUP) -> None:
        values = {f"_{name}": value for name, value in self._thread(tid).items()}
        self.streams[cpu].append(Record(event, time, values | {"_target_cpu": cpu if target is None else target}))

    def migrate(self, time: int, cpu: int, tid: int, *, orig: int, dest: int) -> None:
        values = {f"_{name}": value for name, value in self._thread(tid).items()}
        self.streams[cpu].append(Record(MIGRATE, time, values | {"_orig_cpu": orig, "_dest_cpu": dest}))

    def lose(self, cpu: int, events: int) -> None:
        """Events of a CPU are lost here: a packet ends, and the next one's end reports it."""
        self.lost[cpu][len(self.streams[cpu])] = events

    @staticmethod
    def _thread(tid: int) -> dict[str, object]:
        name = f"thread-{tid}" if tid else "swapper/0"
        return {"comm": list(name.encode().ljust(16, b"\0")), "tid": tid, "prio": 20}

    def write(self, directory: Path) -> Path:
        builder = TraceBuilder(
            [SWITCH, WAKEUP, WAKEUP_NEW, WAKING, MIGRATE],
            clock_offset=EPOCH_NS,
            environment={"domain": "kernel", "hostname": self.hostname},
            header="compact",
        )
        streams = {f"kernel_{cpu}": self._packets(cpu) for cpu in sorted(self.streams)}
        return builder.write(directory / "kernel", streams)

    def _packets(self, cpu: int) -> list[Packet]:
        packets: list[Packet] = []
        begin = discarded = now = 0
        for end in [*sorted(self.lost[cpu]), len(self.streams[cpu])]:
            records = self.streams[cpu][begin:end]
            first, now = (records[0].time, records[-1].time) if records else (now, now)
            packets.append(Packet(records, discarded, len(packets), cpu, begin=first, end=now))
            discarded += self.lost[cpu].get(end, 0)
            begin = end
        return packets


THREADS = A, B, C = 101, 102, 103


def write_three_threads(directory: Path) -> None:
    """A runs 10–20, is preempted by B, runs 30–40 on CPU 0, sleeps 40–50, waits for C 50–55, runs 55–70 on CPU 1."""
    kernel = KernelTrace()
    kernel.switch(5, 1, 0, C)
    kernel.switch(10, 0, 0, A)
    kernel.switch(20, 0, A, B, state=PREEMPTED)
    kernel.switch(30, 0, B, A)
    kernel.switch(40, 0, A, 0)
    kernel.wake(50, 0, A, target=1)
    kernel.switch(55, 1, C, A)
    kernel.switch(70, 1, A, 0)
    kernel.switch(80, 0, 0, B)
    kernel.write(directory)
