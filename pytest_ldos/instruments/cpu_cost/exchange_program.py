"""A process that exchanges messages on one rung of the ladder, once for each line that it reads.

Its only argument is a JSON object: ``rung``, ``match_s`` and the fields of `Plan`. It answers in lines of JSON: first
``matched``, then for each exchange the fields of `exchange.Exchange`. Commands and answers are those of the ROS
workspace's ``cost_ladder``.
"""

from __future__ import annotations

import ctypes
import json
import resource
import sys
import time
from collections.abc import Mapping
from typing import Any, Final

from pytest_ldos.base.text import NS_PER_S
from pytest_ldos.instruments.cpu_cost.dds_only import DdsOnly
from pytest_ldos.instruments.cpu_cost.in_process import InProcess
from pytest_ldos.instruments.cpu_cost.nodes import many_nodes, many_participants, no_publishing, one_node
from pytest_ldos.instruments.cpu_cost.spec import Rung
from pytest_ldos.instruments.cpu_cost.traffic import Maker, Plan, Traffic

MAKERS: Final[Mapping[Rung, Maker]] = {
    Rung.IN_PROCESS: InProcess,
    Rung.NO_PUBLISHING: no_publishing,
    Rung.DDS: DdsOnly,
    Rung.ONE_NODE: one_node,
    Rung.MANY_NODES: many_nodes,
    Rung.MANY_PARTICIPANTS: many_participants,
}

_PR_SET_TIMERSLACK: Final = 29
_MATCH_POLL_S: Final = 0.02


def read_usage() -> Mapping[str, int]:
    """Returns the resource usage of this process so far, summed over its threads."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "user_ns": round(used.ru_utime * NS_PER_S),
        "system_ns": round(used.ru_stime * NS_PER_S),
        "voluntary": used.ru_nvcsw,
        "involuntary": used.ru_nivcsw,
    }


def measure(traffic: Traffic, ticks: int) -> Mapping[str, int]:
    """Makes one exchange and returns its usage."""
    before, begin_ns = read_usage(), time.monotonic_ns()
    published, received = traffic.exchange()
    after, wall_ns = read_usage(), time.monotonic_ns() - begin_ns
    used = {name: after[name] - before[name] for name in after}
    return {"ticks": ticks, "published": published, "received": received, "wall_ns": wall_ns, **used}


def await_match(traffic: Traffic, limit_s: float) -> bool:
    deadline = time.monotonic() + limit_s
    while not traffic.is_matched():
        if time.monotonic() > deadline:
            return False
        time.sleep(_MATCH_POLL_S)
    return True


def say(answer: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def main() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0)
    settings = json.loads(sys.argv[1])
    rung, match_s = Rung(settings.pop("rung")), settings.pop("match_s")
    plan = Plan(**settings)
    traffic = MAKERS[rung](plan)
    is_matched = await_match(traffic, match_s)
    say({"matched": is_matched})
    if is_matched:
        for _ in sys.stdin:
            say(measure(traffic, plan.ticks))


if __name__ == "__main__":
    main()
