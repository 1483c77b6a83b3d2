"""Message sizes by the names of message types.

A type of the format is a header (number and stamp) and a payload: ``stamped10b`` carries 10 B, ``stamped4_int32`` four
32-bit numbers, ``stamped_vector`` as many bytes as ``msg_size``. All are sent as `ldos_topology_msgs/Stamped`, whose
header is the same for every size; only the size of the payload differs.
"""

from __future__ import annotations

import re
from typing import Final

_NUMBERS: Final = {
    **{f"{sign}int{bits}": bits // 8 for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "float32": 4,
    "float64": 8,
}
_MULTIPLES: Final = {"b": 1, "kb": 1024, "mb": 1024 * 1024}
_BYTES: Final = re.compile(r"stamped(\d{1,9})(b|kb|mb)")
_ARRAY: Final = re.compile(rf"stamped(\d{{0,9}})_({'|'.join(_NUMBERS)})")

VECTOR: Final = "stamped_vector"
"""The type whose name does not contain its size."""

EXAMPLES: Final = ("stamped10b", "stamped100kb", "stamped4mb", "stamped4_int32", "stamped_int64", VECTOR)


def size_of_type(msg_type: str) -> int | None:
    """Payload of a type in bytes; ``None`` if its name does not contain it. Ignores the name of a plugin in front."""
    name = msg_type.rpartition("::")[2]
    if found := _BYTES.fullmatch(name):
        return int(found[1]) * _MULTIPLES[found[2]]
    if found := _ARRAY.fullmatch(name):
        return int(found[1] or 1) * _NUMBERS[found[2]]
    return None
