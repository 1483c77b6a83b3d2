"""Programs that are kept: the same again where nothing changed, built again where anything did."""

from __future__ import annotations

import dataclasses
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.native import kept_builds
from tests.native.kept_builds import Recipe, build_kept, cache_folder

COMPILER = """#!/bin/sh
[ "$1" = "-v" ] || echo "$@" >> {log}
exec g++ "$@"
"""


class Workshop:
    """A program of two sources and a header, and a compiler whose calls are counted."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._log = folder, folder / "log"
        self.write("main.cpp", '#include "number.hpp"\nint twice(int);\nint main() { return twice(number); }\n')
        self.write("twice.cpp", "int twice(int number) { return 2 * number; }\n")
        self.write("number.hpp", "const int number = 3;\n")
        self.write("compiler", COMPILER.format(log=self._log)).chmod(0o755)
        sources = (folder / "main.cpp", folder / "twice.cpp")
        self.recipe = Recipe(sources, (folder,), ("-O0",), folder, str(folder / "compiler"))

    def write(self, name: str, text: str) -> Path:
        (self.folder / name).write_text(text)
        return self.folder / name

    def build(self, recipe: Recipe | None = None) -> tuple[int, int]:
        """The program's result, and the number of calls of the compiler."""
        self._log.write_text("")
        program = build_kept(recipe or self.recipe)
        return subprocess.run([program], check=False).returncode, len(self._log.read_text().splitlines())


@pytest.fixture
def workshop(tmp_path, monkeypatch) -> Workshop:
    if shutil.which("g++") is None:
        pytest.skip("there is no C++ compiler (Debian, Ubuntu: g++)")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "work").mkdir()
    return Workshop(tmp_path / "work")


def test_unchanged_source_is_not_rebuilt(workshop):
    assert workshop.build() == (6, 3)
    assert workshop.build() == (6, 0)


def test_changed_source_is_rebuilt_even_with_an_older_time_stamp(workshop):
    workshop.build()
    os.utime(workshop.write("twice.cpp", "int twice(int number) { return 2 * number + 1; }\n"), (0, 0))
    assert workshop.build() == (7, 2)
    workshop.write("twice.cpp", "int twice(int number) { return 2 * number; }\n")
    assert workshop.build() == (6, 0)


def test_changed_header_rebuilds_its_users(workshop):
    workshop.build()
    workshop.write("number.hpp", "const int number = 5;\n")
    assert workshop.build() == (10, 3)


def test_other_flags_or_compiler_rebuild(workshop, monkeypatch):
    workshop.build()
    assert workshop.build(dataclasses.replace(workshop.recipe, flags=("-O1",))) == (6, 3)
    monkeypatch.setattr(kept_builds, "_version", lambda compiler: "one that came later")
    assert workshop.build() == (6, 3)


def test_failed_build_leaves_nothing_incomplete(workshop):
    workshop.write("twice.cpp", "int twice(int number) { return number")
    with pytest.raises(subprocess.CalledProcessError):
        workshop.build()
    assert {each.suffix for each in cache_folder().iterdir() if each.name != ".lock"} == {".o"}, "that of main.cpp"
    workshop.write("twice.cpp", "int twice(int number) { return 4 * number; }\n")
    assert workshop.build() == (12, 2)


def test_least_recently_used_build_is_removed(workshop, monkeypatch):
    workshop.build()
    first = {each for each in cache_folder().iterdir() if each.name != ".lock"}
    for each in first:
        os.utime(each, (0, 0))
    monkeypatch.setattr(kept_builds, "MOST_BYTES", sum(each.stat().st_size for each in first))
    workshop.write("number.hpp", "const int number = 5;\n")
    assert workshop.build() == (10, 3)
    assert not any(each.exists() for each in first)
    assert workshop.build() == (10, 0)


def test_remains_of_a_killed_build_are_removed(workshop):
    left = cache_folder() / "tmpkilled"
    left.mkdir(parents=True)
    (left / "half.o").touch()
    assert workshop.build() == (6, 3)
    assert not left.exists()


def test_cache_is_private_to_the_user(workshop):
    workshop.build()
    assert cache_folder().stat().st_mode & 0o777 == 0o700
