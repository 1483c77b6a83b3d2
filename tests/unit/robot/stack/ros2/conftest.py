"""A workspace of ROS packages that is not there: folders and the files that say so."""

from __future__ import annotations

from pathlib import Path

import pytest


class Workspace:
    def __init__(self, prefix: Path) -> None:
        self.prefix = prefix

    def add(self, name: str, *, version: str = "1.0.0", files: dict[str, str] | None = None) -> Path:
        """An installed package; its share folder."""
        index = self.prefix / "share/ament_index/resource_index/packages"
        index.mkdir(parents=True, exist_ok=True)
        (index / name).touch()
        share = self.prefix / "share" / name
        share.mkdir(parents=True)
        (share / "package.xml").write_text(f"<package><name>{name}</name><version>{version}</version></package>")
        for file, text in (files or {}).items():
            (share / file).parent.mkdir(parents=True, exist_ok=True)
            (share / file).write_text(text)
        return share


@pytest.fixture
def workspace(tmp_path, monkeypatch) -> Workspace:
    prefix = tmp_path / "install"
    prefix.mkdir()
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(prefix))
    monkeypatch.setenv("ROS_DISTRO", "jazzy")
    monkeypatch.delenv("RMW_IMPLEMENTATION", raising=False)
    return Workspace(prefix)
