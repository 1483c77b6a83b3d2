"""Messages of a flood: `std_msgs/String` whose text begins with the message's number, as in `ldos_load`."""

from __future__ import annotations

from typing import Final

from pytest_ldos.robot.dds.messages import default, encode
from pytest_ldos.scenario.loads.dds_flood import SEQUENCE_BYTES

_TEXT_AT: Final = 8
"""Offset of the text, after CDR's header and the length of the text."""

_END: Final = _TEXT_AT + SEQUENCE_BYTES


class NumberedText:
    """Encoded messages of one size."""

    def __init__(self, size_bytes: int) -> None:
        data = encode(default("std_msgs/msg/String", data="X" * size_bytes))
        self._head, self._tail = data[:_TEXT_AT], data[_END:]

    def message(self, number: int) -> bytes:
        return b"%b%016x%b" % (self._head, number, self._tail)


def number_of(data: bytes) -> int:
    """Returns the number of an encoded message.

    Raises:
        ValueError: it has none; another program writes to this topic.
    """
    return int(data[_TEXT_AT:_END], 16)
