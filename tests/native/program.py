"""Programs of the decoder's sources and of this folder's."""

from __future__ import annotations

from pathlib import Path

from tests.native.kept_builds import Recipe, build_kept

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
NATIVE = ROOT / "pytest_ldos/trace/ctf/native"
# -Og, because it is compiled in two thirds of -O1's time.
FLAGS = ("-std=c++20", "-Og", "-g1", "-Wall", "-Wextra", "-Werror", "-pthread", "-fno-sanitize-recover=all")


def build(*own: str, sanitizers: str, compiler: str = "g++") -> Path:
    """Builds the decoder with sources of this folder; returns the program."""
    sources = [file for file in sorted(NATIVE.glob("*.cpp")) if file.name != "bindings.cpp"]
    return build_kept(
        Recipe(
            sources=(*sources, *(HERE / name for name in own)),
            include=(NATIVE, HERE),
            flags=(*FLAGS, f"-fsanitize={sanitizers}"),
            root=ROOT,
            compiler=compiler,
        )
    )
