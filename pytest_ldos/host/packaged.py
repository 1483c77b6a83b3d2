"""Files that the distribution's packages installed, and the versions of these packages; from ``dpkg-query``."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

_GLOB: Final = re.compile(r"([][*?\\])")
_FORMAT: Final = "${binary:Package}\t${Version}\n"


@dataclass(frozen=True)
class Packaged:
    """Part of a folder that packages installed.

    Attributes:
        versions: versions of the packages, by name.
        files: their files in the folder.
    """

    versions: Mapping[str, str] = field(default_factory=dict)
    files: frozenset[str] = frozenset()


def find_packaged(folder: Path) -> Packaged:
    """Looks for the packages that own files below a folder; none where dpkg is not installed."""
    owners: dict[str, str] = {}
    for line in _ask("--search", "--", _GLOB.sub(r"\\\1", str(folder)) + "/*").splitlines():
        names, separator, file = line.partition(": ")
        if separator and not line.startswith("diversion "):
            owners[file] = names
    packages = {name for names in owners.values() for name in names.split(", ")}
    if not packages:
        return Packaged()
    shown = (line.partition("\t") for line in _ask("--show", "--showformat", _FORMAT, *packages).splitlines())
    return Packaged({name: version for name, _, version in shown}, frozenset(owners))


def _ask(*arguments: str) -> str:
    """The answer of ``dpkg-query``; empty if it has none."""
    try:
        done = subprocess.run(
            ["dpkg-query", *arguments], capture_output=True, encoding="utf-8", errors="surrogateescape", check=False
        )
    except OSError:
        return ""
    return done.stdout
