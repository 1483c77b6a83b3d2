"""Programs built from C++ sources once, and kept in the user's cache by the digest of all they are made of."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

MOST_BYTES = 512 << 20
"""Size limit of the cache; beyond it, the least recently used build is removed."""

_LOCK = ".lock"


@dataclass(frozen=True)
class Recipe:
    """Sources and flags of a program.

    Attributes:
        include: folders whose headers the sources may read, all of them.
        root: left out of the paths in debug information, so that checkouts share what is built.
    """

    sources: tuple[Path, ...]
    include: tuple[Path, ...]
    flags: tuple[str, ...]
    root: Path
    compiler: str = "g++"

    def digest_of(self, source: Path) -> str:
        """Changes with the source, any header, the flags and the compiler."""
        found = hashlib.sha256(repr((self.flags, _version(self.compiler))).encode())
        headers = sorted(header for folder in self.include for header in folder.glob("*.hpp"))
        for file in (source, *headers):
            content = file.read_bytes()
            found.update(f"{file.name} {len(content)} ".encode() + content)
        return found.hexdigest()[:32]

    def compile(self, source: Path, target: Path) -> None:
        include = [f"-I{folder}" for folder in self.include]
        mapped = f"-ffile-prefix-map={self.root}=."
        _run([self.compiler, *self.flags, mapped, *include, "-c", str(source), "-o", str(target)])

    def link(self, objects: Sequence[Path], target: Path) -> None:
        _run([self.compiler, *self.flags, *map(str, objects), "-o", str(target)])


def build_kept(recipe: Recipe) -> Path:
    """Returns the program; builds what of it is not kept, while others who build wait."""
    with _locked_cache() as folder:
        wanted = {source: folder / f"{recipe.digest_of(source)}.o" for source in recipe.sources}
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(lambda each: _keep(each[1], lambda target: recipe.compile(each[0], target)), wanted.items()))
        names = " ".join(each.name for each in wanted.values())
        program = folder / hashlib.sha256(names.encode()).hexdigest()[:32]
        _keep(program, lambda target: recipe.link(list(wanted.values()), target))
        _remove_oldest(folder)
    return program


def cache_folder() -> Path:
    """The folder of these programs in the cache of the user."""
    asked = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (asked if asked.is_absolute() else Path.home() / ".cache") / "pytest-ldos/native"


@contextmanager
def _locked_cache() -> Iterator[Path]:
    folder = cache_folder()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (folder / _LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder


def _keep(target: Path, make: Callable[[Path], None]) -> None:
    """Makes a file whole or not at all, and notes its use."""
    if not target.exists():
        with tempfile.TemporaryDirectory(dir=target.parent) as folder:
            make(Path(folder) / target.name)
            (Path(folder) / target.name).replace(target)
    os.utime(target)


def _remove_oldest(folder: Path) -> None:
    """Also removes remains of killed builds, because no other build is running."""
    for each in folder.iterdir():
        if each.is_dir():
            shutil.rmtree(each)
    kept = [(each.stat(), each) for each in folder.iterdir() if each.is_file() and each.name != _LOCK]
    size = 0
    for state, file in sorted(kept, key=lambda each: each[0].st_mtime_ns, reverse=True):
        size += state.st_size
        if size > MOST_BYTES:
            file.unlink()


@cache
def _version(compiler: str) -> str:
    return subprocess.run([compiler, "-v"], capture_output=True, text=True, check=True).stderr


def _run(command: Sequence[str]) -> None:
    subprocess.run(command, check=True)
