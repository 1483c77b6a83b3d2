"""The process of one side, or of both: ``python -m pytest_ldos.instruments.latency.peer PARAMETERS``.

Its only argument is a JSON object (`PeerParameters`). Pong prints ``{"ready": true}`` when it can answer, and ends
with its standard input. Ping ends with a report (see `pair`), and writes its times to a file: all round trips as
64-bit nanoseconds, then the one-way times of the pings.
"""

from __future__ import annotations

import json
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pytest_ldos.instruments.latency._pingpong import Pinger, Ponger

PING: Final = "ping"
PONG: Final = "pong"
BOTH: Final = "both"


@dataclass(frozen=True, kw_only=True)
class PeerParameters:
    """`PING`, `PONG` or `BOTH`, with the paths of Cyclone DDS's library and of the file for the times.

    With an interval of 0, the next message is sent as soon as the answer arrives. The CPUs of the two threads of `BOTH`
    are -1 for any.
    """

    role: str
    library: str
    domain: int
    reliable: bool
    listener: bool
    size: int
    duration_ns: int
    warm_up_ns: int
    patience_ns: int
    match_timeout_ns: int
    interval_ns: int
    ping_cpu: int
    pong_cpu: int
    samples: str


def _report(**fields: Any) -> None:
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()


def _answer(ponger: Ponger) -> None:
    """Answers until standard input is closed, or SIGINT."""
    _report(ready=True)
    with suppress(KeyboardInterrupt):  # a participant with shared memory must end cleanly
        sys.stdin.read()
    _report(answered=ponger.stop())


def _ask(pinger: Pinger, given: PeerParameters, *, listener: bool, cpu: int) -> None:
    if not pinger.await_match(given.match_timeout_ns):
        _report(matched=False)
        return
    found = pinger.run(
        size=given.size,
        warm_up_ns=given.warm_up_ns,
        duration_ns=given.duration_ns,
        patience_ns=given.patience_ns,
        interval_ns=given.interval_ns,
        listener=listener,
        cpu=cpu,
    )
    Path(given.samples).write_bytes(found.round_trips + found.ways_there)
    _report(
        matched=True,
        sent=found.sent,
        lost=found.lost,
        late=found.late,
        elapsed_ns=found.elapsed_ns,
        is_alone=found.is_alone,
        shares_memory=pinger.shares_memory(),
    )


def main() -> None:
    from pytest_ldos.instruments.latency import _pingpong as native  # noqa: PLC0415 - `pair` needs the parameters only

    given = PeerParameters(**json.loads(sys.argv[1]))
    if given.role != PONG:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # Python's handler would wait for the native loop
    try:
        participant = native.Participant(given.library, given.domain, reliable=given.reliable)
        if given.role == PONG:
            _answer(native.Ponger(participant, listener=given.listener, cpu=-1))
        elif given.role == PING:
            _ask(native.Pinger(participant), given, listener=given.listener, cpu=-1)
        else:
            ponger = native.Ponger(participant, listener=False, cpu=given.pong_cpu)
            _ask(native.Pinger(participant), given, listener=False, cpu=given.ping_cpu)
            ponger.stop()
    except native.DdsError as error:
        sys.exit(f"Cyclone DDS: {error}")


if __name__ == "__main__":
    main()
