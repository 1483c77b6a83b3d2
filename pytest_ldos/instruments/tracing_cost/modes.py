"""Modes of recording, including none."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class Mode(StrEnum):
    """The way in which a process is recorded."""

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
"""Tracepoints on the path of a message, from its publication to the end of its callback."""

CALLBACK: Final = "callback_start"
"""The tracepoint that is hit once for each message received."""
