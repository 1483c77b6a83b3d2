"""Protocol Buffers' wire format, written a million messages at a time.

A field of many messages is two arrays, one row per message: the bytes that it may have, and a mask of
those that it has. Fields side by side make a message; the bytes kept by the masks, read row by row, are the
encoding of all messages. For single messages there are the plain functions at the end.

Reference: Protocol Buffers, encoding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

VARINT: Final = 0
FIXED64: Final = 1
BYTES: Final = 2

_LONGEST_VARINT: Final = 10

Bytes = npt.NDArray[np.uint8]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Fields:
    """Encoded fields of many messages, side by side.

    Attributes:
        parts: bytes that the messages may have, and a mask of those that each has; both of shape
            ``(messages, width)``.
    """

    parts: Sequence[tuple[Bytes, Flags]]

    def lengths(self) -> npt.NDArray[np.int64]:
        total = np.zeros(len(self.parts[0][0]), dtype=np.int64)
        for _, kept in self.parts:
            total += kept.sum(axis=1)
        return total

    def only(self, present: Flags | None) -> Fields:
        """The fields of messages that are present; other messages become empty."""
        return self if present is None else Fields([(data, kept & present[:, np.newaxis]) for data, kept in self.parts])

    def encoded(self) -> bytes:
        """All messages, one after the other."""
        data, kept = (np.concatenate(part, axis=1) for part in zip(*self.parts, strict=True))
        joined: Bytes = data[kept]
        return joined.tobytes()


def beside(fields: Sequence[Fields]) -> Fields:
    """Messages with all the fields, in the given order."""
    return Fields([part for each in fields for part in each.parts])


def varint_field(number: int, values: npt.NDArray[Any], *, present: Flags | None = None) -> Fields:
    """An integer field; negative numbers take ten bytes, as in `int64`."""
    return beside([_tags(number, VARINT, len(values)), _varints(values)]).only(present)


def fixed64_fields(number: int, values: npt.NDArray[np.uint64], present: Flags) -> Fields:
    """A repeated field of 8 bytes each; both arrays have shape ``(messages, most of one message)``."""
    little = values.astype("<u8")[:, :, np.newaxis].view(np.uint8)
    (tags, _), *_ = _tags(number, FIXED64, values.size).parts
    data = np.concatenate([tags.reshape(*values.shape, tags.shape[1]), little], axis=2)
    kept = np.broadcast_to(present[:, :, np.newaxis], data.shape)
    width = data.shape[1] * data.shape[2]
    return Fields([(data.reshape(len(values), width), kept.reshape(len(values), width))])


def message_field(number: int, inner: Fields, *, present: Flags | None = None) -> Fields:
    """A field that holds a message."""
    lengths = inner.lengths()
    return beside([_tags(number, BYTES, len(lengths)), _varints(lengths), inner]).only(present)


def _tags(number: int, wire_type: int, messages: int) -> Fields:
    tag = np.frombuffer(varint(number << 3 | wire_type), dtype=np.uint8)
    tags = np.broadcast_to(tag, (messages, len(tag)))
    return Fields([(tags, np.ones(tags.shape, dtype=np.bool_))])


def _varints(values: npt.NDArray[Any]) -> Fields:
    unsigned = values.astype(np.int64).view(np.uint64) if values.dtype.kind == "i" else values.astype(np.uint64)
    most = int(unsigned.max(initial=0))
    width = min(max(-(-most.bit_length() // 7), 1), _LONGEST_VARINT)
    shifted = unsigned[:, np.newaxis] >> (np.arange(width, dtype=np.uint64) * np.uint64(7))
    kept = shifted > 0
    kept[:, 0] = True
    data = (shifted & np.uint64(0x7F)).astype(np.uint8)
    data[:, :-1] |= np.where(kept[:, 1:], np.uint8(0x80), np.uint8(0))
    return Fields([(data, kept)])


def varint(value: int) -> bytes:
    """One integer from 0 to 2^64 - 1."""
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)


def number(field: int, value: int) -> bytes:
    """One integer field."""
    return varint(field << 3 | VARINT) + varint(value & 0xFFFF_FFFF_FFFF_FFFF)


def text(field: int, value: str) -> bytes:
    """One text field; characters that UTF-8 cannot encode become question marks."""
    return message(field, value.encode("utf-8", errors="replace"))


def message(field: int, *parts: bytes) -> bytes:
    """One field of bytes, or of a message made of its parts."""
    body = b"".join(parts)
    return varint(field << 3 | BYTES) + varint(len(body)) + body
