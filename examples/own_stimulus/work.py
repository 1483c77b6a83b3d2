"""A stimulus of this project's own: a trial is the time in which something of yours is done, here a computation.

It speaks the line protocol: a line of JSON for each trial comes in, another goes out.
"""

from __future__ import annotations

import json
import sys
import time


def say(**event: object) -> None:
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


def work(amount: int) -> int:
    """The measured work: put your own call here."""
    return sum(number * number for number in range(amount))


def main() -> None:
    say(event="ready")
    for line in sys.stdin:
        command = json.loads(line)
        begin = time.monotonic_ns()
        total = work(200_000)
        end = time.monotonic_ns()
        say(
            event="ended",
            id=command["id"],
            outcome="success" if total else "aborted",
            stamps_ns={"goal_sent": begin, "result": end},
            numbers={"total": float(total)},
        )


if __name__ == "__main__":
    main()
