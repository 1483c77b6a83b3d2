"""Programs of the decoder's sources, built again where one of these is newer."""

from __future__ import annotations

import fcntl
import os
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
NATIVE = ROOT / "pytest_ldos/ctf/native"
FLAGS = ("-std=c++20", "-O1", "-g1", "-Wall", "-Wextra", "-Werror", "-pthread", "-fno-sanitize-recover=all")


def build(program: Path, *own: str, sanitizers: str, compiler: str = "g++") -> Path:
    """Builds the decoder with sources of this folder; returns `program`.

    Objects lie beside it, so a folder is for one compiler and one choice of sanitizers; who else builds in it waits.
    """
    program.parent.mkdir(parents=True, exist_ok=True)
    with (program.parent / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _build(program, own, sanitizers=sanitizers, compiler=compiler)
    return program


def _build(program: Path, own: Sequence[str], *, sanitizers: str, compiler: str) -> None:
    sources = [file for file in NATIVE.glob("*.cpp") if file.name != "bindings.cpp"]
    sources += [HERE / name for name in own]
    flags = [*FLAGS, f"-fsanitize={sanitizers}"]
    objects = [program.parent / f"{source.stem}.o" for source in sources]
    commands = [
        [compiler, *flags, f"-I{NATIVE}", "-c", str(source), "-o", str(target)]
        for source, target in zip(sources, objects, strict=True)
        if _is_stale(source, target)
    ]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(_run, commands))
    if commands or not program.exists():
        _run([compiler, *flags, *map(str, objects), "-o", str(program)])


def _run(command: Sequence[str]) -> None:
    subprocess.run(command, check=True)


def _is_stale(source: Path, target: Path) -> bool:
    read = [source, *NATIVE.glob("*.hpp"), *HERE.glob("*.hpp")]
    return not target.exists() or target.stat().st_mtime < max(file.stat().st_mtime for file in read)
