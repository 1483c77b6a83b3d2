"""How fast the CPU is at the moment: the same core does not always do the same work in the same time.

On shared machines a core's speed changes by half within seconds (its other hyperthread, its clock,
its caches); what was computed then took longer for no fault of the program.
"""

from __future__ import annotations

import time
from typing import Final

_LOOPS: Final = 40_000


def time_fixed_work() -> int:
    """CPU time that a fixed computation of about a millisecond takes here and now, nanoseconds.

    It is the thread's CPU time, so that waiting for a CPU or for the interpreter, which the
    program under test may cause, does not count.
    """
    began_ns = time.thread_time_ns()
    total = 0
    for number in range(_LOOPS):
        total += number * number
    return time.thread_time_ns() - began_ns
