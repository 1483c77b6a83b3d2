"""Files of packages, with real packages in a separate dpkg database."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from pytest_ldos.host.checkout import Packaged, find_packaged
from tests.builders.debian import install_package

pytestmark = pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="dpkg is not installed")


def test_packages_of_a_folder_and_their_files(tmp_path, monkeypatch):
    prefix = tmp_path / "opt/ros/jazzy [1]"
    install_package(tmp_path, monkeypatch, "ros-jazzy-arm", "1.2-0jammy", prefix / "lib/libarm.so")
    install_package(tmp_path, monkeypatch, "other", "7", tmp_path / "opt/other/file")
    (prefix / "lib/mine").write_text("of no package")
    found = find_packaged(prefix)
    assert found.versions == {"ros-jazzy-arm": "1.2-0jammy"}
    assert str(prefix / "lib/libarm.so") in found.files
    assert str(prefix / "lib/mine") not in found.files


def test_a_folder_of_no_package(tmp_path, monkeypatch):
    install_package(tmp_path, monkeypatch, "other", "7", tmp_path / "opt/other/file")
    assert find_packaged(tmp_path / "elsewhere") == Packaged()


def test_without_dpkg_nothing_is_packaged(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_packaged(Path("/usr")) == Packaged()


def test_builder_matches_dpkg(tmp_path, monkeypatch):
    install_package(tmp_path, monkeypatch, "arm", "1", tmp_path / "opt/arm/file")
    shown = subprocess.run(["dpkg-query", "--show", "arm"], capture_output=True, text=True, check=True).stdout
    assert shown.split() == ["arm", "1"]
