"""Programs that the kernel forbids a system call, as containers do: seccomp filters in front of real programs."""

from __future__ import annotations

import platform
import shutil
import sys
from pathlib import Path

CALLS = {
    "x86_64": {"perf_event_open": 298, "ptrace": 101, "process_vm_readv": 310},
    "aarch64": {"perf_event_open": 241, "ptrace": 117, "process_vm_readv": 270},
}

_WRAPPER = """\
#!{python} -IS
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
steps = [(0x20, 0, 0, 0)]
for number in {numbers}:
    steps += [(0x15, 0, 1, number), (0x06, 0, 0, 0x50000 | 1)]
steps.append((0x06, 0, 0, 0x7FFF0000))
code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in steps))
program = struct.pack("@HP", len(steps), ctypes.addressof(code))
libc.prctl(38, 1, 0, 0, 0)
if libc.prctl(22, 2, program, 0, 0) != 0:
    sys.exit("no seccomp here")
os.execv({real!r}, [{real!r}, *sys.argv[1:]])
"""


def forbid(program: str, folder: Path, *calls: str) -> Path:
    """A program of that name in `folder` that runs the real one without these system calls (EPERM)."""
    real = shutil.which(program)
    assert real is not None
    numbers = [CALLS[platform.machine()][call] for call in calls]
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / Path(program).name
    file.write_text(_WRAPPER.format(python=Path(sys.executable).resolve(), numbers=numbers, real=real))
    file.chmod(0o755)
    return file
