"""Packages of Debian that are built and installed for real, into a database and a place of their own."""

from __future__ import annotations

import subprocess
from pathlib import Path

CONTROL = """Package: {name}
Version: {version}
Architecture: all
Maintainer: nobody <nobody@example.org>
Description: A part
"""


def install_package(folder: Path, monkeypatch, name: str, version: str, file: Path, *, content: str = "") -> None:
    """Installs a package with one file, or another version of it.

    Args:
        folder: gets the database, which ``dpkg-query`` asks from now on.
    """
    database, tree = folder / "dpkg", folder / f"{name}-{version}"
    for place in ("info", "updates", "triggers"):
        (database / place).mkdir(parents=True, exist_ok=True)
    (database / "status").touch()
    (database / "available").touch()
    (tree / "DEBIAN").mkdir(parents=True)
    (tree / "DEBIAN/control").write_text(CONTROL.format(name=name, version=version))
    packed = tree / file.relative_to("/")
    packed.parent.mkdir(parents=True)
    packed.write_text(content or version)
    _run("dpkg-deb", "--build", "--root-owner-group", str(tree), str(folder / "package.deb"))
    as_anybody = ["--force-not-root", "--force-bad-path", "--log=/dev/null"]
    _run("dpkg", f"--admindir={database}", "--instdir=/", *as_anybody, "--install", str(folder / "package.deb"))
    monkeypatch.setenv("DPKG_ADMINDIR", str(database))


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
