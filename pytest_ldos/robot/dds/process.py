"""Setup and end of a process that runs a node."""

from __future__ import annotations

import ctypes
import json
import os
import sys
from collections.abc import Callable
from typing import Any, Final

from pytest_ldos.robot.dds.executor import stop_on_signals
from pytest_ldos.robot.dds.node import Context

_PR_SET_NAME: Final = 15
_PR_SET_TIMERSLACK: Final = 29
_TIMER_SLACK_NS: Final = 1


def run_node(name: str, build: Callable[[Context, dict[str, Any]], Callable[[], None]]) -> None:
    """Runs a node until SIGINT or SIGTERM.

    The process gets the node's name, which is what a trace shows as `procname`, and the
    finest timer slack. Its only argument is a JSON object of parameters, with the DDS
    domain as ``domain``. It ends at once when it has left the domain: the interpreter would take a quarter of a
    second to let go of its modules, in each process of each start.

    Args:
        build: makes the node in a context, and returns the function to call at the end.
    """
    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_NAME, name.encode("ascii"), 0, 0, 0)
    libc.prctl(_PR_SET_TIMERSLACK, _TIMER_SLACK_NS, 0, 0, 0)
    parameters = json.loads(sys.argv[1])
    context = Context(parameters["domain"])
    stop_on_signals(context.executor)
    close = build(context, parameters)
    context.executor.spin()
    close()
    context.close()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
