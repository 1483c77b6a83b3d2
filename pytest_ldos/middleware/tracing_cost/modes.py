"""Ways to record, and none."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class Mode(StrEnum):
    """How a process is recorded."""

    UNTRACED = "untraced"
    LTTNG = "lttng"
    EBPF = "ebpf"


TITLES: Final[Mapping[Mode, str]] = {Mode.UNTRACED: "untraced", Mode.LTTNG: "LTTng", Mode.EBPF: "eBPF"}

HOT_PATH: Final = (
    "rclcpp_publish",
    "rcl_publish",
    "rmw_publish",
    "rclcpp_executor_get_next_ready",
    "rclcpp_executor_wait_for_work",
    "rclcpp_executor_execute",
    "rmw_take",
    "rcl_take",
    "rclcpp_take",
    "callback_start",
    "callback_end",
)
"""Tracepoints that a message passes, from its publication to the end of its callback."""

CALLBACK: Final = "callback_start"
"""Occurs once for each message that came."""
