"""Tracepoints of the node layer: LTTng if the provider was built, otherwise no events.

`emit` has one function per event of `base.ros2`, without its provider, with arguments in the order of the fields.
"""

from __future__ import annotations

import importlib
import itertools
from typing import Any, Final


class _Silent:
    def __getattr__(self, name: str) -> Any:
        return lambda *_: None


emit: Any
try:
    emit = importlib.import_module("pytest_ldos.robot.dds._lttng")
except ImportError:
    emit = _Silent()

TRACEPOINT_SYMBOL: Final = "ldos_cost_tracepoint"
"""Symbol of the timed tracepoint in the provider's library (``native/tracepoint_loop.h``)."""


def time_tracepoints(count: int) -> int:
    """Time of `count` consecutive calls of ``ros2:rclcpp_publish``, ns; raises `ImportError` without a provider."""
    provider = importlib.import_module("pytest_ldos.robot.dds._lttng")
    return int(provider._time_tracepoints(count))  # noqa: SLF001 - it is no event, so its name is not one's


def provider_library() -> str:
    """Path of the provider's library; raises `ImportError` if it was not built."""
    return str(importlib.import_module("pytest_ldos.robot.dds._lttng").__file__)


_FIRST_HANDLE: Final = 0x5500_0000_0000
_HANDLE_STEP: Final = 0x40
_handles = itertools.count(_FIRST_HANDLE, _HANDLE_STEP)


def new_handle() -> int:
    """A number that is unique in this process, used in traces in place of a pointer."""
    return next(_handles)
