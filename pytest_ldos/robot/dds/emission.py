"""Tracepoints of the node layer: LTTng where the provider was built, silence elsewhere.

`emit` has one function for each event of `pytest_ldos.base.tracepoints`, named as the event
without its provider, arguments in the order of the fields.
"""

from __future__ import annotations

import importlib
import itertools
from typing import Any, Final


class _Silent:
    """Takes every event and keeps none."""

    def __getattr__(self, name: str) -> Any:
        return _ignore


def _ignore(*_arguments: object) -> None:
    pass


def _load_provider() -> Any:
    try:
        return importlib.import_module("pytest_ldos.robot.dds._lttng")
    except ImportError:
        return _Silent()


emit: Final = _load_provider()

TRACEPOINT_SYMBOL: Final = "ldos_cost_tracepoint"
"""What the provider's library calls its timed tracepoint (``native/tracepoint_loop.h``)."""


def time_tracepoints(count: int) -> int:
    """Nanoseconds that so many calls of ``ros2:rclcpp_publish`` take together, without any Python between them.

    Raises:
        ImportError: the provider was not built.
    """
    provider = importlib.import_module("pytest_ldos.robot.dds._lttng")
    return int(provider._time_tracepoints(count))  # noqa: SLF001 - it is no event, so its name is not one's


def provider_library() -> str:
    """The file that holds the provider.

    Raises:
        ImportError: it was not built.
    """
    return str(importlib.import_module("pytest_ldos.robot.dds._lttng").__file__)


_FIRST_HANDLE: Final = 0x5500_0000_0000
_HANDLE_STEP: Final = 0x40
_handles = itertools.count(_FIRST_HANDLE, _HANDLE_STEP)


def new_handle() -> int:
    """An address-like number that this process uses once: what stands for a pointer in a trace."""
    return next(_handles)
