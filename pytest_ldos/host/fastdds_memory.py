"""Files of Fast DDS in shared memory that no process uses any more.

Reference: Fast DDS 2.14: a segment ``fastrtps_ID`` or port ``fastrtps_portN`` in ``/dev/shm`` is in use
while somebody holds a lock on its file ``…_el`` (one owner) or ``…_sl`` (several). They are removed at a
regular end only: a killed process leaves them, with locks that the kernel has released.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

_LOCK: Final = re.compile(r"(fast(?:rtps|dds)_(?:port\d{1,5}|[0-9a-z]{16}))_[es]l")


def find_stale(folder: Path) -> Sequence[Path]:
    """Files of segments and ports whose locks nobody holds; those that this user may not try count as held.

    Args:
        folder: where shared memory is mounted; without it there are none.
    """
    found = (_LOCK.fullmatch(path.name) for path in sorted(folder.glob("fast*_[es]l")))
    names = [(match.group(), match.group(1)) for match in found if match]
    in_use = {name for lock, name in names if _is_held(folder / lock)}
    return sorted({path for _, name in names if name not in in_use for path in _files_of(folder, name)})


def _files_of(folder: Path, name: str) -> Iterator[Path]:
    for each in (name, f"{name}_el", f"{name}_sl", f"sem.{name}_mutex"):
        if (folder / each).is_file():
            yield folder / each


def _is_held(lock: Path) -> bool:
    """True if a process holds a lock on the file, or if we may not try it."""
    try:
        descriptor = os.open(lock, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False
