"""Small numbers for threads."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

_MOST_TIDS: Final = 1 << 23
"""Above the kernel's limit (2^22); larger numbers are sorted instead of looked up."""


def dense_codes(host: npt.NDArray[Any], tid: npt.NDArray[Any]) -> npt.NDArray[np.unsignedinteger]:
    """Small number for each (host, tid), in the same order; of the type that sorts fastest."""
    if not len(tid):
        return np.empty(0, dtype=np.uint16)
    low, high = int(tid.min()), int(tid.max())
    keys = tid if low >= 0 and not host.any() else host.astype(np.int64) * (high - low + 1) + tid - low
    most = int(keys.max())
    if most >= _MOST_TIDS:
        codes: npt.NDArray[np.unsignedinteger] = np.unique(keys, return_inverse=True)[1].astype(np.uint32)
        return codes
    present = np.zeros(most + 1, dtype=np.bool_)
    present[keys] = True
    numbers = np.cumsum(present) - 1
    narrow = numbers.astype(np.uint16 if numbers[-1] < 1 << 16 else np.uint32)
    found: npt.NDArray[np.unsignedinteger] = narrow[keys]
    return found
