"""Present speed of the CPU: a core does not always do the same work in the same time.

On shared machines a core's speed changes by half within seconds (its other hyperthread, its clock,
its caches); work then takes longer for no fault of the program.
"""

from __future__ import annotations

import time
from typing import Final

_LOOPS: Final = 40_000


def time_fixed_work() -> int:
    """CPU time of a fixed computation of about a millisecond, ns.

    The thread's CPU time does not include waits for a CPU or for the interpreter, which the
    program under test may cause.
    """
    began_ns = time.thread_time_ns()
    total = 0
    for number in range(_LOOPS):
        total += number * number
    return time.thread_time_ns() - began_ns
