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
from pathlib import Path
from typing import Any

from pytest_ldos.instruments.latency._pingpong import DdsError, Participant, Pinger, Ponger
from pytest_ldos.instruments.latency.peer_parameters import PING, PONG, PeerParameters


def _say(**words: Any) -> None:
    sys.stdout.write(json.dumps(words) + "\n")
    sys.stdout.flush()


def _answer(participant: Participant, given: PeerParameters) -> None:
    """Answers until standard input is closed, or SIGINT."""
    ponger = Ponger(participant, listener=given.listener, cpu=-1)
    _say(ready=True)
    with suppress(KeyboardInterrupt):  # a participant with shared memory must end cleanly
        sys.stdin.read()
    _say(answered=ponger.stop())


def _ask(participant: Participant, given: PeerParameters, *, listener: bool, cpu: int) -> None:
    pinger = Pinger(participant)
    if not pinger.await_match(given.match_timeout_ns):
        _say(matched=False)
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
    _say(
        matched=True,
        sent=found.sent,
        lost=found.lost,
        late=found.late,
        elapsed_ns=found.elapsed_ns,
        is_alone=found.is_alone,
        shares_memory=pinger.shares_memory(),
    )


def main() -> None:
    given = PeerParameters(**json.loads(sys.argv[1]))
    if given.role != PONG:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # Python's handler would wait for the native loop
    participant = Participant(given.library, given.domain, reliable=given.reliable)
    if given.role == PONG:
        _answer(participant, given)
    elif given.role == PING:
        _ask(participant, given, listener=given.listener, cpu=-1)
    else:
        ponger = Ponger(participant, listener=False, cpu=given.pong_cpu)
        _ask(participant, given, listener=False, cpu=given.ping_cpu)
        ponger.stop()


if __name__ == "__main__":
    try:
        main()
    except DdsError as error:
        sys.exit(f"Cyclone DDS: {error}")
